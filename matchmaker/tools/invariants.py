"""What always holds in a league's log: checked by `fsck`, by the running service and after each
test.

Each invariant in SQL selects what breaks it, among the assignments with an ordinal above
``:after``; the service moves that watermark up to its oldest open lease, below which nothing
changes any more.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from league.players import Book
from league.stats.ratings import RatingTable
from matchmaker.state import aggregates
from matchmaker.state.books import Books
from matchmaker.state.history import past_players, wrong_epochs
from matchmaker.store import announced
from matchmaker.store.base import Reader
from matchmaker.tools import redrawing
from matchmaker.tools.gate_checks import wrong_gates

SHOWN = 5
"""How many offenders a finding names."""


@dataclass(frozen=True)
class Invariant:
    """`sql` selects one column: what breaks the rule that `says` states."""

    says: str
    sql: str


INVARIANTS = (
    Invariant(
        "an open lease belongs to the newest incarnation of its worker",
        "SELECT a.match_id FROM assignments a JOIN incarnations i ON i.number = a.incarnation "
        "WHERE a.ordinal > :after AND a.lease_state = 'open' AND i.fenced_by IS NOT NULL",
    ),
    Invariant(
        "only the newest incarnation of a worker is unfenced",
        "SELECT i.number FROM incarnations i WHERE (i.fenced_by IS NULL) != (i.number = "
        "(SELECT max(n.number) FROM incarnations n WHERE n.worker = i.worker)) AND :after >= 0",
    ),
    Invariant(
        "a closed lease has the time it was closed at, an open one has none",
        "SELECT match_id FROM assignments WHERE ordinal > :after "
        "AND (lease_state = 'open') != (closed_at IS NULL)",
    ),
    Invariant(
        "a lease is closed as reported exactly when there is a result",
        "SELECT a.match_id FROM assignments a LEFT JOIN results r USING (ordinal) "
        "WHERE a.ordinal > :after AND (a.lease_state = 'reported') != (r.position IS NOT NULL)",
    ),
    Invariant(
        "a result was reported by the incarnation that held the lease",
        "SELECT r.position FROM results r JOIN assignments a USING (ordinal) "
        "WHERE a.ordinal > :after AND r.incarnation != a.incarnation",
    ),
    Invariant(
        "a match carried on has the seats, seed, category and book of the one it replaces",
        "SELECT a.match_id FROM assignments a LEFT JOIN assignments b ON b.match_id = a.replaces "
        "WHERE a.ordinal > :after AND a.replaces != '' AND (b.ordinal IS NULL OR a.seat0 != b.seat0 "
        "OR a.seat1 != b.seat1 OR a.seed != b.seed OR a.category != b.category OR a.book != b.book)",
    ),
    Invariant(
        "of a match and the one that carries it on one counts at most",
        "SELECT a.match_id FROM assignments a JOIN assignments b ON b.match_id = a.replaces "
        "JOIN results r ON r.ordinal = a.ordinal JOIN results s ON s.ordinal = b.ordinal "
        "WHERE a.ordinal > :after AND a.replaces != '' AND NOT r.failed AND NOT s.failed "
        "AND r.position NOT IN (SELECT position FROM lost_results) "
        "AND s.position NOT IN (SELECT position FROM lost_results)",
    ),
    Invariant(
        "a held-out player is never an opponent in training",
        "SELECT a.match_id FROM assignments a JOIN players p ON p.name IN (a.seat0, a.seat1) "
        "WHERE a.ordinal > :after AND a.mix != '' AND p.held_out",
    ),
    Invariant(
        "a lost result is of the train book",
        "SELECT l.position FROM lost_results l JOIN results r USING (position) "
        "JOIN assignments a USING (ordinal) WHERE a.ordinal > :after AND a.book != 'train'",
    ),
    Invariant(
        "a match between learner and opponent seats the learner where the assignment says",
        "SELECT a.match_id FROM assignments a JOIN incarnations i ON i.number = a.incarnation "
        "WHERE a.ordinal > :after AND a.learner_seat >= 0 "
        "AND i.player != CASE a.learner_seat WHEN 0 THEN a.seat0 ELSE a.seat1 END",
    ),
)


def broken(reader: Reader, after: int = 0) -> list[str]:
    """A sentence for each invariant that assignments above `after` break."""
    findings = []
    for invariant in INVARIANTS:
        found = [row[0] for row in reader.select(invariant.sql, after=after)]
        if found:
            findings.append(_finding(invariant.says, found))
    return findings


def _finding(says: str, found: Sequence[object]) -> str:
    named = ", ".join(str(thing) for thing in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{says}, but not {named}{more}"


def settled_below(reader: Reader) -> int:
    """The watermark: ordinals up to it are closed."""
    oldest_open = reader.select(
        "SELECT min(ordinal) FROM assignments INDEXED BY open_leases WHERE lease_state = 'open'"
    )[0][0]
    return reader.positions()[2] if oldest_open is None else oldest_open - 1


def full_scan(reader: Reader) -> list[str]:
    """Every finding that the file alone can give; none when the league is whole."""
    pages = [row[0] for row in reader.select("PRAGMA integrity_check")]
    findings = [] if pages == ["ok"] else [_finding("the file's pages are whole", pages)]
    orphans = [f"{table} row {row}" for table, row, *_ in reader.select("PRAGMA foreign_key_check")]
    findings += [_finding("every reference finds its row", orphans)] if orphans else []
    findings += broken(reader)
    findings += _events(reader)
    findings += _states(reader)
    findings += wrong_epochs(reader)
    findings += wrong_gates(reader)
    findings += aggregates.differing(reader)
    for says, found in (
        ("a match is what its seed draws from the candidates", list(redrawing.not_redrawn(reader))),
        (
            "opponents are drawn by weights that the log gives",
            list(redrawing.wrong_weights(reader)),
        ),
    ):
        findings += [_finding(says, found)] if found else []
    return findings


def _events(reader: Reader) -> list[str]:
    """Every result was announced once, by an event of its own in logs of older versions."""
    query = "SELECT data_json FROM events WHERE kind = 'result' ORDER BY position"
    spans = [
        (position, position)
        for (text,) in reader.select(query)
        for position in [json.loads(text)["position"]]
    ]
    query = "SELECT data_json FROM events WHERE kind = :kind ORDER BY position"
    spans += [announced.span_of(text) for (text,) in reader.select(query, kind=announced.KIND)]
    results = [
        position for (position,) in reader.select("SELECT position FROM results ORDER BY position")
    ]
    told = [position for first, last in spans for position in range(first, last + 1)]
    if told == results:
        return []
    twice = {position for position, count in Counter(told).items() if count > 1}
    differing = sorted(set(told) ^ set(results) | twice)
    return [_finding("every result has its event", differing)]


def _states(reader: Reader) -> list[str]:
    """Who is active, retired, a candidate or in quarantine is what the events say."""
    told = past_players(reader).players  # but for who entered before events told of that
    differing = [
        player.name for player in reader.players() if told.get(player.name, player) != player
    ]
    return (
        [_finding("a player's state is what the log's events made it", differing)]
        if differing
        else []
    )


def recomputed(reader: Reader) -> dict[Book, RatingTable]:
    """All books' ratings and payoffs, anew from the log."""
    return Books.of(reader).tables


def differing_ratings(reader: Reader, shown: Mapping[Book, RatingTable]) -> list[str]:
    """A sentence for each book whose ratings or counts are not what the log gives, to the last
    bit.
    """
    findings = []
    for book, table in recomputed(reader).items():
        if table.state() != shown[book].state():
            findings.append(
                f"the {book.value} book's ratings recomputed from the log are not those shown"
            )
    return findings
