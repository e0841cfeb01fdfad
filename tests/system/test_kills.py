"""kill -9 of every process at random moments, under load: nothing acknowledged is lost, nothing
counts twice.

python -m pytest -m slow -s tests/system/test_kills.py      # 200 kills of each, or KUMITE_KILLS
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from killing import Killed, KilledLeague

from league.players import Book
from league.rpc.client import MatchmakerClient
from matchmaker.tools.fsck import fsck

KILLS = int(os.environ.get("KUMITE_KILLS", "200"))

CARRIED_TWICE = """
SELECT old.match_id, new.match_id
FROM assignments new JOIN assignments old ON old.match_id = new.replaces
JOIN results now ON now.ordinal = new.ordinal JOIN results before ON before.ordinal = old.ordinal
WHERE new.replaces != '' AND NOT now.failed AND NOT before.failed
AND now.position NOT IN (SELECT position FROM lost_results)
AND before.position NOT IN (SELECT position FROM lost_results)
"""
COUNTED = """
SELECT count(*) FROM results r JOIN assignments a USING (ordinal)
WHERE a.book = 'train' AND 'main' IN (a.seat0, a.seat1) AND a.seat0 != a.seat1 AND NOT r.failed
AND r.position NOT IN (SELECT position FROM lost_results)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "kills",
    [1, pytest.param(KILLS, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_kills_at_random_moments_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, kills: int
) -> None:
    began, league = time.monotonic(), KilledLeague(tmp_path, kills)
    try:
        league.run()
        assert league.codes == [0, 0], league.learner.said() + league.evaluator.said()
        assert fsck(league.db, league.address)[0] == [], (
            "the log is whole, ratings in memory are the log's"
        )
        told = checked(league)
    finally:
        league.close()
    print(f"\n{told}, {time.monotonic() - began:.0f} s")


def checked(league: KilledLeague) -> str:
    """Compares the replies that workers got with the log; returns the counts in words."""
    stored = dict(
        league.rows(
            "SELECT a.match_id, r.position FROM results r JOIN assignments a USING (ordinal)"
        )
    )
    acknowledged = league.bystander.acknowledged
    assert acknowledged
    missing = {match for match, position in acknowledged.items() if stored.get(match) != position}
    assert not missing, f"{len(missing)} acknowledged results are not where they were said to be"
    counted_once(league)
    assert not league.rows(CARRIED_TWICE), (
        "a match that was carried over a restart counts under both its ids"
    )
    (snapshots,) = league.rows("SELECT count(*) FROM players WHERE kind = 'snapshot'")
    assert snapshots[0]
    settled = clean_matches_hold(league)
    (lost,) = league.rows("SELECT count(*) FROM lost_results")
    kills = ", ".join(words(one) for one in league.all)
    return (
        f"killed: {kills}; {len(acknowledged):,} results acknowledged to a bystander and "
        f"{settled:,} to the evaluator, all in the log once; {len(stored):,} in all, "
        f"{lost[0]:,} of a lost branch; {snapshots[0]} snapshots"
    )


def counted_once(league: KilledLeague) -> None:
    """Each acknowledged game of the bystander counts once in payoffs and ratings; so does each of
    the learner's that no restart took back.
    """
    games = Counter(league.bystander.opponents[match] for match in league.bystander.acknowledged)
    with MatchmakerClient(league.address, wait_seconds=5) as client:
        payoff = {
            cell.column: (cell.wins, cell.games)
            for cell in client.payoff(Book.TRAIN, ["bystander"])
        }
        rated = {rating.player.name: rating.games for rating in client.ratings(Book.TRAIN)}
    assert payoff == {opponent: (number, number) for opponent, number in games.items()}
    assert rated["bystander"] == len(league.bystander.acknowledged)
    assert [(rated["main"],)] == league.rows(COUNTED)


def clean_matches_hold(league: KilledLeague) -> int:
    """Every clean match is one of a pair on its own seed, and of each pair of players at most
    the other halves of a few pairs came again. Returns the number of clean matches.
    """
    logged = league.rows(
        "SELECT a.book, min(a.seat0, a.seat1), max(a.seat0, a.seat1), a.seed, a.seat0 "
        "FROM results r JOIN assignments a USING (ordinal) WHERE a.category = 'gauntlet'"
    )
    assert logged
    assert max(Counter(logged).values()) == 1, "a seed was played twice from the same seat"
    with MatchmakerClient(league.address, wait_seconds=5) as client:
        counted = {
            (book.value, *sorted((cell.row, cell.column))): cell.games
            for book in (Book.EVAL, Book.GREEDY)
            for cell in client.payoff(book)
        }
    assert counted == Counter(row[:3] for row in logged)
    return len(logged)


def words(one: Killed) -> str:
    return f"{one.name} {one.kills} times ({one.unawaited} without waiting until it was ready)"
