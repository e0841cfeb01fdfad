"""The queue is derived from players and journal, and survives whatever ends the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.journal import Journal, Played, Slot
from evaluator.queue import Queue
from evaluator.settings import EvaluatorSettings
from league.errors import DataCorrupt, NotFound
from league.players import Book, Player, PlayerKind, PlayerState

SETTINGS = EvaluatorSettings(matches_per_opponent=4, milestone_matches=8)


def snapshot(step: int, **changes: object) -> Player:
    values: dict = {"name": f"main@{step}", "digest": f"{step:064x}", "step": step} | changes
    return Player(game="brawl", kind=PlayerKind.SNAPSHOT, **values)


BOT = Player(name="based", game="brawl", kind=PlayerKind.BOT)
PLAYERS = [BOT, snapshot(10), snapshot(20), snapshot(30)]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with_file = Journal(tmp_path / "journal.db")
    yield with_file
    with_file.close()


@pytest.fixture
def queue(journal: Journal) -> Queue:
    return Queue(journal, SETTINGS, ["based"])


def names(players: list[Player]) -> list[str]:
    return [p.name for p in players]


def played(
    match_id: str, pair: int, seat: int, player: str = "main@30", opponent: str = "based"
) -> Played:
    return Played(
        match_id=match_id,
        player=player,
        opponent=opponent,
        book=Book.EVAL,
        pair=pair,
        seat=seat,
        outcome=1.0,
        frames=90,
        finished_at=1.0,
        stats={"damage_dealt": 3.0},
        opponent_stats={"damage_dealt": 1.0},
    )


def test_the_newest_comes_first_and_all_come_in_the_end(queue: Queue) -> None:
    order = []
    while waiting := queue.waiting(PLAYERS):
        order.append(waiting[0].name)
        queue.finish(queue.open(waiting[0], PLAYERS, [], {}))
    assert order == ["main@30", "main@20", "main@10"]
    newer = [*PLAYERS, snapshot(40)]
    assert names(queue.waiting(newer)) == ["main@40"]


def test_a_request_goes_to_the_head_even_when_evaluated(queue: Queue) -> None:
    queue.finish(queue.open(PLAYERS[1], PLAYERS, [], {}))
    assert queue.request("main@10", PLAYERS) == 1
    assert names(queue.waiting(PLAYERS)) == ["main@10", "main@30", "main@20"]
    assert queue.request("main@20", PLAYERS) == 1
    again = queue.open(PLAYERS[1], PLAYERS, [], {("main@10", "based", Book.EVAL): 4})
    assert [e.matches for e in again.plan] == [8, 2], "as many matches again"
    queue.finish(again)
    assert names(queue.waiting(PLAYERS)) == ["main@20", "main@30"]
    with pytest.raises(NotFound):
        queue.request("main@99", PLAYERS)
    with pytest.raises(NotFound):
        queue.request("based", PLAYERS)


def test_a_new_life_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal.db")
    queue = Queue(first, SETTINGS, ["based"])
    gauntlet = queue.open(PLAYERS[3], PLAYERS, [], {})
    first.record([played("a", 0, 0), played("b", 0, 1), played("c", 1, 0)])
    first.settle(["a", "b"], [])
    # No close: this is what a kill leaves.
    second = Journal(tmp_path / "journal.db")
    queue = Queue(second, SETTINGS, ["based", "a bot that came later"])
    assert names(queue.waiting(PLAYERS))[0] == "main@30"
    assert second.pending() == ["c"]
    second.settle(["c"], [])
    again = queue.open(PLAYERS[3], PLAYERS, [], {})
    assert again == gauntlet, "the plan is the one that was begun"
    assert queue.missing(again, {})[0] == Slot("based", Book.EVAL, 1, 1)
    first.close()
    second.close()


def test_a_lost_journal_is_made_up_for_by_the_matchmakers_counts(queue: Queue) -> None:
    gauntlet = queue.open(PLAYERS[3], PLAYERS, [], {})
    greedy = 2
    assert len(queue.missing(gauntlet, {("main@30", "based", Book.EVAL): 4})) == greedy
    assert len(queue.missing(gauntlet, {("main@30", "based", Book.EVAL): 2})) == 2 + greedy


def test_what_the_matchmaker_no_longer_has_is_played_again(queue: Queue, journal: Journal) -> None:
    gauntlet = queue.open(PLAYERS[3], PLAYERS, [], {})
    matches = [played(f"{p}{s}", p, s) for p in (0, 1) for s in (0, 1)]
    journal.record(matches)
    journal.settle([m.match_id for m in matches], [])
    queue.finish(gauntlet)
    assert queue.reconcile({("main@30", "based", Book.EVAL): 4}) == []
    assert queue.reconcile({("main@30", "based", Book.EVAL): 1}) == ["main@30"]
    assert "main@30" in names(queue.waiting(PLAYERS))


def test_becoming_a_milestone_tops_the_gauntlet_up(queue: Queue) -> None:
    queue.finish(queue.open(PLAYERS[3], PLAYERS, [], {}))
    milestone = [*PLAYERS[:3], snapshot(30, milestone=True)]
    assert names(queue.waiting(milestone))[0] == "main@30"
    longer = queue.open(milestone[3], milestone, [], {})
    assert [e.matches for e in longer.plan if e.opponent == "based"] == [8, 4]


def test_other_weights_under_the_same_name_start_anew(queue: Queue, journal: Journal) -> None:
    gauntlet = queue.open(PLAYERS[3], PLAYERS, [], {})
    journal.record([played("a", 0, 0)])
    journal.settle(["a"], [])
    queue.finish(gauntlet)
    changed = snapshot(30, digest="f" * 64)
    assert names(queue.waiting([changed])) == ["main@30"]
    assert len(queue.missing(queue.open(changed, [changed], [], {}), {})) == 4 + 2


def test_skipped_and_quarantined_snapshots_do_not_wait(queue: Queue) -> None:
    queue.skip(PLAYERS[3], "its file is damaged")
    assert "main@30" not in names(queue.waiting(PLAYERS))
    assert queue.gauntlets_done == 0
    queue.request("main@30", PLAYERS)
    assert names(queue.waiting(PLAYERS))[0] == "main@30", "a request tries it again"
    quarantined = snapshot(50, state=PlayerState.QUARANTINED)
    assert "main@50" not in names(queue.waiting([quarantined]))


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a database at all, but long enough to be read as one" * 50)
    with pytest.raises(DataCorrupt, match=r"journal\.db"):
        Journal(path)
