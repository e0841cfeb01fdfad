"""Ratings: known answers, the closed form against the package, the log folded twice."""

import math

import pytest
import trueskill
from hypothesis import given, settings
from hypothesis import strategies as st

from league.payoff import PayoffTable
from league.players import Player, PlayerKind
from league.ratings import (
    NEWCOMER,
    TAU_LIVE,
    Belief,
    RatedGame,
    RatingTable,
    quality,
    rate,
    recompute,
    win_probability,
)


def game(outcome=1.0, seat0="a", seat1="b", tau0=0.0, tau1=0.0, draw_probability=0.1):
    return RatedGame(seat0, seat1, outcome, tau0, tau1, draw_probability)


def rounded(belief):
    return round(belief.mu, 3), round(belief.sigma, 3)


def test_new_beats_new():
    winner, loser = rate(game(1.0), NEWCOMER, NEWCOMER)
    assert rounded(winner) == (29.396, 7.171)
    assert rounded(loser) == (20.604, 7.171)
    assert rate(game(0.0), NEWCOMER, NEWCOMER) == (loser, winner)


def test_new_draws_new():
    """The known 6.458 is of players that drift by τ = 25/300; frozen ones end at 6.457."""
    first, second = rate(game(0.5, tau0=TAU_LIVE, tau1=TAU_LIVE), NEWCOMER, NEWCOMER)
    assert rounded(first) == rounded(second) == (25.000, 6.458)
    frozen, _ = rate(game(0.5), NEWCOMER, NEWCOMER)
    assert rounded(frozen) == (25.000, 6.457)


def test_draw_probability_moves_the_update():
    winner, _ = rate(game(1.0, draw_probability=0.0001), NEWCOMER, NEWCOMER)
    assert rounded(winner) == (29.205, 7.194)


def test_predictions_of_two_newcomers():
    assert quality(NEWCOMER, NEWCOMER) == pytest.approx(0.4472, abs=5e-5)
    assert win_probability(NEWCOMER, NEWCOMER) == 0.5
    stronger = Belief(30.0, 1.0)
    expected = 0.5 * (1 + math.erf(5.0 / math.sqrt(2 * (25 / 6) ** 2 + 1 + (25 / 3) ** 2) / math.sqrt(2)))
    assert win_probability(stronger, NEWCOMER) == pytest.approx(expected, abs=1e-12)


def test_score_is_the_conservative_estimate():
    assert Belief(30.0, 2.0).score == 24.0
    assert Belief(0.0, 1.0).score == -3.0


beliefs = st.builds(Belief, st.floats(-50, 100), st.floats(0.3, 8.4))


@settings(max_examples=150, deadline=None)
@given(beliefs, beliefs, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.001, 0.1, 0.4]))
def test_closed_form_equals_the_package(first, second, outcome, draw_probability):
    env = trueskill.TrueSkill(25, 25 / 3, 25 / 6, 0.0, draw_probability)
    ranks = {1.0: [0, 1], 0.5: [0, 0], 0.0: [1, 0]}[outcome]
    ratings = [(env.create_rating(b.mu, b.sigma),) for b in (first, second)]
    try:
        (wanted0,), (wanted1,) = env.rate(ratings, ranks)
    except FloatingPointError:
        return
    got0, got1 = rate(game(outcome, draw_probability=draw_probability), first, second)
    for got, wanted in ((got0, wanted0), (got1, wanted1)):
        assert got.mu == pytest.approx(wanted.mu, abs=1e-5)
        assert got.sigma == pytest.approx(wanted.sigma, abs=1e-5)


