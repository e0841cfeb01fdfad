"""`python -m matchmaker.fsck --db PATH`: is this league's log whole?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from league.client import MatchmakerClient
from league.errors import LeagueError
from league.players import Book
from league.ratings import RatingTable
from matchmaker import invariants
from matchmaker.store.base import Reader
from matchmaker.store.sqlite import SqliteStore


def fsck(db: Path, address: str = "") -> tuple[list[str], str]:
    """Checks a league's file, and the ratings that the service at `address` shows when one is given.

    Returns:
        Findings, one sentence each, none when the league is whole; and a line of what it holds.
    """
    store = SqliteStore(db, read_only=True)
    try:
        with store.read() as reader:
            findings = invariants.full_scan(reader)
            if address:
                findings += _shown_ratings(reader, invariants.recomputed(reader), address)
            return findings, _summary(reader)
    finally:
        store.close()


def _shown_ratings(reader: Reader, tables: dict[Book, RatingTable], address: str) -> list[str]:
    """Compares to the last bit. A service that took results meanwhile is told apart by its position."""
    findings = []
    players = {player.name: player for player in reader.players()}
    with MatchmakerClient(address, wait_seconds=5) as client:
        for book, table in tables.items():
            shown = [(r.player.name, r.mu, r.sigma, r.wins, r.draws, r.losses) for r in client.ratings(book)]
            wanted = [
                (r.player.name, r.mu, r.sigma, r.wins, r.draws, r.losses) for r in table.leaderboard(players)
            ]
            if shown != wanted:
                findings.append(f"the {book.value} ratings shown at {address} are not those of the log")
        if client.status().log_position != reader.positions()[0]:
            findings.append(f"the service at {address} went on meanwhile: check again when it rests")
    return findings


def _summary(reader: Reader) -> str:
    counts = {
        table: reader.select(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("players", "assignments", "results", "lost_results", "events")
    }
    open_leases = len(reader.open_assignments())
    return (
        f"{counts['players']} players, {counts['assignments']} matches assigned, {open_leases} leases open, "
        f"{counts['results']} results, {counts['events']} events{_lost(counts['lost_results'])}"
    )


def _lost(count: int) -> str:
    """Results that the ratings leave out, in words: nothing is missing from the log."""
    if not count:
        return ""
    return f"; {count} of the results don't count: a restart went back to a checkpoint before them"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the findings; 0 when there are none, else 1."""
    parser = argparse.ArgumentParser(prog="matchmaker.fsck", description="Checks a league's log.")
    parser.add_argument("--db", type=Path, required=True, help="the league's SQLite file")
    parser.add_argument("--address", default="", help="HOST:PORT of a matchmaker whose ratings to compare")
    options = parser.parse_args(arguments)
    try:
        findings, summary = fsck(options.db, options.address)
    except LeagueError as error:
        print(f"matchmaker.fsck: {error}", file=sys.stderr)
        return error.exit_code
    for finding in findings:
        print(finding)
    print(f"{options.db}: {'BROKEN' if findings else 'whole'}; {summary}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
