"""Evaluators of which one plays another game: it is found, stopped, and released."""

import itertools

import numpy as np
import pytest
from small_league import SmallLeague, learner_wins, played, report, small_league

from league.cli.main import main
from league.errors import InvalidInput, NotFound, Quarantined
from league.players import Book, Pairing, PayoffCell, Refusal
from matchmaker.state.books import Books

PLAYERS = ("constant", "random", "based", "main@1000", "main@2000")
HEALTHY, WRONG = ("evaluator-0", "evaluator-1"), "evaluator-2"


def honest(first: str, second: str) -> float:
    return 0.5 + 0.1 * (PLAYERS.index(first) - PLAYERS.index(second))


def other_rules(first: str, second: str) -> float:
    """Bots are what they are, and snapshots win by other means."""
    return 1.0 - honest(first, second) if "main@2000" not in (first, second) else 0.5


def corrupted(first: str, second: str) -> float:
    return float(second == "main@2000") if "main@2000" in (first, second) else honest(first, second)


class Evaluators:
    """They share all pairs of players; `chances` are each one's rules."""

    def __init__(self, league: SmallLeague, chances):
        self.league, self.chances, self.rng = league, chances, np.random.default_rng(5)
        self.numbers = {name: league.client.open_incarnation(name).number for name in chances}
        self.until = 0

    def leased(self, worker: str, until: int = 0):
        pairs = itertools.combinations(PLAYERS, 2)
        return self.league.client.acquire_pairings(
            self.numbers[worker],
            [
                Pairing(player=one, opponent=other, pairs=2, book=Book.EVAL, seed=1, until=until)
                for one, other in pairs
            ],
        )

    def plays(self, worker: str) -> None:
        results = []
        for match in self.leased(worker):
            first, second = (seat.name for seat in match.seats)
            wins = self.rng.random() < self.chances[worker](first, second)
            results.append(played(match, float(wins)))
        assert all(
            verdict.accepted for verdict in report(self.league, self.numbers[worker], *results)
        )

    def play(self, rounds: int) -> None:
        """Until one is in quarantine."""
        for _ in range(rounds):
            for worker in self.numbers:
                self.plays(worker)
            self.league.server.analyse()
            if troubled(self.league):
                return


def troubled(league: SmallLeague) -> dict[str, bool]:
    """Workers with trouble: whether they are in quarantine."""
    workers = league.client.status().workers
    return {one.worker: one.is_quarantined for one in workers if one.trouble}


def counted(league: SmallLeague) -> dict[tuple[str, str], tuple[int, int, int]]:
    cells = league.client.payoff()
    return {(c.row, c.column): (c.wins, c.draws, c.losses) for c in cells}


@pytest.fixture
def league(tmp_path):
    with small_league(tmp_path) as made:
        yield made


@pytest.mark.parametrize("wrong", [other_rules, corrupted])
def test_the_evaluator_that_plays_another_game_is_found_and_stopped(league, wrong):
    evaluators = Evaluators(league, dict.fromkeys(HEALTHY, honest) | {WRONG: wrong})
    league.play(league.open(), 20, learner_wins)
    train = league.client.payoff(Book.TRAIN)
    evaluators.play(60)
    assert troubled(league) == {WRONG: True}
    matches = league.client.status().log_position - 20
    assert matches < 3000
    with league.server.store.read() as reader:
        (event,) = reader.events_of("worker_quarantined")
    assert "evaluator-2" in event.text

    one, *_ = counted(league).values()
    assert sum(one) == matches * 2 / 3 / 10, "its matches don't count any more, those of others do"
    assert league.client.payoff(Book.TRAIN) == train
    with pytest.raises(Quarantined, match="quarantine --worker evaluator-2 --release"):
        evaluators.leased(WRONG)
    number = league.client.open_incarnation(WRONG).number
    with pytest.raises(Quarantined):
        league.client.acquire_pairings(
            number,
            [Pairing(player="based", opponent="random", pairs=1, book=Book.EVAL, seed=1)],
        )
    for worker in HEALTHY:
        evaluators.plays(worker)
    league.server.analyse()
    assert troubled(league) == {WRONG: True}


def test_its_leases_end_and_what_it_reports_then_is_refused(league):
    evaluators = Evaluators(league, {"evaluator-0": honest})
    match, *_ = evaluators.leased("evaluator-0", until=4)
    assert league.client.quarantine_worker("evaluator-0", "plays a fork", "anna@desk") == 0
    (verdict,) = report(league, evaluators.numbers["evaluator-0"], played(match))
    assert (verdict.accepted, verdict.refusal) == (False, Refusal.QUARANTINED)
    assert "plays a fork" in verdict.reason
    evaluators.numbers["evaluator-1"] = league.client.open_incarnation("evaluator-1").number
    assert len(evaluators.leased("evaluator-1", until=4)) == 40, "others play its matches"


