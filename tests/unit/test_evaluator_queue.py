"""The queue follows from players, the report and the log's counts."""

from __future__ import annotations

import pytest

from evaluator.queue import Queue
from evaluator.settings import EvaluatorSettings
from league.errors import NotFound
from league.players import Book, Player, PlayerKind, PlayerState


def snapshot(step: int, **changes: object) -> Player:
    values: dict = {"name": f"main@{step}", "digest": f"{step:064x}", "step": step} | changes
    return Player(game="brawl", kind=PlayerKind.SNAPSHOT, **values)


PLAYERS = [
    Player(name="based", game="brawl", kind=PlayerKind.BOT),
    *map(snapshot, (10, 20, 30)),
]
COUNTED = {("main@30", "based", Book.EVAL): 4, ("main@30", "based", Book.GREEDY): 2}
ROWS = [
    {
        "player": "main@30",
        "opponent": "based",
        "book": book,
        "matches": matches,
        "finished_at": "2026-11-21T14:00:00+00:00",
    }
    for book, matches in (("eval", "4"), ("greedy", "2"))
]


@pytest.fixture
def queue() -> Queue:
    return Queue(EvaluatorSettings(matches_per_opponent=4, milestone_matches=8), ["based"])


def names(players: list[Player]) -> list[str]:
    return [p.name for p in players]


def test_the_newest_comes_first_and_all_come_in_the_end(queue: Queue) -> None:
    order = []
    while waiting := queue.waiting(PLAYERS):
        order.append(waiting[0].name)
        queue.finish(waiting[0])
    assert order == ["main@30", "main@20", "main@10"]
    assert names(queue.waiting([*PLAYERS, snapshot(40)])) == ["main@40"]
    quarantined = snapshot(50, state=PlayerState.QUARANTINED)
    assert queue.waiting([*PLAYERS, quarantined]) == []


def test_a_request_goes_to_the_head_even_when_evaluated(queue: Queue) -> None:
    queue.finish(PLAYERS[1])
    assert queue.request("main@10", PLAYERS) == 1
    assert names(queue.waiting(PLAYERS)) == ["main@10", "main@30", "main@20"]
    queue.request("main@20", PLAYERS)
    again = queue.plan(PLAYERS[1], PLAYERS, [], {("main@10", "based", Book.EVAL): 5})
    assert [e.matches for e in again] == [8, 2], "as many matches again"
    queue.finish(PLAYERS[1])
    assert names(queue.waiting(PLAYERS)) == ["main@20", "main@30"]
    for name in ("main@99", "based"):
        with pytest.raises(NotFound):
            queue.request(name, PLAYERS)


def test_a_restart_resumes_from_the_report(queue: Queue) -> None:
    assert queue.resume(ROWS, PLAYERS, COUNTED) == []
    assert (names(queue.waiting(PLAYERS)), queue.gauntlets_done) == (["main@20", "main@10"], 1)


def test_rows_without_an_end_are_of_a_gauntlet_that_goes_on(queue: Queue) -> None:
    broken_off = [ROWS[0], ROWS[1] | {"finished_at": ""}]
    assert queue.resume(broken_off, PLAYERS, COUNTED) == []
    assert names(queue.waiting(PLAYERS))[0] == "main@30"


def test_what_the_matchmaker_no_longer_has_is_played_again(queue: Queue) -> None:
    assert queue.resume(ROWS, PLAYERS, COUNTED | {("main@30", "based", Book.EVAL): 1}) == [
        "main@30"
    ]
    assert names(queue.waiting(PLAYERS))[0] == "main@30"


@pytest.mark.parametrize("restarted", [False, True])
def test_becoming_a_milestone_tops_the_gauntlet_up(queue: Queue, restarted: bool) -> None:
    if restarted:
        queue.resume(ROWS, PLAYERS, COUNTED)
    else:
        queue.finish(PLAYERS[3])
    milestone = [*PLAYERS[:3], snapshot(30, milestone=True)]
    assert names(queue.waiting(milestone))[0] == "main@30"
    longer = queue.plan(milestone[3], milestone, [], COUNTED)
    assert [e.matches for e in longer if e.opponent == "based"] == [8, 4]


def test_other_weights_under_the_same_name_start_afresh(queue: Queue) -> None:
    queue.finish(PLAYERS[3])
    assert names(queue.waiting([snapshot(30, digest="f" * 64)])) == ["main@30"]


def test_a_skipped_snapshot_waits_for_a_request(queue: Queue) -> None:
    queue.skip(PLAYERS[3])
    assert "main@30" not in names(queue.waiting(PLAYERS))
    assert queue.gauntlets_done == 0
    queue.request("main@30", PLAYERS)
    assert names(queue.waiting(PLAYERS))[0] == "main@30"
