"""The evaluator's program: reads flags and settings, serves, works until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evaluator.settings import EvaluatorSettings
from league.contest.joining import join
from league.errors import ConfigError, LeagueError, Unavailable
from league.games.settings import GameSettings
from league.rpc.channel import Reminders
from league.security.credentials import add_client_flags, of_run
from league.security.settings import SecuritySettings
from league.service.logs import configure
from league.service.server import check_port
from league.service.settings import OperationsSettings
from league.settings.base import resolve_run

STOP_SECONDS = 2.5
"""After a signal, the program ends within this time, even if it still has leases to hand back."""
PARALLEL_MATCHES = 128
"""Number of matches played at once. With more matches, the forward pass of a step would hardly
become cheaper per match.
"""
WAIT_SECONDS = 300.0
"""If the matchmaker does not answer, the evaluator gives up after this time."""

_log = logging.getLogger("evaluator")


class _StopRequested(Unavailable):
    """A signal came while a thread of the program was waiting for the matchmaker."""


def _parser() -> argparse.ArgumentParser:
    description = "Plays clean matches of every snapshot and reports them to the matchmaker."
    parser = argparse.ArgumentParser(prog="evaluator", description=description)
    add = parser.add_argument
    add("--matchmaker", required=True, metavar="HOST:PORT", help="where the matchmaker serves")
    run_dir = "run folder, made if missing (default: a folder for a league on another machine)"
    add("--run-dir", type=Path, metavar="DIR", help=run_dir)
    add(
        "--config", type=Path, metavar="FILE", help="settings (default without --preset: the run's)"
    )
    add("--preset", metavar="NAME", help="settings of this preset, below those of --config")
    add("--port", type=int, default=0, metavar="P", help="port to serve on, 0 for any (default)")
    add("--name", default="evaluator-0", help="of this worker; a newer one of its name replaces it")
    add_client_flags(parser)
    return parser


def _waiting_words(stop: threading.Event) -> Callable[[str], None]:
    """Returns a function that logs from time to time why the program waits, and that ends the wait
    once `stop` is set.
    """
    remind = Reminders(_log.info)

    def on_wait(sentence: str) -> None:
        if stop.is_set():
            raise _StopRequested("stopped while waiting for the matchmaker")
        remind(sentence)

    return on_wait


def _leave_in_time() -> None:
    """Ends the process if it hangs after a signal. This is safe, because leases expire."""
    time.sleep(STOP_SECONDS)
    words = "evaluator: stopped without handing its leases back: they expire"
    print(words, file=sys.stderr, flush=True)
    os._exit(0)


def _stop_on_signals(stop: threading.Event) -> None:
    signals = signal.SIGTERM, signal.SIGINT

    def on_signal(number: int, frame: object) -> None:
        for number in signals:  # Python drops handlers at exit, but not SIG_IGN
            signal.signal(number, signal.SIG_IGN)
        stop.set()
        threading.Thread(target=_leave_in_time, name="last-resort", daemon=True).start()

    for number in signals:
        signal.signal(number, on_signal)


def serve(arguments: argparse.Namespace, stop: threading.Event) -> None:
    """Runs the evaluator until `stop` is set. Raises `LeagueError` if it can't start or go on."""
    waiting: dict[str, Any] = {"wait_seconds": WAIT_SECONDS, "on_wait": _waiting_words(stop)}
    if arguments.run_dir is None:
        shown = of_run(None, "worker", token_file=arguments.token_file, tls=arguments.tls)
        arguments.run_dir = join(arguments.matchmaker, shown, **waiting)
        _log.info("joining %s, files are in %s", arguments.matchmaker, arguments.run_dir)
    sections = resolve_run(arguments.run_dir, arguments.preset, arguments.config, default=None)
    settings, game_settings = sections.of(EvaluatorSettings), sections.of(GameSettings)
    operations = sections.of(OperationsSettings)
    configure(operations.log_format)
    security = sections.of(SecuritySettings)
    check_port(security.checked_host(), arguments.port)  # before anything is on disk
    try:
        arguments.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{arguments.run_dir} can't be a run folder ({error.strerror}): give another --run-dir"
        ) from None

    # Heavy imports wait until flags and settings are known to be good.
    import torch

    from evaluator.clean.runner import Evaluator
    from evaluator.clean.service import EvaluatorServer
    from league.replay import Recipe
    from league.rpc.client import MatchmakerClient

    torch.set_num_threads(1)  # it shares the machine with the learner
    most = max(settings.first_matches, settings.milestone_matches)
    game = game_settings.make(min(PARALLEL_MATCHES, most))
    if settings.device != "cpu" and not torch.cuda.is_available():
        raise ConfigError(
            f"evaluator.device = {settings.device!r}, and PyTorch finds no GPU here: set it to cpu"
        )
    tls = arguments.tls or security.tls_folder
    shown = of_run(arguments.run_dir, "worker", token_file=arguments.token_file, tls=tls)
    with (
        MatchmakerClient(arguments.matchmaker, credentials=shown, **waiting) as client,
        MatchmakerClient(arguments.matchmaker, wait_seconds=0.5, credentials=shown) as reader,
    ):
        run_dir, recipe = arguments.run_dir, Recipe.of(game_settings)
        evaluator = Evaluator(
            client, game, run_dir, settings, worker=arguments.name, stop=stop, recipe=recipe
        )
        options = {"run_dir": run_dir, "security": security, "operations": operations}
        with EvaluatorServer(evaluator, reader, port=arguments.port, **options) as server:
            evaluator.open()
            print(f"ready {server.port}", flush=True)
            evaluator.run()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code. An error prints a sentence on stderr."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our own message says that a port is taken
    configure("human")  # until the settings are known
    stop = threading.Event()
    _stop_on_signals(stop)
    try:
        serve(arguments, stop)
    except _StopRequested:
        _log.info("stopped while waiting for the matchmaker")
    except LeagueError as error:
        print(f"evaluator: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    return 0
