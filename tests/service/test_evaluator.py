"""The evaluator against a real matchmaker and the real game, over loopback, in one process."""

from __future__ import annotations

import csv
import os
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from evaluating import BOTS, FIRST, running
from evaluator_league import games, register_snapshot
from waiting import PATIENCE, wait_for

from evaluator.clean import runner
from evaluator.clean.arena import Arena
from evaluator.clean.plan import ALLOCATED
from league.evaluations import EvaluationState
from league.players import Assignment, Book, MatchResult
from league.replay import load_replay, verify
from league.rpc.client import MatchmakerClient
from league.service import pace
from league.status import CORE_WAIT, MOST_CORE_WAIT, STALLED, WorkerStatus


def table(run_dir: Path) -> list[dict[str, str]]:
    path = run_dir / "evaluator" / "evaluation_results.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_snapshot_plays_its_first_matches_and_a_milestone_every_bot(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    register_snapshot(client, tmp_path, 20, parent="main@10", milestone=True)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
        status = run.status()
        assert (status.snapshots_done, list(status.queue)) == (2, [])
        wait_for(lambda: [w.activity for w in client.status().workers] == ["waiting for snapshots"])
    assert run.error is None
    for name in ("main@10", "main@20"):
        assert sum(games(client, Book.EVAL, name).values()) >= FIRST
    assert games(client, Book.EVAL, "main@20")["main@10"] == 6
    assert {name: games(client, Book.EVAL, "main@20")[name] for name in BOTS} == dict.fromkeys(
        BOTS, 4
    )
    assert games(client, Book.GREEDY, "main@20") == dict.fromkeys(BOTS, 2)
    assert games(client, Book.GREEDY, "main@10") == {}, "greedy play is for milestones"
    assert client.status().open_leases == 0
    found = Counter((row["player"], row["opponent"], row["book"]) for row in table(tmp_path))
    assert max(found.values()) == 1
    assert ("main@20", "main@10", "eval") in found
    assert ("main@10", "main@20", "eval") in found


def test_the_table_and_the_replays_agree_with_the_matchmaker(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10, milestone=True)
    with running(client, tmp_path, match_seconds=10.0) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    rows = table(tmp_path)
    assert sum(int(row["losses"]) for row in rows) > 0
    for book in (Book.EVAL, Book.GREEDY):
        cells = {c.column: c for c in client.payoff(book, rows=["main@10"])}
        of_book = {row["opponent"]: row for row in rows if row["book"] == book.value}
        assert of_book.keys() == cells.keys() == set(BOTS)
        for name, row in of_book.items():
            counts = tuple(int(row[key]) for key in ("wins", "draws", "losses"))
            assert counts == (cells[name].wins, cells[name].draws, cells[name].losses)
    replays = [load_replay(path) for path in (tmp_path / "replays").iterdir()]
    opponents = {seat.name for replay in replays for seat in replay.seats} - {"main@10"}
    lost = {row["opponent"] for row in rows if int(row["losses"])}
    assert lost <= opponents <= set(BOTS)
    for replay in replays:
        record = client.match(replay.match_id)
        assert record.result is not None
        assert (record.result.outcome, record.result.frames) == (replay.outcome, replay.frames)
    verify(replays[0])


