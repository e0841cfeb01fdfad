"""``bin/league backup``: copies a run's log consistently while the matchmaker runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.runs import finding
from matchmaker.store.copies import backup


def command(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A run, running or finished.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy, a new file.")],
) -> None:
    """Copies a run's log consistently, also while the run continues."""
    database = finding.database_of(finding.checked_run(run_dir))
    results = backup(database, file)
    print(f"{file} holds the log of {run_dir} up to result {results}")
