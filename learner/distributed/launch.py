"""Starts a learner's ranks with the process manager of torchrun, and ends with them.

The command line tool `torchrun` itself ends every failure with exit code 1 and every stop with an
error. A learner's exit codes say which faults a restart can't cure, so this launcher passes them
on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from league.errors import LeagueError, RankGone
from league.service import die_with_parent

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

RANK_GONE = 75
"""Exit code of a rank that failed only because another rank had ended."""
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_STOPPED = (-signal.SIGTERM, -signal.SIGINT)
_POLL_SECONDS = 0.05


def is_rank() -> bool:
    """Returns whether this process is one of several ranks."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def report_failure(error: LeagueError) -> int:
    """Leaves a rank's error for its launcher to print. Returns the rank's exit code."""
    if _ERROR_FILE not in os.environ:  # started by another launcher
        print(f"learner: {error}", file=sys.stderr)
    else:
        Path(os.environ[_ERROR_FILE]).write_text(json.dumps({"message": str(error)}))
    return RANK_GONE if isinstance(error, RankGone) else error.exit_code


def launch(words: Sequence[str], count: int, program: Sequence[str] = ("-m", "learner")) -> int:
    """Runs ranks of a Python program until they end.

    SIGTERM and Ctrl-C are passed on, and the ranks agree on a step to stop at. When a rank fails or
    is killed, the others are ended, since they can't continue alone.

    Args:
        words: flags of the program.
        count: number of ranks.
        program: the program as Python's arguments.

    Returns:
        The exit code of the rank that failed first, 0 if all succeeded.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes

    from learner.distributed.rank_group import RENDEZVOUS

    logging.getLogger("torch.distributed.elastic").setLevel(logging.ERROR)
    stops: list[int] = []
    with tempfile.TemporaryDirectory(prefix="kumite-ranks-") as folder:  # private to this user
        # The wrapper makes the kernel end a rank with this process, also after kill -9.
        command = ["-I", "-S", die_with_parent.__file__, str(os.getpid()), sys.executable]
        environment = {"WORLD_SIZE": str(count), RENDEZVOUS: f"file://{folder}/rendezvous"}
        ranks = start_processes(
            "learner",
            sys.executable,
            args=dict.fromkeys(range(count), (*command, *program, *words)),
            envs={rank: {"RANK": str(rank), **environment} for rank in range(count)},
            logs_specs=DefaultLogsSpecs(log_dir=folder),
        )

        def stop(number: int, _: object) -> None:
            stops.append(number)
            for process in ranks.pids().values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        while (result := ranks.wait(timeout=0)) is None:
            time.sleep(_POLL_SECONDS)
        failures = list(result.failures.values())
        if not failures or (stops and any(rank.exitcode in _STOPPED for rank in failures)):
            return 0
        cause = next((rank for rank in failures if rank.exitcode != RANK_GONE), failures[0])
        return _explain(cause)


def _explain(cause: ProcessFailure) -> int:
    """Prints why the learner ends, in a sentence, and returns its exit code."""
    if Path(cause.error_file).is_file():
        print(f"learner: {cause.message}", file=sys.stderr, flush=True)
        return 1 if cause.exitcode == RANK_GONE else cause.exitcode
    how = (
        f"was ended by signal {-cause.exitcode}"
        if cause.exitcode < 0
        else f"failed (exit code {cause.exitcode}), its last words are above"
    )
    print(
        f"learner: rank {cause.local_rank} (process {cause.pid}) {how}: the others end with it; "
        "start again, and all continue from the newest checkpoint",
        file=sys.stderr,
        flush=True,
    )
    return 1
