"""Ratings: known answers, the closed form against the package, the log folded twice."""

import json
import math

import mpmath
import pytest
import trueskill
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import InvalidInput
from league.players import Player, PlayerKind
from league.stats.payoff import Counts, PayoffTable
from league.stats.ratings import (
    NEWCOMER,
    Belief,
    Drift,
    Link,
    RatedGame,
    RatingTable,
    outlook,
    quality,
    rate,
    win_probability,
)

TAU = 25.0 / 300.0


def game(outcome=1.0, seat0="a", seat1="b", step0=0, step1=0):
    return RatedGame(seat0, seat1, outcome, step0, step1)


def learning(*names, drift=10.0):
    """A table in which these players learn."""
    table = RatingTable(Drift(drift))
    for name in names:
        table.learns(name)
    return table


def table_of(games):
    table = RatingTable()
    table.fold_all(games)
    return table


def rounded(belief):
    return round(belief.mu, 3), round(belief.sigma, 3)


def test_new_beats_new():
    winner, loser = rate(NEWCOMER, NEWCOMER, 1.0)
    assert rounded(winner) == (29.396, 7.171)
    assert rounded(loser) == (20.604, 7.171)
    assert rate(NEWCOMER, NEWCOMER, 0.0) == (loser, winner)


def test_new_draws_new():
    """The known 6.458 is of players that drift by τ = 25/300; frozen ones end at 6.457."""
    first, second = rate(NEWCOMER, NEWCOMER, 0.5, tau0=TAU, tau1=TAU)
    assert rounded(first) == rounded(second) == (25.000, 6.458)
    frozen, _ = rate(NEWCOMER, NEWCOMER, 0.5)
    assert rounded(frozen) == (25.000, 6.457)


def test_draw_probability_moves_the_update():
    winner, _ = rate(NEWCOMER, NEWCOMER, 1.0, draw_probability=0.0001)
    assert rounded(winner) == (29.205, 7.194)


def test_predictions_of_two_newcomers():
    assert quality(NEWCOMER, NEWCOMER) == pytest.approx(0.4472, abs=5e-5)
    assert win_probability(NEWCOMER, NEWCOMER) == 0.5
    stronger = Belief(30.0, 1.0)
    expected = 0.5 * (
        1 + math.erf(5.0 / math.sqrt(2 * (25 / 6) ** 2 + 1 + (25 / 3) ** 2) / math.sqrt(2))
    )
    assert win_probability(stronger, NEWCOMER) == pytest.approx(expected, abs=1e-12)


def test_outlook_of_a_match():
    known, other = Belief(25.0, 1e-9), Belief(25.0, 1e-9)
    even = outlook(known, other, 0.3)
    assert even.draw == pytest.approx(0.3, abs=1e-12)
    assert even.win == pytest.approx(even.loss, abs=1e-15)
    ahead, behind = outlook(Belief(31.0, 2.0), known, 0.3), outlook(known, Belief(31.0, 2.0), 0.3)
    assert ahead.win + ahead.draw + ahead.loss == pytest.approx(1.0, abs=1e-12)
    assert (ahead.win, ahead.draw) == pytest.approx((behind.loss, behind.draw), abs=1e-15)
    assert ahead.score == pytest.approx(1.0 - behind.score, abs=1e-12)
    assert outlook(Belief(31.0, 2.0), known, 1e-6).win == pytest.approx(
        win_probability(Belief(31.0, 2.0), known), abs=1e-6
    )


def test_a_measured_link_bends_predictions():
    first, second = Belief(31.0, 1.0), Belief(25.0, 1.0)
    timid = win_probability(first, second, Link(sharpness=0.5))
    assert 0.5 < timid < win_probability(first, second)
    t = 6.0 / math.sqrt(2 * (25 / 6) ** 2 + 2.0)
    logistic = win_probability(first, second, Link(logistic_share=1.0))
    assert logistic == pytest.approx(1.0 / (1.0 + math.exp(-1.702 * t)), abs=1e-12)
    assert outlook(first, second, 0.1, Link(0.5)).score < outlook(first, second, 0.1).score
    for wrong in ({"sharpness": 0.0}, {"logistic_share": 1.1}, {"sharpness": math.nan}):
        with pytest.raises(InvalidInput, match="is no link"):
            Link(**wrong)


