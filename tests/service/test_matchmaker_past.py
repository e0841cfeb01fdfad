"""The league after a restart, and at an earlier moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exploiter_league import exploiter_league, wins_always
from ratings_league import BOTS, at_step, books, pair, random_outcome, train
from small_league import SmallLeague, learner_wins, played, report, small_league, snapshot

from league.errors import InvalidInput, NotFound
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.service.settings import OperationsSettings
from league.stages import Place, Stage
from league.status import Vitals
from matchmaker.api.server import MatchmakerServer
from matchmaker.store.copies import moment_of


@contextmanager
def past(folder: Path, at: str | None) -> Iterator[MatchmakerClient]:
    with (
        MatchmakerServer(folder / "league.db", read_only=True, at=at) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        yield client


def seen(client: MatchmakerClient, matches: list[str]) -> dict[str, Any]:
    """What a client sees of a league, but for the service's own state."""
    status = client.status()
    shares = tuple(sorted(status.shares, key=lambda share: share.category))
    workers = tuple(replace(worker, node="") for worker in status.workers)  # the log has no nodes
    return {
        "status": replace(status, vitals=Vitals(), shares=shares, workers=workers),
        "boards": {book: client.ratings(book) for book in Book},
        "payoff": client.payoff(Book.TRAIN),
        "anchors": client.anchors(),
        "curricula": client.curricula(),
        "gates": client.gates(certificates=True),
        "matches": [client.match(match_id) for match_id in matches],
        "players": client.players(),
    }


