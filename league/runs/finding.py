"""Finds a run: its folder, its log, and the matchmaker that serves it."""

from __future__ import annotations

import fcntl
import socket
import sys
from pathlib import Path

from league.errors import DataCorrupt, InvalidInput, NotFound, VersionMismatch
from league.runs.files import open_file, read_json

FORMAT = 1
RUNS = Path("runs")
DATABASE = "league.db"
CURVES = "training_curves.png"
WAITING = "waiting"
"""Name of the file in which the supervisor lists the workers that do not run yet."""
LONGEST_ADDRESS = 300


def waiting_workers(run_dir: Path) -> dict[str, tuple[str, float]]:
    """Returns the workers that the supervisor waits for: by name, the reason, and since when in
    Unix seconds. A damaged file counts as no file.
    """
    try:
        found = read_json(run_dir / f"{WAITING}.json").items()
        return {name: (str(text), float(since)) for name, (text, since) in found}
    except (DataCorrupt, TypeError, ValueError):
        return {}


def _newest_first() -> list[Path]:
    files = sorted(RUNS.glob("*/run.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    return [file.parent for file in files]


def newest_run() -> Path:
    """Returns the run folder under runs/ that was started last, and names it on stderr."""
    runs = _newest_first()
    if not runs:
        raise NotFound(
            "there is no run under runs/: name a league with --run-dir DIR or --address HOST:PORT"
        )
    print(f"(the newest run: {runs[0]})", file=sys.stderr, flush=True)
    return runs[0]


def running_league(run_dir: Path | None = None) -> tuple[Path, str]:
    """Returns the folder and the matchmaker's address of a running league.

    It is the league of `run_dir`, by default the newest running league under runs/. Raises
    `NotFound` if there is no such running league.
    """
    for folder in [run_dir] if run_dir else _newest_first():
        if (address := live_address(folder)) is not None:
            return folder, address
    where = f"in {run_dir}" if run_dir else f"under {RUNS}/"
    raise NotFound(f"no league is running {where}: start one with bin/start-league")


def checked_run(run_dir: Path) -> Path:
    """Checks that a folder is a run of this version, and returns it.

    Raises:
        NotFound: it is not a run.
        VersionMismatch: another version made it.
    """
    if not run_dir.is_dir():
        raise NotFound(f"there is no run folder {run_dir}: name one with --run-dir DIR")
    run = read_json(run_dir / "run.json")
    if not run and not (run_dir / DATABASE).exists():
        raise NotFound(
            f"{run_dir} is no run folder (neither run.json nor league.db in it): check --run-dir"
        )
    if run and run.get("format") != FORMAT:
        made_by = run.get("version", "unknown")
        raise VersionMismatch(
            f"{run_dir} has run format {run.get('format')} (made by Kumite {made_by}), this Kumite "
            f"reads format {FORMAT}: use that version, or name another run"
        )
    return run_dir


def database_of(run_dir: Path) -> Path:
    """Returns the path of the run's log, a database. Raises `NotFound` while it is missing."""
    database = run_dir / DATABASE
    if not database.exists():
        raise NotFound(f"{run_dir} has no league.db yet, wait for its start")
    return database


def lock_of(database: Path) -> Path:
    """Returns the file that a log's writer locks. A matchmaker also writes its address there."""
    file = database.resolve()  # a symbolic link leads to the same lock
    return file.with_name(f"{file.name}.lock")


def live_address(run_dir: Path) -> str | None:
    """Returns the address of the matchmaker that serves the folder's own log, if its port answers.

    The matchmaker locks the file that holds its address. The kernel frees this lock when the
    matchmaker's process dies. If the whole folder is copied, the copy of the file is not locked. So
    the address of a killed process, or the address in a copied folder, is never used.
    """
    try:
        with open_file(lock_of(run_dir / DATABASE), LONGEST_ADDRESS) as file:
            address = file.read(LONGEST_ADDRESS).decode(errors="replace")
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=2).close()
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return address
    except (OSError, ValueError, DataCorrupt):
        pass
    return None


def named_run(argument: Path | None, option: Path | None = None) -> Path:
    """Returns the run folder that a command's argument or option names, by default the newest run.

    Raises:
        InvalidInput: the argument and the option are both given.
        NotFound, VersionMismatch: the folder is not a run of this version.
    """
    if argument is not None and option is not None:
        raise InvalidInput("RUN and --run-dir name the same folder: give only one of them")
    return checked_run(argument or option or newest_run())