def test_score_is_the_conservative_estimate():
    assert Belief(30.0, 2.0).score == 24.0
    assert Belief(0.0, 1.0).score == -3.0


def package_rates(first, second, outcome, draw_probability):
    """What the `trueskill` package makes of it with fifty digits."""
    with mpmath.workdps(50):
        env = trueskill.TrueSkill(
            mu=25.0,
            sigma=25.0 / 3.0,
            beta=25.0 / 6.0,
            tau=0.0,
            draw_probability=draw_probability,
            backend="mpmath",
        )
        ranks = {1.0: [0, 1], 0.5: [0, 0], 0.0: [1, 0]}[outcome]
        groups = [(env.create_rating(mu=b.mu, sigma=b.sigma),) for b in (first, second)]
        return [Belief(float(r.mu), float(r.sigma)) for (r,) in env.rate(groups, ranks=ranks)]


def agrees(first, second, outcome, draw_probability):
    got = rate(first, second, outcome, draw_probability=draw_probability)
    wanted = package_rates(first, second, outcome, draw_probability)
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.mu == pytest.approx(theirs.mu, rel=1e-12, abs=1e-9)
        assert mine.sigma == pytest.approx(theirs.sigma, rel=1e-9, abs=1e-12)


sigmas = st.floats(-4.0, 1.0).map(lambda power: 10.0**power)
gaps = st.one_of(st.floats(-60.0, 60.0), st.floats(-1000.0, 1000.0))
draw_probabilities = st.floats(math.log10(1e-6), math.log10(0.9)).map(
    lambda power: min(0.9, 10.0**power)
)


@settings(max_examples=300, deadline=None)
@given(gaps, sigmas, sigmas, st.sampled_from([0.0, 0.5, 1.0]), draw_probabilities)
def test_closed_form_equals_the_package(gap, sigma0, sigma1, outcome, draw_probability):
    agrees(Belief(25.0 + gap, sigma0), Belief(25.0, sigma1), outcome, draw_probability)