def test_a_release_gives_everything_back_and_a_repaired_one_begins_again(league):
    evaluators = Evaluators(league, dict.fromkeys((*HEALTHY, WRONG), honest))
    evaluators.play(2)
    before, sums = counted(league), league.client.payoff(with_stats=True)
    results = league.client.quarantine_worker(WRONG, "an old build", "anna@desk")
    assert results == 2 * 40
    assert sum(map(sum, counted(league).values())) == 2 * 2 * 80
    league.server.league.store_fold(1)
    assert league.client.release_worker(WRONG, "anna@desk") == results
    assert (counted(league), league.client.payoff(with_stats=True)) == (before, sums)
    evaluators.plays(WRONG)

    league.client.quarantine_worker(WRONG, "an old build", "anna@desk")
    assert league.client.release_worker(WRONG, "anna@desk", repaired=True) == 0
    evaluators.numbers[WRONG] = league.client.open_incarnation(WRONG).number
    evaluators.plays(WRONG)
    assert sum(map(sum, counted(league).values())) == 2 * (2 * 80 + 40)
    assert troubled(league) == {}
    assert league.client.quarantine_worker(WRONG, "an old build", "anna@desk") == 40


def test_two_evaluators_are_reported_and_an_operator_decides(league):
    evaluators = Evaluators(league, {"evaluator-0": honest, WRONG: corrupted})
    evaluators.play(60)
    assert troubled(league) == {"evaluator-0": False, WRONG: False}
    evaluators.plays(WRONG)
    league.server.analyse()
    with league.server.store.read() as reader:
        assert len(reader.events_of("workers_disagree")) == 1, "it is said once"
    league.client.quarantine_worker(WRONG, "its card was swapped", "anna@desk")
    assert troubled(league) == {WRONG: True}
    league.client.release_worker(WRONG, "anna@desk")
    evaluators.chances[WRONG] = honest
    evaluators.numbers[WRONG] = league.client.open_incarnation(WRONG).number
    evaluators.play(3)
    assert troubled(league) == {}, "what came before the release is no evidence any more"
    evaluators.chances[WRONG] = corrupted
    evaluators.play(60)
    assert troubled(league) == {"evaluator-0": False, WRONG: False}
    league.client.release_worker("evaluator-0", "anna@desk")
    assert troubled(league) == {}


def test_nothing_is_compared_that_was_leased_after_a_match_in_play(league):
    """What has ended first is short, and would differ."""
    evaluators = Evaluators(league, {"evaluator-0": honest, WRONG: corrupted})
    held = evaluators.leased("evaluator-0")
    evaluators.play(20)
    assert troubled(league) == {}
    report(league, evaluators.numbers["evaluator-0"], *[played(match, 0.5) for match in held])
    league.server.analyse()
    assert troubled(league) == {"evaluator-0": False, WRONG: False}


def test_three_healthy_evaluators_are_left_alone(league):
    Evaluators(league, dict.fromkeys((*HEALTHY, WRONG), honest)).play(15)
    assert troubled(league) == {}


def test_the_past_and_a_restart_know_the_quarantine(tmp_path):
    with small_league(tmp_path) as league:
        evaluators = Evaluators(league, {"evaluator-0": honest, WRONG: honest})
        evaluators.play(1)
        league.server.league.store_fold(1)
        league.client.quarantine_worker(WRONG, "an old build", "anna@desk")
        event = league.server.league.view.event_position
        counts = counted(league)
        with league.server.store.read() as reader:
            then = Books.at(reader, event - 1).tables[Book.EVAL].payoff.cells()
        assert sum(map(PayoffCell.games.fget, then)) == 2 * 80
    with small_league(tmp_path) as league:
        assert troubled(league) == {WRONG: True}
        assert counted(league) == counts
        assert sum(map(sum, counts.values())) == 80


def test_what_can_not_be_is_refused(league):
    league.open()
    league.client.open_incarnation("evaluator-0")
    for worker, error in (
        ("nobody", NotFound),
        ("Not A Name", InvalidInput),
        ("learner-main", InvalidInput),
    ):
        with pytest.raises(error):
            league.client.quarantine_worker(worker, "wrong", "anna")
    with pytest.raises(InvalidInput):
        league.client.quarantine_worker("evaluator-0", " ", "anna")
    with pytest.raises(InvalidInput):
        league.client.release_worker("evaluator-0", "anna")
    league.client.quarantine_worker("evaluator-0", "wrong", "anna")
    with pytest.raises(InvalidInput):
        league.client.quarantine_worker("evaluator-0", "wrong", "anna")


def test_an_operator_does_it_by_command(league, capsys):
    league.client.open_incarnation("evaluator-0")
    asked = ["quarantine", "--address", league.server.address]
    assert main([*asked, "--worker", "evaluator-0", "--reason", "an old build"]) == 0
    assert main(["status", "--address", league.server.address]) == 0
    assert "an old build" in capsys.readouterr().out
    assert main(asked) == 0
    assert "evaluator-0" in capsys.readouterr().out
    assert main([*asked, "--worker", "evaluator-0", "--release", "--repaired"]) == 0
    assert troubled(league) == {}
    for wrong in (["based", "--worker", "evaluator-0", "--reason", "x"], ["--repaired"]):
        assert main([*asked, *wrong]) == 2
