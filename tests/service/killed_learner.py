"""A learner as a process that SIGKILL ends at one moment of its life."""

from __future__ import annotations

import hashlib
import io
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from league.rpc.client import MatchmakerClient
from league.v1 import matchmaker_pb2 as m
from learner.main import main
from learner.ppo import references
from learner.ppo.optimizer import GradientStep
from learner.rollout import source
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.train import session
from learner.train.snapshots import SnapshotPublisher

Begun = Callable[..., None]
"""How much of a call is done when the process is killed in it: given the whole call and its
arguments.
"""


def nothing(whole: Begun, *arguments: Any, **named: Any) -> None:
    """Killed before it."""


def everything(whole: Begun, *arguments: Any, **named: Any) -> None:
    """Killed after it."""
    whole(*arguments, **named)


def half_a_file(whole: Begun, values: object, file: io.BufferedWriter) -> None:
    """Killed in the middle of writing it."""
    written = io.BytesIO()
    whole(values, written)
    file.write(written.getvalue()[: len(written.getvalue()) // 2])
    file.flush()


def half_an_upload(whole: Begun, client: MatchmakerClient, content: bytes) -> None:
    """Killed when half of it is on its way."""
    part = len(content) // 20

    def killing() -> Iterator[m.PutBlobRequest]:
        digest = hashlib.sha256(content).hexdigest()
        yield m.PutBlobRequest(digest=digest, size=len(content), content=content[:part])
        for number in range(1, 10):
            yield m.PutBlobRequest(content=content[number * part : (number + 1) * part])
        os.kill(os.getpid(), signal.SIGKILL)

    client._stub.PutBlob(killing(), metadata=client._metadata)


MOMENTS: dict[str, tuple[object, str, Begun]] = {
    "in a rollout": (LeagueVecEnv, "step_arrays", everything),
    "in an update": (GradientStep, "finish", nothing),
    "after a step of the optimizer": (GradientStep, "finish", everything),
    "in a checkpoint's file": (torch, "save", half_a_file),
    "before a file has its name": (os, "fsync", everything),
    "between checkpoint and snapshot": (SnapshotPublisher, "publish", nothing),
    "between a snapshot's file and its name": (SnapshotPublisher, "register", nothing),
    "after a snapshot": (SnapshotPublisher, "publish", everything),
    "after a reference": (SnapshotPublisher, "publish_reference", everything),
    "after results": (MatchmakerClient, "report_results", everything),
    "after a start": (MatchmakerClient, "open_incarnation", everything),
}
"""What is wrapped, and how much of it is done when the process is killed in it."""
REMOTE = {"in an upload": (MatchmakerClient, "put_blob", half_an_upload)}
"""The same for a learner that shares no folder with its league."""
NEVER = ("never", 0)


def live(
    flags: Sequence[str], moment: str, times: int, log: Path, context: str = "spawn"
) -> int | None:
    """One life of a learner with these flags; returns how it ended.

    It is killed when something of `MOMENTS` or `REMOTE` is done for the `times`-th time in this
    life. The context `forkserver` saves most of the imports; `spawn` gives each life other hashes,
    too.
    """
    processes = multiprocessing.get_context(context)
    process = processes.Process(target=_live, args=(list(flags), moment, times, str(log)))  # type: ignore[attr-defined]
    process.start()
    try:
        process.join()
    finally:
        process.kill()
    process.join()
    ended: int | None = process.exitcode
    return ended


def _live(flags: Sequence[str], moment: str, times: int, log: str) -> None:
    session.CHECKPOINT_SECONDS = 0.001
    source.AHEAD.update(dict.fromkeys(source.AHEAD, 6))
    references.MATCH_SHARE, references.PORTFOLIO_INTERVAL = 0.5, 24
    with open(log, "a", buffering=1) as file:
        os.dup2(file.fileno(), 2)
    if moment != NEVER[0]:
        _arm(moment, times)
    sys.exit(main(flags))


def _arm(moment: str, times: int) -> None:
    owner, name, begun = (MOMENTS | REMOTE)[moment]
    whole, calls = getattr(owner, name), itertools.count(1)

    def counted(*arguments: Any, **named: Any) -> object:
        if next(calls) < times:
            return whole(*arguments, **named)
        begun(whole, *arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody survives this")

    setattr(owner, name, counted)