@pytest.mark.parametrize("draw_probability", [1e-6, 0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("gap", [0.0, 1e-9, 0.6, 36.0, 59.0, 240.0, 300.0, 900.0])
def test_closed_form_at_the_seams(gap, draw_probability):
    """Where another way of computing the same takes over: far upsets, far draws, narrow margins."""
    for outcome in (0.0, 0.5, 1.0):
        agrees(Belief(25.0 + gap, 0.5), Belief(25.0, 3.0), outcome, draw_probability)


def test_only_a_live_player_drifts():
    frozen, _ = rate(NEWCOMER, NEWCOMER, 1.0)
    drifting, _ = rate(NEWCOMER, NEWCOMER, 1.0, tau0=TAU)
    assert drifting.sigma > frozen.sigma
    sure = Belief(25.0, 0.05)
    assert rate(sure, sure, 0.5, tau0=TAU)[0].sigma > sure.sigma
    assert rate(sure, sure, 0.5)[0].sigma < sure.sigma
    for outcome in (0.0, 0.5, 1.0):
        first, second = rate(sure, sure, outcome, tau0=TAU)
        assert second.sigma < sure.sigma < first.sigma, "the other one is no live player"


def test_a_player_against_itself_is_never_rated():
    table = table_of([game(1.0, "a", "a")])
    assert table.beliefs() == {}
    assert table.payoff.cells() == []


def test_a_pinned_player_never_moves_and_counts_as_known():
    table = learning("anchor")
    table.pin("anchor", 31.0)
    for step, outcome in enumerate((1.0, 0.5, 0.0, 0.0)):
        table.fold(game(outcome, "anchor", "new", step0=1_000_000 * step))
    assert table.belief("anchor") == Belief(31.0, 0.0)
    expected = NEWCOMER
    for outcome in (1.0, 0.5, 0.0, 0.0):
        expected = package_rates(Belief(31.0, 1e-9), expected, outcome, 0.1)[1]
    assert table.belief("new").mu == pytest.approx(expected.mu, abs=1e-9)
    assert table.belief("new").sigma == pytest.approx(expected.sigma, abs=1e-9)


def test_a_player_can_be_pinned_later():
    table = RatingTable()
    table.fold(game(1.0, "bot", "new"))
    table.pin("bot", 20.0)
    table.fold(game(1.0, "bot", "new"))
    assert table.belief("bot") == Belief(20.0, 0.0)
    with pytest.raises(InvalidInput, match="bot can't be pinned at nan"):
        table.pin("bot", math.nan)


def test_drift_is_of_steps_and_not_of_matches():
    drift = Drift(points2_per_fold=10.0, settling_steps=50_000)
    assert drift.variance(0, 50_000 * (math.e - 1)) == pytest.approx(10.0, abs=1e-9)
    halves = drift.variance(0, 300_000) + drift.variance(300_000, 900_000)
    assert halves == pytest.approx(drift.variance(0, 900_000), abs=1e-12)
    assert drift.variance(0, 1_000) > drift.variance(1_000_000, 1_001_000) > 0.0
    assert drift.variance(5_000, 4_000) == 0.0
    for wrong in (Drift, lambda _: Drift(1.0, 0)):
        with pytest.raises(InvalidInput):
            wrong(-1.0)


def test_a_live_player_is_less_known_the_more_it_learnt():
    def sigma_after(*steps):
        table = learning("main")
        for step in steps:
            table.fold(game(0.5, "main", "bot", step0=step))
        return table.belief("main").sigma

    assert sigma_after(1_000, 1_000) < sigma_after(1_000, 50_000) < sigma_after(1_000, 500_000)
    late = learning("main")
    late.fold(game(0.5, "main", "bot", step0=400_000))
    before = late.belief("main").sigma
    late.fold(game(0.5, "main", "bot", step0=100_000))
    assert late.belief("main").sigma < before, "a result that comes late adds no drift"
    late.fold(game(0.5, "main", "bot", step0=400_000))
    assert late.belief("main").sigma < before, "and the steps that were known stay known"


def test_a_drifted_game_is_rated_as_one_with_that_tau():
    drift = Drift(10.0)
    table = learning("a")
    table.fold_all([game(1.0, step0=20_000), game(0.0, step0=120_000)])
    tau = math.sqrt(drift.variance(20_000, 120_000))
    first, second = rate(*rate(NEWCOMER, NEWCOMER, 1.0), 0.0, tau0=tau)
    assert table.belief("a").sigma == pytest.approx(first.sigma, abs=1e-12)
    assert table.belief("b").mu == pytest.approx(second.mu, abs=1e-12)


def test_a_snapshot_inherits_what_is_believed_of_its_parent():
    table = learning("main")
    table.fold_all([game(1.0, "main", "bot", step0=step) for step in (0, 1_000, 2_000)])
    parent = table.belief("main")
    table.inherit("main@52000", "main", 52_000)
    child = table.belief("main@52000")
    assert child.mu == parent.mu
    assert child.sigma**2 == pytest.approx(
        parent.sigma**2 + Drift(10.0).variance(2_000, 52_000), abs=1e-9
    )
    assert not table.has("main@52000")
    assert "main@52000" not in table.beliefs()
    table.inherit("main@90000", "main@52000", 90_000)
    assert table.belief("main@90000").sigma > child.sigma
    table.inherit("main@9000000", "main@52000", 900_000_000)
    assert table.belief("main@9000000").sigma == NEWCOMER.sigma, "never less known than a newcomer"


def test_inheritance_changes_nobody_who_is_known():
    table = RatingTable()
    table.fold_all([game(1.0, "main", "old"), game(1.0, "main", "old")])
    table.pin("anchor", 30.0)
    before = table.belief("old")
    for name in ("old", "anchor", "main"):
        table.inherit(name, "main", 5)
    table.inherit("new", "nobody", 5)
    assert table.belief("old") == before
    assert table.belief("anchor").mu == 30.0
    assert table.belief("new") == NEWCOMER
    assert not table.knows("new")
    table.inherit("young", "anchor", 5)
    assert table.belief("young") == Belief(30.0, NEWCOMER.sigma), (
        "what is known of an anchor is of it alone"
    )
    assert table.knows("young")


def test_an_anchor_that_is_let_go_goes_on_from_what_was_believed_before():
    table, plain = RatingTable(), RatingTable()
    for one in (table, plain):
        one.fold(game(1.0))
    table.pin("a", 40.0)
    table.pin("a", 41.0)
    assert table.anchors() == {"a": 41.0}
    again = RatingTable.restored(json.loads(json.dumps(table.state())))
    for one in (table, again):
        one.unpin("a")
        one.unpin("b")
        assert one.anchors() == {}
        assert one.beliefs() == plain.beliefs()


outcomes = st.sampled_from([0.0, 0.5, 1.0])
games = st.lists(
    st.builds(
        game,
        outcomes,
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
        st.integers(0, 10**7),
        st.integers(0, 10**7),
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(games, st.integers(0, 40))
def test_folding_again_gives_the_same_bits(log, split):
    """One by one, at once, and in two parts with a checkpoint as JSON between them."""
    step_by_step, at_once, first_part = (learning("a", "d", drift=5.0) for _ in range(3))
    for table in (step_by_step, at_once, first_part):
        table.pin("d", 28.0)
        table.begin_epoch(0, 0.3, Link(0.9, 0.4))
    for one in log:
        step_by_step.fold(one)
    at_once.fold_all(log)
    first_part.fold_all(log[:split])
    second_part = RatingTable.restored(json.loads(json.dumps(first_part.state())))
    second_part.fold_all(log[split:])
    assert step_by_step.state() == at_once.state() == second_part.state()
    assert step_by_step.beliefs() == second_part.beliefs()
    assert step_by_step.payoff.cells() == second_part.payoff.cells()


@settings(max_examples=40, deadline=None)
@given(games)
def test_counts_agree_from_both_sides(log):
    table = table_of(log)
    cells = {(cell.row, cell.column): cell for cell in table.payoff.cells()}
    for (row, column), cell in cells.items():
        mirror = cells[column, row]
        assert (cell.wins, cell.draws, cell.losses) == (mirror.losses, mirror.draws, mirror.wins)
    assert sum(cell.games for cell in cells.values()) == 2 * sum(g.seat0 != g.seat1 for g in log)


def test_leaderboard_goes_by_score_then_name():
    table = table_of([game(1.0, "b", "c"), game(1.0, "a", "d")])
    players = {n: Player(name=n, game="g", kind=PlayerKind.BOT) for n in "abcd"}
    board = table.leaderboard(players)
    assert [rating.player.name for rating in board] == ["a", "b", "c", "d"]
    assert [rating.rank for rating in board] == [1, 2, 3, 4]
    assert board[0].score == board[0].mu - 3 * board[0].sigma
    assert (board[0].wins, board[0].games, board[2].losses) == (1, 1, 1)


def test_an_uncertain_player_stands_below_a_sure_one():
    """One win makes the newcomer's μ the highest, but not its score."""
    table = table_of([game(0.5, "sure", "peer")] * 20 + [game(1.0, "new", "weak")])
    players = {
        n: Player(name=n, game="g", kind=PlayerKind.BOT) for n in ("sure", "weak", "peer", "new")
    }
    board = table.leaderboard(players)
    assert max(board, key=lambda rating: rating.mu).player.name == "new"
    assert [rating.player.name for rating in board] == ["peer", "sure", "new", "weak"]
    counts = [(rating.wins, rating.draws, rating.losses) for rating in board]
    assert counts == [(0, 20, 0), (0, 20, 0), (1, 0, 0), (0, 0, 1)]


def test_payoff_of_chosen_rows_and_columns():
    table = PayoffTable()
    table.add("a", "b", 1.0)
    table.add("a", "c", 0.5)
    assert [(c.row, c.column, c.wins, c.draws) for c in table.cells(["a"], ["c"])] == [
        ("a", "c", 0, 1)
    ]
    assert table.counts("b", "a").losses == 1
    assert table.counts("b", "c").games == 0
    again = PayoffTable.restored(json.loads(json.dumps(table.state())))
    again.add("c", "a", 1.0)
    assert table.counts("c", "a").games == 1
    assert again.counts("c", "a") == Counts(wins=1, draws=1)
