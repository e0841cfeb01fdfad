"""kill -9 of every process at random moments, under load: nothing acknowledged is lost, nothing counts twice.

python -m pytest -m slow -s tests/system/test_kills.py      # 200 kills of each, or KUMITE_KILLS
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from killing import Killed, KilledLeague

from matchmaker.fsck import fsck

KILLS = int(os.environ.get("KUMITE_KILLS", "200"))


@pytest.mark.parametrize(
    "kills",
    [2, pytest.param(KILLS, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_kills_at_random_moments_lose_nothing_and_count_nothing_twice(tmp_path: Path, kills: int) -> None:
    began, league = time.monotonic(), KilledLeague(tmp_path, kills)
    try:
        league.run()
        assert league.codes == [0, 0], league.learner.said() + league.evaluator.said()
        assert fsck(league.db, league.address)[0] == [], "the log is whole, ratings in memory are the log's"
        told = checked(league)
    finally:
        league.close()
    print(f"\n{told}, {time.monotonic() - began:.0f} s")


def checked(league: KilledLeague) -> str:
    """Compares what workers were told with the log; returns the counts in words."""
    stored = dict(
        league.rows("SELECT a.match_id, r.position FROM results r JOIN assignments a USING (ordinal)")
    )
    acknowledged = league.bystander.acknowledged
    assert acknowledged
    missing = {match for match, position in acknowledged.items() if stored.get(match) != position}
    assert not missing, f"{len(missing)} acknowledged results are not where they were said to be"
    (by_ordinal,) = league.rows("SELECT count(*), count(DISTINCT ordinal) FROM results")
    assert by_ordinal[0] == by_ordinal[1] == len(stored)
    (snapshots,) = league.rows("SELECT count(*) FROM players WHERE kind = 'snapshot'")
    assert snapshots[0]
    settled = gauntlets_hold(league, stored)
    (lost,) = league.rows("SELECT count(*) FROM lost_results")
    kills = ", ".join(words(one) for one in league.all)
    return (
        f"killed: {kills}; {len(acknowledged):,} results acknowledged to a bystander and {settled:,} to the "
        f"evaluator, all in the log once; {len(stored):,} in all, {lost[0]:,} of a lost branch; "
        f"{snapshots[0]} snapshots"
    )


def gauntlets_hold(league: KilledLeague, stored: dict[object, object]) -> int:
    """Every match that the evaluator was told is taken is in the log, and no other of a gauntlet is; one that
    is done has as many as planned. Returns how many it was told."""
    taken = league.journal("SELECT match_id, player, opponent, book FROM matches WHERE accepted")
    plans = league.journal("SELECT player, plan_json FROM gauntlets WHERE state = 'done'")
    assert taken
    assert plans
    logged = league.rows(
        "SELECT a.match_id FROM results r JOIN assignments a USING (ordinal) WHERE a.category = 'gauntlet'"
    )
    assert {match for match, *_ in taken} == {match for (match,) in logged} <= stored.keys()
    played = Counter(tuple(row) for _, *row in taken)
    for player, plan in plans:
        for opponent, book, matches in json.loads(plan):
            assert played[player, opponent, book] == matches, (player, opponent, book)
    return len(taken)


def words(one: Killed) -> str:
    return f"{one.name} {one.kills} times ({one.unawaited} without waiting until it was ready)"