def test_seats_are_swapped_on_common_seeds(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seated: list[Assignment] = []
    seat = Arena.seat

    def noted(self: Arena, assignments: Sequence[Assignment]) -> None:
        seated.extend(assignments)
        seat(self, assignments)

    monkeypatch.setattr(Arena, "seat", noted)
    register_snapshot(client, tmp_path, 10, milestone=True)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    seeds: dict[str, set[tuple[int, int]]] = {}
    for match in seated:
        if match.book is Book.EVAL:
            names = [player.name for player in match.seats]
            place = names.index("main@10")
            seeds.setdefault(names[1 - place], set()).add((match.seed, place))
    assert seeds.keys() == set(BOTS)
    assert all(of_bot == seeds[BOTS[0]] for of_bot in seeds.values())
    assert len(seeds[BOTS[0]]) == 4
    assert len({seed for seed, _ in seeds[BOTS[0]]}) == 2


def test_requests_are_played_to_their_number_and_bots_may_be_asked_for_too(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    one = client.request_evaluation("main@10", ["based=3,random=1", "constant"], 16, "me")
    two = client.request_evaluation("based", ["random"], 6, "me", Book.GREEDY)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    for asked in (one, two):
        report = client.report(asked.number)
        assert report.evaluation.state is EvaluationState.DONE
        assert report.matches_done == report.matches_total
    met = games(client, Book.EVAL, "main@10")
    assert (met["constant"], met["based"], met["random"]) == (16, 12, 4)
    assert games(client, Book.GREEDY, "based") == {"random": 6}


def test_a_request_that_nobody_can_play_is_cancelled_with_a_reason(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10, frame_skip=1)
    broken = register_snapshot(client, tmp_path, 20)
    (tmp_path / "blobs" / f"{broken.digest}.safetensors").unlink()
    paces = client.request_evaluation("main@10", ["based"], 4, "me")
    gone = client.request_evaluation("main@20", ["based"], 4, "me")
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert run.error is None
    assert client.report(paces.number).evaluation.state is EvaluationState.DONE
    found = client.report(gone.number).evaluation
    assert found.state is EvaluationState.CANCELLED
    assert "main@20" in found.reason


def test_it_says_that_its_matches_wait_for_a_core(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, heard = count(), threading.Event()

    def lacking() -> float:
        """A minute more at each look. The matches last until the league has heard of it."""
        if (look := next(looks)) == 5:
            heard.wait(PATIENCE)
        return 60.0 * look

    def said() -> str:
        """What the evaluator says while it has no core for most of its time."""
        (worker,) = client.status().workers
        return worker.activity if worker.metrics.get(CORE_WAIT, 0.0) > MOST_CORE_WAIT else ""

    monkeypatch.setattr(runner, "seconds_without_core", lacking)
    monkeypatch.setattr(runner, "CORE_SECONDS", 0.0)
    monkeypatch.setattr(runner, "HEARTBEAT_SECONDS", 0.05)
    register_snapshot(client, tmp_path, 10)
    with running(client, tmp_path) as run:
        try:
            wait_for(lambda: client.status().workers)
            assert "core" in wait_for(said)
        finally:
            heard.set()
    assert run.error is None


def test_it_hangs_in_a_later_step_but_not_in_its_first(
    client: MatchmakerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first step loads and compiles, after a time in which it only waited for snapshots."""
    begun, heard, steps = list[Arena](), threading.Event(), Arena.step

    def step(arena: Arena) -> list[MatchResult]:
        begun.append(arena)
        if len(begun) in (1, 4):
            heard.wait(PATIENCE)
            heard.clear()
        return steps(arena)

    def worker() -> WorkerStatus | None:
        return next(iter(client.status().workers), None)

    def next_beat() -> WorkerStatus:
        before = worker()
        return wait_for(lambda: (now := worker()) != before and now)

    monkeypatch.setattr(Arena, "step", step)
    monkeypatch.setattr(pace, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(pace, "TIMES", 1e-6)
    monkeypatch.setattr(runner, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(runner, "HEARTBEAT_SECONDS", 0.05)
    with running(client, tmp_path) as run:
        try:
            for _ in range(3):
                next_beat()
            register_snapshot(client, tmp_path, 10)
            wait_for(lambda: begun)
            next_beat()
            assert STALLED not in next_beat().metrics
            heard.set()
            wait_for(lambda: STALLED in next_beat().metrics)
        finally:
            monkeypatch.setattr(Arena, "step", steps)
            heard.set()
    assert run.error is None


@pytest.mark.skipif(sys.platform != "linux", reason="asks the scheduler of Linux")
@pytest.mark.parametrize("is_starved", [False, True])
def test_matches_give_way_at_once_unless_that_starves_them(
    client: MatchmakerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_starved: bool,
) -> None:
    """The policy of the thread that plays, at each look."""
    policies, waited = list[int](), count()

    def look() -> float:
        policies.append(os.sched_getscheduler(0))
        return 1e6 * next(waited) if is_starved else 0.0

    monkeypatch.setattr(runner, "seconds_without_core", look)
    monkeypatch.setattr(runner, "CORE_SECONDS", 0.0)
    learner = client.open_incarnation("learner-main", "main").number
    register_snapshot(client, tmp_path, 10)

    def is_drained() -> bool:
        client.heartbeat(learner, 10)  # a silent learner would no longer count as training
        return run.status().drained

    with running(client, tmp_path) as run:
        wait_for(is_drained)
    assert run.error is None
    expected = [os.SCHED_IDLE, os.SCHED_OTHER] if is_starved else [os.SCHED_IDLE]
    assert list(dict.fromkeys(policies)) == expected


@pytest.mark.long
def test_what_is_left_of_the_budget_goes_to_pairs_of_its_choice(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    for step in (10, 20, 30):
        parent = f"main@{step - 10}" if step > 10 else ""
        register_snapshot(client, tmp_path, step, parent=parent)
    budget = {"matches_per_snapshot": 48}

    def played() -> int:
        return sum(cell.games for cell in client.payoff(Book.EVAL)) // 2

    with running(client, tmp_path, **budget) as run:
        wait_for(lambda: (status := run.status()).drained and not status.unspent)
    assert run.error is None
    assert 3 * 48 - ALLOCATED < played() <= 3 * 48
    assert games(client, Book.GREEDY, "main@30") == {}


def test_a_start_in_the_middle_plays_what_is_missing(
    client: MatchmakerClient, tmp_path: Path
) -> None:
    register_snapshot(client, tmp_path, 10)
    for _ in range(2):
        before = sum(games(client, Book.EVAL, "main@10").values())
        with running(client, tmp_path, matches_per_snapshot=600) as run:
            wait_for(lambda: sum(games(client, Book.EVAL, "main@10").values()) > before)  # noqa: B023
        assert run.error is None
        played = games(client, Book.EVAL, "main@10")
        assert {row["opponent"]: int(row["matches"]) for row in table(tmp_path)} == played
        assert client.status().open_leases == 0
    assert before < sum(played.values()) < 400


def test_opponents_of_another_pace_are_left_out(client: MatchmakerClient, tmp_path: Path) -> None:
    register_snapshot(client, tmp_path, 10, frame_skip=1)
    register_snapshot(client, tmp_path, 20, parent="main@10", milestone=True)
    with running(client, tmp_path) as run:
        wait_for(lambda: run.status().drained)
    assert games(client, Book.EVAL, "main@20").keys() == set(BOTS)
    assert games(client, Book.EVAL, "main@10").keys() <= set(BOTS)


@pytest.mark.long
def test_evaluators_share_the_work(client: MatchmakerClient, tmp_path: Path) -> None:
    for step in (10, 20, 30, 40):
        register_snapshot(client, tmp_path, step)
    asked = client.request_evaluation("based", ["random", "constant"], 100, "me")
    with running(client, tmp_path) as run, running(client, tmp_path, worker="evaluator-1") as other:
        wait_for(lambda: run.status().drained and other.status().drained)
    assert (run.error, other.error) == (None, None)
    assert games(client, Book.EVAL, "based")["random"] == 100
    assert client.report(asked.number).evaluation.state is EvaluationState.DONE
    workers = Counter(
        client.match(match_id).worker
        for match_id in {replay.stem for replay in (tmp_path / "replays").iterdir()}
    )
    assert workers.keys() == {"evaluator-0", "evaluator-1"}
