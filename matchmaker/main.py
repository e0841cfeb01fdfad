"""Serves a league until SIGTERM or Ctrl-C, as `python -m matchmaker`."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from league.errors import LeagueError
from league.runs.settings import SHARED
from league.runs.store import Store
from league.security.settings import SecuritySettings
from league.service.logs import configure
from league.service.settings import OperationsSettings
from league.settings.base import resolve_run
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

__all__ = ["MatchmakerServer", "main"]
_STOPS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger(__name__)


def _port(text: str) -> int:
    value = int(text) if text.isdigit() else -1
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535, 0 takes a free one")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="matchmaker", description="Serves one league over gRPC.")
    add = parser.add_argument
    add("--db", type=Path, required=True, help="the SQLite file, created when missing")
    add("--port", type=_port, default=50051, help="0 takes a free one (default: 50051)")
    metrics = "serve Prometheus metrics on this port of 127.0.0.1"
    begins = "begin new ratings if the game's rules have another version than the log's"
    add("--new-epoch", action="store_true", help=begins)
    add("--metrics-port", type=_port, metavar="PORT", help=metrics)
    add("--config", type=Path, help="TOML file with a [matchmaker] section")
    add("--preset", metavar="NAME", help="settings of this preset, below those of --config")
    reads = "answer questions, change nothing, of the log as it is at the start"
    add("--read-only", action="store_true", help=reads)
    past = "with --read-only: the league (players, ratings, payoffs) as it was then"
    add("--at", metavar="WHEN", help=past)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit code."""
    options = _parser().parse_args(arguments)
    configure("human")  # until the settings are known
    try:
        is_new = not options.db.exists()
        sections = resolve_run(None, options.preset, options.config, default=None)
        operations, address = sections.of(OperationsSettings), sections["cluster"]["store"]
        if options.metrics_port:
            changed = {"metrics_port": options.metrics_port}
            operations = operations.model_copy(update=changed)
        configure(operations.log_format)
        server = MatchmakerServer(
            options.db,
            options.port,
            MatchmakerSettings.of(sections),
            security=sections.of(SecuritySettings),
            operations=operations,
            read_only=options.read_only,
            at=options.at,
            new_epoch=options.new_epoch,
            store=Store(address, is_owner=True) if address and not options.read_only else None,
            sections={name: sections[name] for name in SHARED if name in sections},
        )
        gc.freeze()  # a full collection over a loaded league would stall all calls for 100 ms
        signals = _stop_signals()
        with server:
            position = server.league.view.log_position
            if is_new:
                _log.info("%s is a new league", options.db)
            elif options.read_only:
                _log.info("the league as of result %d: later results are not shown", position)
            print(f"ready {server.port}", flush=True)
            signals.recv(1)
            for number in _STOPS:  # Python drops handlers at exit, but keeps SIG_IGN
                signal.signal(number, signal.SIG_IGN)
    except LeagueError as error:
        print(f"matchmaker: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _stop_signals() -> socket.socket:
    """Returns a socket that receives a byte for each signal SIGTERM or SIGINT.

    A handler that sets a `threading.Event` deadlocks when a second signal interrupts it. A signal
    mask fails too, because it does not apply to threads that libraries have already started.
    """
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
    for number in _STOPS:
        signal.signal(number, lambda *_: None)
    return receiver