def test_a_gap_too_wide_for_doubles_is_rated_all_the_same():
    giant, dwarf = Belief(900.0, 1.0), Belief(0.0, 1.0)
    env = trueskill.TrueSkill(25, 25 / 3, 25 / 6, 0.0, 0.1)
    with pytest.raises(FloatingPointError):
        trueskill.rate_1vs1(env.create_rating(0, 1), env.create_rating(900, 1), drawn=True, env=env)
    for outcome in (0.0, 0.5):
        new_giant, new_dwarf = rate(game(outcome), giant, dwarf)
        assert math.isfinite(new_giant.mu)
        assert math.isfinite(new_dwarf.sigma)
        assert new_giant.mu < giant.mu
        assert new_dwarf.mu > dwarf.mu


def test_only_a_live_player_drifts():
    frozen, _ = rate(game(1.0), NEWCOMER, NEWCOMER)
    drifting, _ = rate(game(1.0, tau0=TAU_LIVE), NEWCOMER, NEWCOMER)
    assert drifting.sigma > frozen.sigma
    sure = Belief(25.0, 0.05)
    assert rate(game(0.5, tau0=TAU_LIVE), sure, sure)[0].sigma > sure.sigma
    assert rate(game(0.5), sure, sure)[0].sigma < sure.sigma
    assert rate(game(0.5, tau0=TAU_LIVE), sure, sure)[1].sigma < sure.sigma, "the other one is no live player"


def test_a_player_against_itself_is_never_rated():
    table = recompute([game(1.0, "a", "a")])
    assert table.beliefs() == {}
    assert table.payoff.cells() == []


outcomes = st.sampled_from([0.0, 0.5, 1.0])
games = st.lists(
    st.builds(
        game, outcomes, st.sampled_from("abcd"), st.sampled_from("abcd"), st.sampled_from([0.0, TAU_LIVE])
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(games)
def test_folding_again_gives_the_same_numbers(log):
    step_by_step = RatingTable()
    for one in log:
        step_by_step.fold(one)
    again = recompute(log)
    assert step_by_step.beliefs() == again.beliefs()
    assert step_by_step.payoff.cells() == again.payoff.cells()


@settings(max_examples=40, deadline=None)
@given(games)
def test_counts_agree_from_both_sides(log):
    table = recompute(log)
    cells = {(cell.row, cell.column): cell for cell in table.payoff.cells()}
    for (row, column), cell in cells.items():
        mirror = cells[column, row]
        assert (cell.wins, cell.draws, cell.losses) == (mirror.losses, mirror.draws, mirror.wins)
    assert sum(cell.games for cell in cells.values()) == 2 * sum(g.seat0 != g.seat1 for g in log)


def test_leaderboard_goes_by_score_then_name():
    table = recompute([game(1.0, "b", "c"), game(1.0, "a", "d")])
    players = {n: Player(name=n, game="g", kind=PlayerKind.BOT) for n in "abcd"}
    board = table.leaderboard(players)
    assert [rating.player.name for rating in board] == ["a", "b", "c", "d"]
    assert [rating.rank for rating in board] == [1, 2, 3, 4]
    assert board[0].score == board[0].mu - 3 * board[0].sigma
    assert (board[0].wins, board[0].games, board[2].losses) == (1, 1, 1)


def test_an_uncertain_player_stands_below_a_sure_one():
    """One win makes the newcomer's μ the highest, but not its score."""
    table = recompute([game(0.5, "sure", "peer")] * 20 + [game(1.0, "new", "weak")])
    players = {n: Player(name=n, game="g", kind=PlayerKind.BOT) for n in ("sure", "weak", "peer", "new")}
    board = table.leaderboard(players)
    assert max(board, key=lambda rating: rating.mu).player.name == "new"
    assert [rating.player.name for rating in board] == ["peer", "sure", "new", "weak"]


def test_payoff_of_chosen_rows_and_columns():
    table = PayoffTable()
    table.add("a", "b", 1.0)
    table.add("a", "c", 0.5)
    assert [(c.row, c.column, c.wins, c.draws) for c in table.cells(["a"], ["c"])] == [("a", "c", 0, 1)]
    assert table.counts("b", "a").losses == 1
    assert table.counts("b", "c").games == 0
