"""Ratings and payoffs follow the log, book by book, to the last bit."""

import math
from dataclasses import replace

import pytest
from ratings_league import at_step
from small_league import learner_wins, played, report, small_league

from league.players import Book, Pairing
from league.stats.ratings import NEWCOMER, Belief, Drift, rate


def test_a_player_against_itself_is_never_rated(tmp_path):
    with small_league(tmp_path, mixes={"mirror": {"self": 1.0}}) as league:
        _, verdicts, _ = league.play(league.open(), 4, mix="mirror")
        assert all(verdict.accepted for verdict in verdicts)
        assert league.client.ratings(Book.TRAIN) == []


def test_failed_matches_are_kept_and_never_rated(league):
    incarnation = league.open()
    matches = league.client.acquire_matches(incarnation, 3, "league")
    verdicts = report(
        league,
        incarnation,
        *(replace(played(match), failed=True, failure="it broke") for match in matches),
    )
    assert all(verdict.accepted for verdict in verdicts)
    assert league.client.match(matches[0].match_id).result.failure == "it broke"
    assert league.client.ratings(Book.TRAIN) == []
    assert league.client.payoff(Book.TRAIN) == []


def test_ratings_and_payoffs_follow_the_books(league):
    learner = league.open()
    league.play(learner, 40)
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=5, book=Book.EVAL, seed=1)
    matches = league.client.acquire_pairings(evaluator, [pairing])
    report(
        league,
        evaluator,
        *(played(match, 1.0 if match.seats[0].name == "main@2000" else 0.0) for match in matches),
    )
    board = league.client.ratings()
    assert [(r.player.name, r.wins, r.losses, r.rank) for r in board] == [
        ("main@2000", 10, 0, 1),
        ("based", 0, 10, 2),
    ]
    assert board[0].score == board[0].mu - 3 * board[0].sigma
    train = {r.player.name: r for r in league.client.ratings(Book.TRAIN)}
    assert train["main"].games == 40
    assert league.client.ratings(Book.GREEDY) == []
    (cell,) = league.client.payoff(Book.EVAL, rows=["based"])
    assert (cell.column, cell.wins, cell.losses) == ("main@2000", 0, 10)


def test_the_live_player_drifts_and_the_bot_does_not(tmp_path):
    with small_league(tmp_path, snapshots=(), mixes={"one": {"based": 1.0}}) as league:
        incarnation = league.open()
        main, based, since, seats = NEWCOMER, NEWCOMER, 20_000, set()
        for step in (20_000, 120_000, 400_000, 900_000, 2_000_000):
            (match,) = league.client.acquire_matches(incarnation, 1, "one")
            seats.add(match.learner_seat)
            report(league, incarnation, at_step(played(match, learner_wins(match)), step))
            drifted = math.hypot(main.sigma, math.sqrt(Drift().variance(since, step)))
            main, based = rate(Belief(main.mu, drifted), based, 1.0)
            since = step
        assert seats == {0, 1}
        for rating in league.client.ratings(Book.TRAIN):
            expected = {"main": main, "based": based}[rating.player.name]
            assert rating.mu == pytest.approx(expected.mu, abs=1e-12)
            assert rating.sigma == pytest.approx(expected.sigma, abs=1e-12)


def test_results_behind_the_checkpoint_are_lost_to_the_ratings(league):
    first = league.open()
    league.play(first, 10)
    at_checkpoint = league.client.ratings(Book.TRAIN), league.client.payoff(Book.TRAIN)
    matches, _, _ = league.play(first, 15)
    evaluator = league.client.open_incarnation("evaluator-0").number
    pairing = Pairing(player="main@2000", opponent="based", pairs=2, book=Book.EVAL, seed=1)
    for worker in (evaluator, first):  # clean matches of frozen players stay, by any evaluator
        report(league, worker, *map(played, league.client.acquire_pairings(worker, [pairing])))
    board = league.client.ratings()
    assert league.client.ratings(Book.TRAIN) != at_checkpoint[0]
    opened = league.client.open_incarnation("learner-main", "main", 500, 10)
    assert opened.lost_results == 15
    assert (league.client.ratings(Book.TRAIN), league.client.payoff(Book.TRAIN)) == at_checkpoint
    assert league.client.ratings() == board
    assert league.client.match(matches[0].match_id).lost_branch
    assert league.client.open_incarnation("learner-main", "main", 500, 10).lost_results == 0
