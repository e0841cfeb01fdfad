"""States the invariants of a league's log in SQL. `fsck` and the running service check them.

Each query selects the rows that break a rule, among the assignments with an ordinal above the
watermark ``:after``. An ordinal is the number of an assigned match. The running service sets the
watermark just below the oldest match with an open lease. The rows up to there never change, so they
need not be checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlite_utils import Database

from league.errors import plain
from league.ids import SnapshotName
from league.players import PlayerKind
from matchmaker.store.copies import player_states
from matchmaker.store.schema import migrations
from matchmaker.store.transaction import Reader

SHOWN = 5
"""Largest number of rows that a finding names."""
INVARIANTS = {
    "an open lease belongs to the newest incarnation of its worker": """
        SELECT a.match_id FROM assignments a JOIN incarnations i ON i.number = a.incarnation
        WHERE a.ordinal > :after AND a.lease_state = 'open' AND i.fenced_by IS NOT NULL""",
    "only the newest incarnation of a worker is unfenced": """
        SELECT i.number FROM incarnations i
        WHERE (i.fenced_by IS NULL) != (i.number = (SELECT max(n.number) FROM incarnations n WHERE
        n.worker = i.worker)) AND :after >= 0""",
    "a closed lease has the time it was closed at, an open one has none": """
        SELECT match_id FROM assignments
        WHERE ordinal > :after AND (lease_state = 'open') != (closed_at IS NULL)""",
    "a lease ends at its limit at the latest": """
        SELECT match_id FROM assignments WHERE ordinal > :after AND lease_deadline > lease_limit""",
    "an open lease has no reason why it was closed": """
        SELECT match_id FROM assignments
        WHERE ordinal > :after AND lease_state = 'open' AND close_reason != ''""",
    "a lease was closed when its result came": """
        SELECT a.match_id FROM assignments a JOIN results r USING (ordinal)
        WHERE a.ordinal > :after AND a.lease_state = 'reported' AND (a.close_reason != '' OR
        a.closed_at IS NOT r.received_at)""",
    "a lease is closed as reported exactly when there is a result": """
        SELECT a.match_id FROM assignments a LEFT JOIN results r USING (ordinal)
        WHERE a.ordinal > :after AND (a.lease_state = 'reported') != (r.position IS NOT NULL)""",
    "a result was reported by the incarnation that held the lease": """
        SELECT r.position FROM results r JOIN assignments a USING (ordinal)
        WHERE a.ordinal > :after AND r.incarnation != a.incarnation""",
    "a carried match has the seats, seed, category and book of the one it replaces": """
        SELECT a.match_id FROM assignments a LEFT JOIN assignments b ON b.match_id = a.replaces
        WHERE a.ordinal > :after AND a.replaces != '' AND (b.ordinal IS NULL OR (a.seat0, a.seat1,
        a.seed, a.category, a.book) != (b.seat0, b.seat1, b.seed, b.category, b.book))""",
    "a match and the one that replaces it do not both count": """
        SELECT a.match_id FROM assignments a JOIN assignments b ON b.match_id = a.replaces JOIN
        results r ON r.ordinal = a.ordinal JOIN results s ON s.ordinal = b.ordinal
        WHERE a.ordinal > :after AND a.replaces != '' AND NOT r.failed AND NOT s.failed AND
        r.position NOT IN (SELECT position FROM lost_results) AND s.position NOT IN (SELECT position
        FROM lost_results)""",
    "a held-out player is never an opponent in training": """
        SELECT a.match_id FROM assignments a JOIN players p ON p.name IN (a.seat0, a.seat1)
        WHERE a.ordinal > :after AND a.mix != '' AND p.held_out""",
    "a lost result is of the train book": """
        SELECT l.position FROM lost_results l JOIN results r USING (position) JOIN assignments a
        USING (ordinal)
        WHERE a.ordinal > :after AND a.book != 'train'""",
    "a match between learner and opponent seats the learner where the assignment says": """
        SELECT a.match_id FROM assignments a JOIN incarnations i ON i.number = a.incarnation
        WHERE a.ordinal > :after AND a.learner_seat >= 0 AND i.player != CASE a.learner_seat WHEN 0
        THEN a.seat0 ELSE a.seat1 END""",
    "a player is of the league's game": """
        SELECT name FROM players
        WHERE game IS NOT (SELECT value FROM meta WHERE key = 'game') AND :after >= 0""",
}
"""The query for each rule. It selects the rows that break the rule, in a single column."""


def broken(reader: Reader, after: int = 0) -> list[str]:
    """Returns a sentence for each invariant that an assignment with an ordinal above `after`
    breaks.
    """
    findings = []
    for says, sql in INVARIANTS.items():
        if rows := [row[0] for row in reader.select(sql, after=after)]:
            findings.append(finding(says, rows))
    return findings


def broken_pages(reader: Reader) -> Iterator[str]:
    """Yields a sentence if SQLite calls the file malformed."""
    answer = reader.select("PRAGMA integrity_check")
    lines = [line for (text,) in answer for line in text.splitlines() if line[:3] != "***"]
    if lines != ["ok"]:
        yield finding("the file's pages are whole", lines)


def damaged_rows(reader: Reader) -> Iterator[str]:
    """Yields a sentence if rows have changed since they were written."""
    if damaged := list(reader.unverified().damaged_rows()):
        yield finding("a row is what was written", damaged)


def whole_file(reader: Reader) -> Iterator[str]:
    """Checks the rules about the whole file, and yields a sentence for each broken rule."""
    fresh, tables = Database(memory=True), "SELECT type, name, tbl_name, sql FROM sqlite_master"
    migrations.apply(fresh)
    differing = set(reader.select(tables)).symmetric_difference(fresh.execute(tables))
    if names := sorted({name for _, name, *_ in differing}):
        yield finding("tables, indexes and triggers are those of a new log", names)
    if orphans := [f"{table} row {row}" for table, row, *_ in reader.select(_ORPHANS)]:
        yield finding("every reference finds its row", orphans)
    if gaps := [name for name, rows, last in reader.select(_NUMBERS) if rows != (last or 0)]:
        yield finding("rows are numbered from 1 without gaps", gaps)
    yield from broken(reader)
    players, states = reader.players(), player_states(reader)
    if strangers := [
        player.name
        for player in players
        if states.get(player.name) != (player.state, player.milestone)
    ]:
        yield finding("a player's state is what the log's events made it", strangers)
    if misnamed := [
        player.name
        for player in players
        if player.kind is PlayerKind.SNAPSHOT
        and SnapshotName.parse(player.name).step != player.step
    ]:
        yield finding("a snapshot has the step that its name says", misnamed)


_ORPHANS = "PRAGMA foreign_key_check"
_NUMBERS = """
SELECT 'players', count(*), max(ordinal) FROM players
UNION ALL SELECT 'incarnations', count(*), max(number) FROM incarnations
UNION ALL SELECT 'draws', count(*), max(number) FROM draws
UNION ALL SELECT 'assignments', count(*), max(ordinal) FROM assignments
UNION ALL SELECT 'results', count(*), max(position) FROM results
UNION ALL SELECT 'events', count(*), max(position) FROM
  (SELECT position FROM events UNION ALL SELECT event_position FROM results)
"""


def finding(says: str, values: Sequence[object]) -> str:
    """Returns a sentence with the rule and the first rows that break it."""
    named = ", ".join(plain(str(value)) for value in values[:SHOWN])
    more = f" and {len(values) - SHOWN} more" if len(values) > SHOWN else ""
    return f"{says}, but not {named}{more}"


def settled_below(reader: Reader) -> int:
    """Returns the watermark for later checks: the ordinal up to which all leases are closed."""
    oldest_open = reader.select(
        "SELECT min(ordinal) FROM assignments INDEXED BY open_leases WHERE lease_state = 'open'"
    )[0][0]
    return reader.positions()[2] if oldest_open is None else oldest_open - 1
