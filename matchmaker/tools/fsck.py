"""``bin/league fsck`` and `python -m matchmaker.tools.fsck --db PATH`: is this league's log
whole?
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from league.errors import LeagueError
from league.runs import finding
from league.security.credentials import Credentials, of_run
from league.security.flags import add_client_flags, client_credentials
from matchmaker.store.base import Reader
from matchmaker.store.sqlite import SqliteStore
from matchmaker.tools import invariants
from matchmaker.tools.recompute import differing_from_shown


def fsck(
    db: Path, address: str = "", credentials: Credentials | None = None
) -> tuple[list[str], str]:
    """Checks a league's file, and the ratings that the service at `address` shows when one is
    given.

    Returns:
        Findings, one sentence each, none when the league is whole; and a line of what it holds.
    """
    store = SqliteStore(db, read_only=True)
    try:
        with store.read() as reader:
            findings, summary = invariants.full_scan(reader), _summary(reader)
        if address:
            findings += differing_from_shown(store, address, credentials)
        return findings, summary
    finally:
        store.close()


def _summary(reader: Reader) -> str:
    counts = {
        table: reader.select(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("players", "assignments", "results", "lost_results")
    }
    open_leases = len(reader.open_assignments())
    return (
        f"{counts['players']} players, {counts['assignments']} matches assigned, {open_leases} leases open, "
        f"{counts['results']} results, {reader.positions()[1]} events{_lost(counts['lost_results'])}"
    )


def _lost(count: int) -> str:
    """Results that the ratings leave out, in words: nothing is missing from the log."""
    if not count:
        return ""
    return f"; {count} of the results don't count: a restart went back to a checkpoint before them"


def command(
    run: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="The run (default: the newest in runs/).")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The same, as other commands take it.")
    ] = None,
) -> int:
    """Checks whether a run's log is whole: every invariant, every draw, every rating.

    While the run continues, this also checks the ratings that its matchmaker shows.
    """
    folder = finding.named_run(run, run_dir)
    shown = of_run(folder, "read")
    return _told(finding.database_of(folder), finding.live_address(folder) or "", shown)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the findings; 0 when there are none, else 1."""
    parser = argparse.ArgumentParser(
        prog="matchmaker.tools.fsck", description="Checks a league's log."
    )
    parser.add_argument("--db", type=Path, required=True, help="the league's SQLite file")
    parser.add_argument(
        "--address", default="", help="HOST:PORT of a matchmaker whose ratings to compare"
    )
    add_client_flags(parser)
    options = parser.parse_args(arguments)
    try:
        return _told(
            options.db, options.address, client_credentials(options, "read", options.db.parent)
        )
    except LeagueError as error:
        print(f"matchmaker.fsck: {error}", file=sys.stderr)
        return error.exit_code


def _told(db: Path, address: str, credentials: Credentials) -> int:
    findings, summary = fsck(db, address, credentials)
    for line in findings:
        print(line)
    print(f"{db}: {'BROKEN' if findings else 'whole'}; {summary}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
