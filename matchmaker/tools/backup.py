"""Implements ``bin/league backup`` and ``restore``, which copy a run's log and put a copy back."""

from __future__ import annotations

import shlex
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from league.players import PlayerState
from league.runs import finding
from league.runs.blobs import BlobFolder
from league.runs.folder import locked
from matchmaker.store import copies
from matchmaker.store.sqlite import SqliteStore


def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run, running or finished.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, a new file.")],
) -> None:
    """Copies a run's log consistently, also while the run continues."""
    database = finding.database_of(finding.checked_run(run_dir))
    results = copies.backup(database, file)
    print(f"{file} holds the log of {run_dir} up to result {results}")


def restore(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run that is not running.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy that `backup` made.")],
) -> None:
    """Puts a copy of a run's log in its place, and keeps the replaced log in a folder of the run.

    The next start continues from there. docs/operations.md explains how learners continue.
    """
    database = finding.checked_run(run_dir) / finding.DATABASE
    is_run = (run_dir / "run.json").exists()  # else the folder has only a matchmaker
    with closing(locked(run_dir)) if is_run else nullcontext():
        results, replaced = copies.restore(file, database)
    print(f"{database} holds {file} now, up to result {results}")
    if replaced is not None:
        print(f"the log that it replaces is {replaced}")
    blobs = BlobFolder(run_dir / "blobs")
    with closing(SqliteStore(database, read_only=True)) as store, store.read() as reader:
        active = [one for one in reader.players() if one.state is not PlayerState.RETIRED]
    if missing := [one.name for one in active if one.digest and not blobs.has(one.digest)]:
        names = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        print(f"{len(missing)} players have no weights in {blobs.root}: {names}")
    print(f"`bin/start-league --run-dir {shlex.quote(str(run_dir))}` continues from there")
