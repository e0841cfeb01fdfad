"""Finds the league that a command asks about: a matchmaker's address, or a run folder.

Of a finished run, the matchmaker is started read-only over its database for as long as the command
takes, so every command speaks gRPC and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from league.cli.output import say
from league.client import MatchmakerClient
from league.cluster import tether
from league.cluster.run_folder import FORMAT
from league.errors import DataCorrupt, LeagueError, NotFound, Unavailable, VersionMismatch

RUNS = Path("runs")
WAIT_SECONDS = 10.0
START_SECONDS = 30.0
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


@contextmanager
def connect(args: argparse.Namespace) -> Iterator[MatchmakerClient]:
    """A client of the league that `args` names."""
    if args.address:
        with MatchmakerClient(args.address, wait_seconds=WAIT_SECONDS, on_wait=_say_once()) as client:
            yield client
        return
    run_dir = run_folder(args)
    live = _live_address(run_dir)
    if live is not None:
        with MatchmakerClient(live, wait_seconds=WAIT_SECONDS, on_wait=_say_once()) as client:
            yield client
        return
    with _read_only_matchmaker(run_dir) as address, MatchmakerClient(address) as client:
        yield client


def goes_on(args: argparse.Namespace) -> bool:
    """Whether the league that `args` names has a matchmaker of its own, which can change it."""
    return bool(args.address) or _live_address(run_folder(args)) is not None


def run_folder(args: argparse.Namespace) -> Path:
    """The run folder that `args` names, or the newest; raises `NotFound` or `VersionMismatch`."""
    if args.run_dir is None:
        args.run_dir = _newest_run()  # kept, so that all of a command means the same run
    run_dir: Path = args.run_dir
    if not run_dir.is_dir():
        raise NotFound(f"there is no run folder {run_dir}: name one with --run-dir DIR")
    run = _read_json(run_dir / "run.json")
    if not run and not (run_dir / "league.db").exists():
        raise NotFound(f"{run_dir} is no run folder (neither run.json nor league.db in it): check --run-dir")
    if run and run.get("format") != FORMAT:
        raise VersionMismatch(
            f"{run_dir} has run format {run.get('format')} (made by Kumite {run.get('version', 'unknown')}), "
            f"this one reads format {FORMAT}: use that version"
        )
    return run_dir


def _newest_run() -> Path:
    runs = [file.parent for file in RUNS.glob("*/run.json")]
    if not runs:
        raise NotFound("there is no run under runs/: name a league with --run-dir DIR or --address HOST:PORT")
    newest = max(runs, key=lambda run: (run / "run.json").stat().st_mtime)
    say(f"(the newest run: {newest})")
    return newest


def _read_json(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataCorrupt(f"{path} can't be read as JSON ({error}): restore it from a copy") from None
    if not isinstance(content, dict):
        raise DataCorrupt(f"{path} holds no JSON object: restore it from a copy")
    return content


def _live_address(run_dir: Path) -> str | None:
    """Address of the run's own matchmaker when its process lives and its port answers."""
    announced = _read_json(run_dir / "matchmaker.json")
    address, pid = announced.get("address"), announced.get("pid")
    if not isinstance(address, str) or not isinstance(pid, int) or not _lives(pid):
        return None
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except (OSError, ValueError):
        return None
    return address


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's, but there
        return True
    return True


@contextmanager
def _read_only_matchmaker(run_dir: Path) -> Iterator[str]:
    """Address of a matchmaker that serves the finished run for as long as the block lasts."""
    database = run_dir / "league.db"
    if not database.exists():
        raise NotFound(f"{run_dir} has no league.db yet, so there is nothing to show: wait for its start")
    command = [sys.executable, "-m", "matchmaker", "--db", str(database), "--read-only", "--port", "0"]
    tied = [sys.executable, tether.__file__, str(os.getpid()), *command]
    process = subprocess.Popen(tied, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield f"127.0.0.1:{_port_of(process)}"
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port_of(process: subprocess.Popen[str]) -> int:
    """Waits for the line ``ready PORT``; raises with the process's last words when it ends instead."""
    assert process.stdout is not None
    assert process.stderr is not None
    words: list[str] = []
    drain = threading.Thread(target=lambda: words.extend(process.stderr or ()), daemon=True)
    drain.start()
    alarm = threading.Timer(START_SECONDS, process.kill)
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
    raise _exit_error(process.returncode, last.removeprefix("matchmaker: "))


def _exit_error(code: int, last_words: str) -> LeagueError:
    if code < 0:
        return Unavailable(f"the run's database could not be served within {START_SECONDS:.0f} s: try again")
    return LeagueError(f"the run's database can't be served: {last_words}")


def _say_once() -> Callable[[str], None]:
    said: list[str] = []

    def on_wait(text: str) -> None:
        if not said:
            said.append(text)
            say(f"({text})")

    return on_wait
