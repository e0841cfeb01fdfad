"""`bin/matchmaker --read-only --at TIME`: whoever asks hears of nothing that came later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from exploiter_league import exploiter_league, wins_always
from ratings_league import BOTS, train
from small_league import SmallLeague, learner_wins, played, small_league, snapshot

from league.errors import InvalidInput, NotFound
from league.players import Vitals
from league.rpc.client import MatchmakerClient
from league.service.settings import OperationsSettings
from league.stages import Place, Stage
from matchmaker.api.server import MatchmakerServer


@contextmanager
def past(folder: Path, at: str) -> Iterator[MatchmakerClient]:
    with (
        MatchmakerServer(folder / "league.db", read_only=True, at=at) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        yield client


def told(client: MatchmakerClient, matches: list[str]) -> dict[str, Any]:
    """What a client hears of a league, but for the service's own state."""
    status = client.status()
    # the log keeps no order of them
    shares = tuple(sorted(status.shares, key=lambda share: share.category))
    status = replace(status, vitals=Vitals(), shares=shares)
    return {
        "status": status,
        "curricula": client.curricula(),
        "gates": client.gates(certificates=True),
        "matches": [client.match(match_id) for match_id in matches],
        "players": client.players(),
    }


def events(league: SmallLeague) -> list[Any]:
    with league.server.store.read() as reader:
        return reader.events(0, 10**6)


def moments(league: SmallLeague, matches: list[str]) -> dict[str, Any]:
    """All that is told now, at a time of its own."""
    league.clock.advance(10.0)
    now = told(league.client, matches) | {"events": events(league)}
    league.clock.advance(10.0)
    return {repr(league.clock.now() - 10.0): now}


def test_status_matches_and_events_are_those_of_then(tmp_path: Path) -> None:
    kept: dict[str, Any] = {}
    stage = Stage(name="all", mix="one", max_steps=100)
    with small_league(tmp_path, mixes=BOTS) as league:
        worker = league.open()
        league.client.heartbeat(worker, 1, 500, "one", "rollout", {"rate/steps_per_second": 3.0})
        league.client.enter_stage(worker, 500, [stage], Place(index=0, since_step=500))
        train(league, worker, 4, step=400)
        late, open_one, released = league.client.acquire_matches(worker, 3, "one")
        seen = [late.match_id, open_one.match_id, released.match_id]
        kept |= moments(league, seen)  # 0: all three are open
        league.client.release_matches(worker, [released.match_id], "not wanted")
        league.clock.advance(400.0)
        league.server.sweep()
        kept |= moments(league, seen)  # 1: two have expired, one was handed back
        league.client.report_results(worker, [played(late, learner_wins(late))])
        kept |= moments(league, seen)  # 2: one came late
        again = league.client.open_incarnation("learner-main", "main", 0, 4)
        assert again.lost_results == 1
        later = league.client.acquire_matches(again.number, 2, "one")
        league.client.heartbeat(again.number, 1, 900, "one", "update")
        kept |= moments(league, seen)  # 3: which a restart took back
        league.client.register_players([snapshot(3000)])
        league.client.report_results(again.number, [played(later[0], 1.0)])
    assert len(kept) == 4
    for at, then in kept.items():
        with past(tmp_path, at) as client:
            now = told(client, seen)
            assert now == {name: then[name] for name in now}, at
            assert list(client.watch()) == then["events"]
            assert list(client.watch(-1)) == []
            for match in later:
                if then is not list(kept.values())[-1]:
                    with pytest.raises(NotFound, match="there is no match"):
                        client.match(match.match_id)
    states = [[match.lease_state for match in then["matches"]] for then in kept.values()]
    assert states[0] == ["open"] * 3
    assert states[1] == ["expired", "expired", "released"]
    assert [then["matches"][0].lost_branch for then in kept.values()] == [False, False, False, True]


def test_a_later_beat_tells_nothing_of_then_but_the_mix_was_drawn_by(tmp_path: Path) -> None:
    with small_league(tmp_path, mixes=BOTS) as league:
        worker = league.open()
        train(league, worker, 2)
        league.client.heartbeat(worker, 1, 500, "one", "rollout", {"rate/steps_per_second": 3.0})
        at = league.clock.now() + 5.0
        league.clock.advance(10.0)
        league.client.heartbeat(worker, 2, 900, "other", "update", {"rate/steps_per_second": 9.0})
    with past(tmp_path, repr(at)) as client:
        (learner,) = client.status().workers
        assert (learner.step, learner.mix, learner.activity, learner.metrics) == (0, "one", "", {})


def test_behind_a_log_position_are_no_results_that_were_reported_with_it(tmp_path: Path) -> None:
    with small_league(tmp_path, mixes=BOTS) as league:
        league.play(league.open(), 10, mix="one")
    with past(tmp_path, "4") as client:
        results = [event for event in client.watch() if event.kind == "result"]
        assert len(results) == 4
        assert client.status().log_position == 4


def test_a_gate_shows_what_it_had_counted_then(tmp_path: Path) -> None:
    kept: dict[str, Any] = {}
    with exploiter_league(tmp_path) as league:
        gate = league.freeze(league.begin(), 500)
        for _ in range(2):
            gate = league.play(gate, partial(wins_always, who=gate.candidate), matches=4)
            kept |= moments(league.small, [])
        league.to_the_end(gate, wins_always)
    counted = []
    for at, then in kept.items():
        with past(tmp_path, at) as client:
            assert client.gates(certificates=True) == then["gates"]
            (shown,) = client.gates(open_only=True)
            counted.append(shown.victims[0].wins)
    assert counted == [4, 8]


def test_metrics_of_the_past_are_refused(tmp_path: Path) -> None:
    with small_league(tmp_path):
        pass
    operations = OperationsSettings(matchmaker_metrics_port=1)
    with pytest.raises(InvalidInput, match="--at shows it as it was: leave out the metrics port"):
        MatchmakerServer(
            tmp_path / "league.db", read_only=True, at="2100-01-01", operations=operations
        )