class Moments:
    """What was seen at which time; no two moments have the same time."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, dict[str, dict[str, Any]]()

    def keep(self, league: SmallLeague, matches: list[str] | None = None) -> None:
        league.clock.advance(10.0)
        with league.server.store.read() as reader:
            events = reader.events(0, 10**6)
        now = seen(league.client, matches or []) | {"events": events}
        self.seen[repr(league.clock.now())] = now
        league.clock.advance(10.0)

    def check(self, matches: list[str] | None = None) -> None:
        for at, then in self.seen.items():
            with past(self.folder, at) as client:
                now = seen(client, matches or []) | {"events": list(client.watch())}
                assert list(client.watch(-1)) == []
            assert now == then, at


def lived(league: SmallLeague, seed: int = 9) -> None:
    """Everything that ratings depend on."""
    incarnation = league.open()
    train(league, incarnation, 20, step=10_000)
    league.client.register_players([snapshot(10_000, parent="main@2000")])
    league.client.pin_rating("random", 12.0, "operator")
    train(league, incarnation, 15, random_outcome(seed), step=40_000)
    league.client.register_players([snapshot(40_000, parent="main@2000")])
    pair(league, "main@40000", "random", 5)
    incarnation = league.open(checkpoint=25)
    train(league, incarnation, 5, random_outcome(seed + 1), step=30_000)
    league.client.unpin_rating("random", "operator")
    train(league, incarnation, 5, step=50_000)
    league.client.pin_rating("based", 30.0, "operator")


def test_reopened_it_shows_the_same_bits_and_continues_as_if_it_had_never_stopped(tmp_path):
    def ending(league):
        train(league, league.open(checkpoint=league.client.status().log_position), 10, step=80_000)
        boards = {book: league.client.ratings(book) for book in Book}
        return {b: [(r.player.name, r.mu, r.sigma) for r in rs] for b, rs in boards.items()}

    with (
        small_league(tmp_path / "one", mixes=BOTS) as one,
        small_league(tmp_path / "two", mixes=BOTS) as two,
    ):
        lived(one)
        lived(two)
        before, after = books(one).state(), ending(two)
    with small_league(tmp_path / "one", snapshots=(), mixes=BOTS) as one:
        assert books(one).state()["tables"] == before["tables"]
        assert ending(one) == after


def test_ratings_and_players_are_those_of_then(tmp_path):
    moments = Moments(tmp_path)
    with small_league(tmp_path, mixes=BOTS) as league:
        incarnation = league.open()
        train(league, incarnation, 10, step=10_000)
        moments.keep(league)
        league.client.pin_rating("random", 12.0, "operator")
        train(league, incarnation, 5, random_outcome(1), step=40_000)
        league.client.register_players([snapshot(40_000, parent="main@2000")])
        league.server.league.store_fold(1)
        league.client.quarantine("based", "doubtful", "anna")
        moments.keep(league)
        league.client.release_player("based", "anna")
        incarnation = league.open(checkpoint=10)
        moments.keep(league)
        train(league, incarnation, 5, step=50_000)
        pair(league, "main@40000", "random", 2)
        league.client.register_players(
            [replace(snapshot(40_000, parent="main@2000"), milestone=True)]
        )
        moments.keep(league)
    moments.check()
    first = next(iter(moments.seen.values()))
    with past(tmp_path, "10") as client:
        assert {book: client.ratings(book) for book in Book} == first["boards"]
        assert client.players() == first["players"]


def test_status_and_matches_are_those_of_then(tmp_path: Path) -> None:
    moments = Moments(tmp_path)
    stage = Stage(name="all", mix="one", max_steps=100)
    with small_league(tmp_path, mixes=BOTS) as league:
        worker = league.open()
        league.client.heartbeat(worker, 1, 500, "one", "rollout", {"rate/steps_per_second": 3.0})
        league.client.enter_stage(worker, 500, [stage], Place(index=0, since_step=500))
        train(league, worker, 4, step=400)
        late, unplayed, released = league.client.acquire_matches(worker, 3, "one")
        ids = [late.match_id, unplayed.match_id, released.match_id]
        moments.keep(league, ids)  # all three are open
        league.client.release_matches(worker, [released.match_id], "not wanted")
        league.clock.advance(400.0)
        league.server.sweep()
        moments.keep(league, ids)  # two have expired, one was handed back
        league.client.report_results(worker, [played(late, learner_wins(late))])
        moments.keep(league, ids)  # one came late
        again = league.client.open_incarnation("learner-main", "main", 0, 4)
        assert again.lost_results == 1
        later = league.client.acquire_matches(again.number, 2, "one")
        league.client.heartbeat(again.number, 1, 900, "one", "update")
        moments.keep(league, ids)  # a restart took it back
        league.client.register_players([snapshot(3000)])
        league.client.report_results(again.number, [played(later[0], 1.0)])
    moments.check(ids)
    states = [[match.lease_state for match in then["matches"]] for then in moments.seen.values()]
    assert states[:2] == [["open"] * 3, ["expired", "expired", "released"]]
    assert [then["matches"][0].lost_branch for then in moments.seen.values()] == [False] * 3 + [
        True
    ]
    with past(tmp_path, next(iter(moments.seen))) as client, pytest.raises(NotFound):
        client.match(later[0].match_id)


def test_a_later_heartbeat_says_nothing_of_then_but_mix_and_step_are_known(tmp_path: Path) -> None:
    """The step is that of the newest result, of either seat, or else of the checkpoint."""
    with small_league(tmp_path, mixes=BOTS) as league:
        worker = league.client.open_incarnation("learner-main", "main", 300).number
        opened = league.clock.now() + 5.0
        league.clock.advance(10.0)
        seats = set()
        for step in range(410, 490, 10):
            (match,) = league.client.acquire_matches(worker, 1, "one")
            result, seat = at_step(played(match), 0), match.learner_seat
            mine = replace(result.seats[seat], step_start=step, step_end=step)
            both = (mine, result.seats[1]) if seat == 0 else (result.seats[0], mine)
            report(league, worker, replace(result, seats=both))
            seats.add(seat)
        assert seats == {0, 1}
        league.client.heartbeat(worker, 1, 500, "one", "rollout", {"rate/steps_per_second": 3.0})
        at = league.clock.now() + 5.0
        league.clock.advance(10.0)
        league.client.heartbeat(worker, 2, 900, "other", "update", {"rate/steps_per_second": 9.0})
    with past(tmp_path, repr(at)) as client:
        (learner,) = client.status().workers
        found = learner.step, learner.mix, learner.activity, learner.metrics
        assert found == (480, "one", "", {})
    with past(tmp_path, repr(opened)) as client:
        (learner,) = client.status().workers
        assert learner.step == 300


def test_after_a_log_position_no_result_of_the_same_call_is_there(tmp_path: Path) -> None:
    with small_league(tmp_path, mixes=BOTS) as league:
        league.play(league.open(), 10, mix="one")
    with past(tmp_path, "4") as client:
        assert len([event for event in client.watch() if event.kind == "result"]) == 4
        assert client.status().log_position == 4


def test_a_gate_shows_what_it_had_counted_then(tmp_path: Path) -> None:
    moments = Moments(tmp_path)
    with exploiter_league(tmp_path) as league:
        gate = league.freeze(league.begin(), 500)
        for _ in range(2):
            gate = league.play(gate, wins_always, 4)
            moments.keep(league.small)
        league.to_the_end(gate, wins_always)
    moments.check()
    assert [then["gates"][0].victims[0].wins for then in moments.seen.values()] == [4, 8]


@pytest.mark.parametrize("words", ["yesterday", "-5", "21", "2001-10-01"])
def test_moments_that_are_none(tmp_path, words):
    with small_league(tmp_path, mixes=BOTS) as league:
        train(league, league.open(), 20)
    with pytest.raises(InvalidInput, match=words):
        MatchmakerServer(tmp_path / "league.db", read_only=True, at=words)


def test_times_are_utc_unless_they_say_otherwise(tmp_path):
    with small_league(tmp_path, mixes=BOTS) as league, league.server.store.read() as reader:
        for words in ("2040-01-01T12:00", "2040-01-01T12:00Z", "2040-01-01T14:00+02:00"):
            assert moment_of(reader, words).at == 2209032000.0
        assert moment_of(reader, "2209032000").at == 2209032000.0


def test_the_past_is_only_read_and_has_no_metrics(tmp_path):
    with small_league(tmp_path):
        pass
    with pytest.raises(InvalidInput, match="--read-only"):
        MatchmakerServer(tmp_path / "league.db", at="0")
    operations = OperationsSettings(metrics_port=1)
    with pytest.raises(InvalidInput, match="metrics"):
        MatchmakerServer(tmp_path / "league.db", read_only=True, at="0", operations=operations)


def test_a_read_only_league_shows_the_shares_of_the_policy_in_use_then(tmp_path):
    for weight in (3.0, 1.0):
        with small_league(tmp_path, mixes={"league": {"random": weight, "based": 1.0}}) as league:
            incarnation = league.open()
            league.play(incarnation, 5)
            league.client.heartbeat(incarnation, 1, 1, "league")
    for at, share in ((None, 0.5), ("4", 0.75)):
        with past(tmp_path, at) as client:
            shares = {one.category: one.configured for one in client.status().shares}
            assert shares == {"random": pytest.approx(share), "based": pytest.approx(1.0 - share)}
