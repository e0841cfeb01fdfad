"""Runs the dashboard's process, for the supervisor and for `bin/league dashboard`."""

from __future__ import annotations

import argparse
import logging
import socket
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from league.errors import ConfigError, LeagueError, Unavailable
from league.garbage import collect_rarely
from league.rpc.client import MatchmakerClient
from league.runs.finding import checked_run
from league.security.credentials import of_run
from league.security.settings import (
    SecuritySettings,
    checked_names,
    joined,
    reached_at,
)
from league.security.tokens import TokenBook, TokenFile
from league.service.logs import configure
from league.views.dashboard.access import Access
from league.views.dashboard.connections import BACKLOG

LOOPBACK = "127.0.0.1"


def run(
    client: MatchmakerClient,
    run_dir: Path | None,
    host: str,
    port: int,
    names: Sequence[str] = (),
    beside: Sequence[Path] = (),
) -> None:
    """Serves the pages of a league until SIGTERM or Ctrl-C, and prints their address.

    Args:
        client: a client of the league's matchmaker.
        run_dir: the run's folder, or None if it is not on this machine.
        host: the address to listen on. Visitors need a token if other machines can reach the
            address, or if the run's services require tokens.
        port: the port, or 0 for any free port.
        names: names under which a proxy serves the pages to others.
        beside: folders of other runs. Their curves can be shown next to the curves of this run.

    Raises:
        ConfigError: a name is malformed, or other machines can reach the address and there is no
            folder with tokens.
        NotFound, VersionMismatch: a folder of `beside` is not a run of this version.
        Unavailable: the process can't listen on this host and port.
    """
    from league.views.dashboard.app import serve
    from league.views.dashboard.source import Source

    configure("human", seldom=True)
    logging.getLogger().setLevel(logging.WARNING)
    beside = [checked_run(folder) for folder in beside]
    access = _access(host, run_dir, checked_names(names))
    title = client.address if run_dir is None else run_dir.absolute().name
    with (
        _listening(host, port) as listener,
        closing(Source(client, run_dir=run_dir, beside=beside, title=title)) as source,
    ):
        print(f"http://{joined(reached_at(host), listener.getsockname()[1])}", flush=True)
        if access.book is not None and run_dir is not None:
            folder = TokenFile(run_dir).folder
            print(f"Visitors need a token: the text of a file in {folder}", file=sys.stderr)
        serve(source, access, listener)


def _access(host: str, run_dir: Path | None, names: tuple[str, ...]) -> Access:
    """Returns who may view the pages.

    Visitors need no token if only this machine can reach the pages and the run's services don't
    require tokens.
    """
    security = SecuritySettings() if run_dir is None else SecuritySettings.of_run(run_dir)
    asks = security.asks_visitors(host, names)
    if run_dir is None and asks:
        raise ConfigError(
            f"{', '.join(names) or host} can be reached from other machines, and a league by its "
            "--address has no tokens here: name its folder with --run-dir, or listen on 127.0.0.1 "
            "without a --name"
        )
    if run_dir is None or not asks:
        return Access(host)
    file = TokenFile(run_dir)
    file.ensure()
    return Access(host, TokenBook(file), names)


def _listening(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Visitors who connect wait until the pages can answer."""
    try:
        return socket.create_server((host.strip("[]"), port), backlog=BACKLOG)
    except OSError as error:
        raise Unavailable(
            f"nothing can listen on {joined(host, port)} ({error.strerror}): name another --host "
            "or --port"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves a run, whose matchmaker may still be starting. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="dashboard")
    parser.add_argument("--matchmaker", required=True, metavar="HOST:PORT")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--host", default=LOOPBACK)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--name", action="append", default=[])
    options = parser.parse_args(arguments)
    credentials = of_run(options.run_dir, "operator")
    try:
        with MatchmakerClient(options.matchmaker, credentials=credentials) as client:
            run(client, options.run_dir, options.host, options.port, options.name)
    except LeagueError as error:
        print(f"dashboard: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
