"""``bin/league backup``: a consistent copy of a run's log, made while the matchmaker goes on."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from league.errors import AlreadyExists, InvalidInput
from league.runs import finding
from matchmaker.store.faults import as_league_errors
from matchmaker.store.sqlite import SqliteStore


def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run, running or finished.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, a new file.")],
) -> None:
    """Copies a run's log consistently, also while the run continues."""
    database = finding.database_of(finding.checked_run(run_dir))
    results = backup(database, file)
    print(f"{file} holds the log of {run_dir} up to result {results}")


def backup(database: Path, copy: Path) -> int:
    """Copies a league's log as it is at one moment; a matchmaker that writes it is not held up.

    The copy is one file, whole or not there at all.

    Returns:
        The position of its newest result.

    Raises:
        AlreadyExists: there is something at `copy`.
        StorageFull, DataCorrupt, VersionMismatch: as opening a log does.
    """
    if copy.exists():
        raise AlreadyExists(f"{copy} is there already: name another file, or move it away")
    if not copy.parent.is_dir():
        raise InvalidInput(f"{copy} can't be written: there is no folder {copy.parent}")
    SqliteStore(database, read_only=True).close()  # says in a sentence what is wrong with it
    handle, temporary = tempfile.mkstemp(dir=copy.parent, prefix=f".{copy.name}-")
    os.close(handle)
    try:
        with as_league_errors(copy):
            results = _copied(database, Path(temporary))
        os.link(temporary, copy)  # never over a file that came meanwhile
    except FileExistsError:
        raise AlreadyExists(
            f"{copy} is there already: name another file, or move it away"
        ) from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return results


def _copied(database: Path, copy: Path) -> int:
    source = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        # else it opens with two more files beside it
        target.execute("PRAGMA journal_mode = DELETE")
        (results,) = target.execute("SELECT ifnull(max(position), 0) FROM results").fetchone()
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    return int(results)
