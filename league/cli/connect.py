"""Finds the league that a command asks about: a matchmaker's address, or a run folder.

Of a finished run, and of any run as it was at some time, the matchmaker is started read-only over
its database for as long as the command takes, so every command speaks gRPC and nothing else.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from league.cli.output import say
from league.errors import InvalidInput, LeagueError, Refused, Unavailable
from league.rpc.client import MatchmakerClient
from league.runs import finding
from league.security.credentials import Credentials
from league.security.flags import add_client_flags, client_credentials
from league.service import tether

RUNS = Path("runs")
ROLE = "operator"
"""Of the run's own tokens, the one that commands show: whoever can read it may do everything
anyway.
"""
WAIT_SECONDS = 10.0
START_SECONDS = 30.0
PAST_SECONDS = 600.0
"""To start over a past moment: every result up to it is folded anew."""
STOP_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that name a league; without either, the newest folder under runs/ is meant."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--address", metavar="HOST:PORT", help="a matchmaker that runs")
    where.add_argument(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help="a run, going on or finished (default: the newest in runs/)",
    )
    add_client_flags(parser)


def add_moment(parser: argparse.ArgumentParser) -> None:
    """The flag that shows the league as it was, for commands that show players, ratings and
    payoffs alone.
    """
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help="the league as it was then: a time (2026-11-21T14:00, UTC unless it says otherwise), Unix "
        "seconds, or a log position",
    )


@contextmanager
def connect(args: argparse.Namespace) -> Iterator[MatchmakerClient]:
    """A client of the league that `args` names."""
    at = getattr(args, "at", None)
    if at is not None:
        if args.address:
            raise InvalidInput(
                "--at reads a run's own log: name its folder with --run-dir, not --address"
            )
        with (
            _read_only_matchmaker(run_folder(args), at) as address,
            _client(address, Credentials()) as client,
        ):
            yield client
        return
    if args.address:
        shown = client_credentials(args, ROLE)
        with _client(args.address, shown) as client:
            yield client
        return
    run_dir = run_folder(args)
    live = finding.live_address(run_dir)
    if live is not None:
        with _client(live, client_credentials(args, ROLE, run_dir)) as client:
            yield client
        return
    with _read_only_matchmaker(run_dir) as address, _client(address, Credentials()) as client:
        yield client


def connect_run(run_dir: Path) -> AbstractContextManager[MatchmakerClient]:
    """A client of the league in a run's folder, with the credentials that lie there."""
    return connect(argparse.Namespace(address=None, run_dir=run_dir, token_file=None, tls=None))


def _client(address: str, credentials: Credentials) -> MatchmakerClient:
    return MatchmakerClient(
        address, wait_seconds=WAIT_SECONDS, on_wait=_say_once(), credentials=credentials
    )


def must_go_on(args: argparse.Namespace, then: str) -> None:
    """Raises `Refused` unless the league that `args` names is served by its run, which alone
    changes it.
    """
    if not args.address and finding.live_address(run_folder(args)) is None:
        raise Refused(
            f"{args.run_dir} is not going on: start it again (bin/start-league --run-dir {args.run_dir}), "
            f"then {then}"
        )


def run_folder(args: argparse.Namespace) -> Path:
    """The run folder that `args` names, or the newest; raises `NotFound` or `VersionMismatch`."""
    if args.run_dir is None:
        args.run_dir = finding.newest_run(RUNS)  # kept, so that all of a command means the same run
        say(f"(the newest run: {args.run_dir})")
    return finding.checked_run(args.run_dir)


@contextmanager
def _read_only_matchmaker(run_dir: Path, at: str | None = None) -> Iterator[str]:
    """Address of a matchmaker that serves the run, as it is or was, for as long as the block
    lasts.
    """
    database = str(finding.database_of(run_dir))
    command = [sys.executable, "-m", "matchmaker", "--db", database, "--read-only", "--port", "0"]
    if at is not None:
        command += ["--at", at]
    tied = [sys.executable, tether.__file__, str(os.getpid()), *command]
    process = subprocess.Popen(tied, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield f"127.0.0.1:{_port_of(process, START_SECONDS if at is None else PAST_SECONDS)}"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port_of(process: subprocess.Popen[str], seconds: float) -> int:
    """Waits for the line ``ready PORT``; raises with the process's last words when it ends
    instead.
    """
    assert process.stdout is not None
    assert process.stderr is not None
    words: list[str] = []
    drain = threading.Thread(target=lambda: words.extend(process.stderr or ()), daemon=True)
    drain.start()
    alarm = threading.Timer(seconds, process.kill)
    alarm.start()
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                return int(line.split()[1])
    finally:
        alarm.cancel()
    process.wait()
    drain.join(1)
    last = next((word.strip() for word in reversed(words) if word.strip()), "it said nothing")
    raise _exit_error(process.returncode, last.removeprefix("matchmaker: "), seconds)


def _exit_error(code: int, last_words: str, seconds: float) -> LeagueError:
    if code < 0:
        return Unavailable(
            f"the run's database could not be served within {seconds:.0f} s: try again"
        )
    if code == InvalidInput.exit_code:
        return InvalidInput(last_words)
    return LeagueError(f"the run's database can't be served: {last_words}")


def _say_once() -> Callable[[str], None]:
    said: list[str] = []

    def on_wait(text: str) -> None:
        if not said:
            said.append(text)
            say(f"({text})")

    return on_wait
