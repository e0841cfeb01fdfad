"""Clocks that jump, workers of one name, and results that come forged, twice, late or in another
order.
"""

from __future__ import annotations

import random
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_league import bot, live, played, small_league, snapshot
from waiting import wait_for

from league.clock import ManualClock
from league.players import Book
from league.rpc.client import MatchmakerClient
from matchmaker import limits
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

YEAR = 365 * 86_400.0


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_clock_that_is_set_while_it_runs_ends_no_lease_and_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """With the server's own clock, on a machine whose time a test sets: leases neither run out at
    the jump nor outlive the time that they have.
    """
    monkeypatch.setattr(limits, "SWEEP_SECONDS", 0.05)
    settings, seconds = MatchmakerSettings(), limits.LEASE_SECONDS
    wall, monotonic = ManualClock(), ManualClock(1000.0)
    # the client's own deadlines need the true one
    monkeypatch.setattr(
        "league.clock.time", SimpleNamespace(time=wall.now, monotonic=monotonic.now)
    )

    def passes(seconds: float) -> None:
        wall.advance(seconds)
        monotonic.advance(seconds)

    with (
        MatchmakerServer(tmp_path / "league.db", settings=settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players(
            [bot("constant"), bot("random"), bot("based"), live(), snapshot(1000)]
        )
        incarnation = client.open_incarnation("learner-main", "main").number
        matches = client.acquire_matches(incarnation, 3, "league")
        wall.advance(jump)
        for progress in (1, 2):
            passes(0.9 * seconds)
            server.sweep()
            assert client.status().open_leases == 3
            client.heartbeat(incarnation, progress)
        passes(1.1 * seconds)
        wait_for(lambda: client.status().open_leases == 0)  # the server sweeps by itself
        assert {client.match(match.match_id).lease_state for match in matches} == {"expired"}
        assert report_all(client, incarnation, matches) == [True] * 3


def report_all(client: MatchmakerClient, incarnation: int, matches) -> list[bool]:
    verdicts, _ = client.report_results(incarnation, [played(match) for match in matches])
    return [verdict.accepted for verdict in verdicts]


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_clock_that_is_set_between_two_starts_ends_no_lease_and_keeps_none(
    tmp_path: Path, jump: float
) -> None:
    clock = ManualClock()
    with small_league(tmp_path, clock=clock) as league:
        incarnation = league.open()
        (kept, silent) = league.client.acquire_matches(incarnation, 2, "league")
    clock.advance(jump)
    with small_league(tmp_path, clock=clock) as league:
        seconds = limits.LEASE_SECONDS
        clock.advance(0.9 * seconds)
        assert league.server.sweep() == 0
        assert report_all(league.client, incarnation, [kept]) == [True]
        clock.advance(0.2 * seconds)
        assert league.server.sweep() == 1
        assert league.client.match(silent.match_id).lease_state == "expired"
        assert league.client.heartbeat(incarnation, 10)[1] == clock.now() + seconds


def test_results_count_once_in_whatever_order_they_come(league) -> None:
    """Batches that overlap, repeat and overtake each other, from four threads, each sent several
    times.
    """
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 120, "league")
    results = [played(match, (0.0, 0.5, 1.0)[number % 3]) for number, match in enumerate(matches)]
    rng = random.Random(5)
    batches = [
        (f"batch-{number}", [results[place] for place in rng.sample(range(len(results)), 12)])
        for number in range(30)
    ]
    batches += [("all", results)]
    sent = [batch for batch in batches for _ in range(3)]
    rng.shuffle(sent)
    replies: dict[str, list] = {name: [] for name, _ in batches}
    failures: list[BaseException] = []

    def send(part) -> None:
        try:
            with MatchmakerClient(league.server.address) as client:
                for name, batch in part:
                    replies[name].append(client.report_results(incarnation, batch, request_id=name))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(sent[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for name, answers in replies.items():
        assert len(answers) == 3
        assert answers[0] == answers[1] == answers[2], (
            f"{name}: a repeated call gets its first reply"
        )
    positions = {}
    for (verdicts, _), *_ in replies.values():
        for verdict in verdicts:
            assert verdict.accepted
            positions.setdefault(verdict.match_id, set()).add(verdict.log_position)
    assert sorted(place for (place,) in positions.values()) == list(range(1, 121))
    assert league.client.status().log_position == 120
    assert sum(rating.games for rating in league.client.ratings(Book.TRAIN)) == 240
