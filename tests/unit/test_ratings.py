"""Ratings: known answers, extreme matches, drift, anchors, inheritance, and folding twice."""

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
    table = RatingTable(Drift(drift))
    for name in names:
        table.learns(name)
    return table


def table_of(games):
    table = RatingTable()
    table.fold_all(games)
    return table


def rounded(*beliefs):
    return [(round(belief.mu, 3), round(belief.sigma, 3)) for belief in beliefs]


def test_known_answers():
    """Of the package's documentation; its 6.458 after a draw is of players with τ = 25/300."""
    winner, loser = rate(NEWCOMER, NEWCOMER, 1.0)
    assert rounded(winner, loser) == [(29.396, 7.171), (20.604, 7.171)]
    assert rate(NEWCOMER, NEWCOMER, 0.0) == (loser, winner)
    assert rounded(*rate(NEWCOMER, NEWCOMER, 0.5, tau0=TAU, tau1=TAU)) == [(25.0, 6.458)] * 2
    assert rounded(*rate(NEWCOMER, NEWCOMER, 0.5)) == [(25.0, 6.457)] * 2
    assert rounded(rate(NEWCOMER, NEWCOMER, 1.0, draw_probability=1e-4)[0]) == [(29.205, 7.194)]
    assert quality(NEWCOMER, NEWCOMER) == pytest.approx(0.4472, abs=5e-5)
    assert win_probability(NEWCOMER, NEWCOMER) == 0.5
    t = 5.0 / math.sqrt(2 * (25 / 6) ** 2 + 1 + (25 / 3) ** 2)
    expected = 0.5 * (1 + math.erf(t / math.sqrt(2)))
    assert win_probability(Belief(30.0, 1.0), NEWCOMER) == pytest.approx(expected, abs=1e-12)
    assert Belief(30.0, 2.0).score == 24.0


def test_outlook_of_a_match():
    known, stronger = Belief(25.0, 1e-9), Belief(31.0, 2.0)
    even = outlook(known, known, 0.3)
    assert even.draw == pytest.approx(0.3, abs=1e-12)
    assert even.win == pytest.approx(even.loss, abs=1e-15)
    ahead, behind = outlook(stronger, known, 0.3), outlook(known, stronger, 0.3)
    assert ahead.win + ahead.draw + ahead.loss == pytest.approx(1.0, abs=1e-12)
    assert (ahead.win, ahead.draw) == pytest.approx((behind.loss, behind.draw), abs=1e-15)
    assert ahead.score == pytest.approx(1.0 - behind.score, abs=1e-12)
    with pytest.raises(InvalidInput, match=r"1\.0"):
        outlook(known, known, 1.0)


def test_a_measured_link_bends_predictions():
    first, second = Belief(31.0, 1.0), Belief(25.0, 1.0)
    timid = win_probability(first, second, Link(sharpness=0.5))
    assert 0.5 < timid < win_probability(first, second)
    t = 6.0 / math.sqrt(2 * (25 / 6) ** 2 + 2.0)
    logistic = win_probability(first, second, Link(logistic_share=1.0))
    assert logistic == pytest.approx(1.0 / (1.0 + math.exp(-1.702 * t)), abs=1e-12)
    for wrong in ({"sharpness": 0.0}, {"logistic_share": 1.1}, {"sharpness": math.nan}):
        with pytest.raises(InvalidInput, match=str(*wrong.values())):
            Link(**wrong)


def with_fifty_digits(first, second, outcome, draw_probability):
    with mpmath.workdps(50):
        env = trueskill.TrueSkill(tau=0.0, draw_probability=draw_probability, backend="mpmath")
        ranks = {1.0: [0, 1], 0.5: [0, 0], 0.0: [1, 0]}[outcome]
        groups = [(env.create_rating(mu=b.mu, sigma=b.sigma),) for b in (first, second)]
        return [Belief(float(r.mu), float(r.sigma)) for (r,) in env.rate(groups, ranks=ranks)]


@pytest.mark.parametrize("draw_probability", [1e-6, 0.01, 0.1, 0.9])
@pytest.mark.parametrize("gap", [0.0, 0.6, 36.0, 240.0, 450.0, 900.0])
def test_extreme_matches_are_rated_as_with_fifty_digits(gap, draw_probability):
    for outcome in (0.0, 0.5, 1.0):
        match = Belief(25.0 + gap, 0.5), Belief(25.0, 3.0), outcome
        got = rate(*match, draw_probability=draw_probability)
        wanted = with_fifty_digits(*match, draw_probability)
        for mine, theirs in zip(got, wanted, strict=True):
            assert mine.mu == pytest.approx(theirs.mu, rel=1e-7)
            assert mine.sigma == pytest.approx(theirs.sigma, rel=1e-5)


def test_only_a_live_player_drifts():
    sure = Belief(25.0, 0.05)
    assert rate(sure, sure, 0.5)[0].sigma < sure.sigma
    for outcome in (0.0, 0.5, 1.0):
        first, second = rate(sure, sure, outcome, tau0=TAU)
        assert second.sigma < sure.sigma < first.sigma


def test_a_player_against_itself_is_never_rated():
    table = table_of([game(1.0, "a", "a")])
    assert table.beliefs() == {}
    assert table.payoff.cells() == []


def test_a_pinned_player_never_moves_and_counts_as_known():
    table = learning("anchor")
    table.pin("anchor", 31.0)
    expected = NEWCOMER
    for step, outcome in enumerate((1.0, 0.5, 0.0, 0.0)):
        table.fold(game(outcome, "anchor", "new", step0=1_000_000 * step))
        expected = with_fifty_digits(Belief(31.0, 1e-9), expected, outcome, 0.1)[1]
    assert table.belief("anchor") == Belief(31.0, 0.0)
    assert table.belief("new").mu == pytest.approx(expected.mu, abs=1e-9)
    assert table.belief("new").sigma == pytest.approx(expected.sigma, abs=1e-9)
    with pytest.raises(InvalidInput, match="nan"):
        table.pin("bot", math.nan)


def test_an_unpinned_anchor_has_its_belief_from_before_the_pin():
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


def test_drift_is_of_steps_and_not_of_matches():
    drift = Drift(points2_per_fold=10.0, settling_steps=50_000)
    assert drift.variance(0, 50_000 * (math.e - 1)) == pytest.approx(10.0, abs=1e-9)
    halves = drift.variance(0, 300_000) + drift.variance(300_000, 900_000)
    assert halves == pytest.approx(drift.variance(0, 900_000), abs=1e-12)
    assert drift.variance(0, 1_000) > drift.variance(1_000_000, 1_001_000) > 0.0
    assert drift.variance(5_000, 4_000) == 0.0
    with pytest.raises(InvalidInput, match="-1"):
        Drift(-1.0)
    with pytest.raises(InvalidInput, match="0"):
        Drift(1.0, 0)


def test_a_live_player_is_less_known_the_more_it_learnt():
    def sigma_after(*steps):
        table = learning("main")
        for step in steps:
            table.fold(game(0.5, "main", "bot", step0=step))
        return table.belief("main").sigma

    assert sigma_after(1_000, 1_000) < sigma_after(1_000, 50_000) < sigma_after(1_000, 500_000)
    assert sigma_after(400_000, 100_000) == sigma_after(400_000, 400_000), "a late result"


def test_a_drifted_game_is_rated_as_one_with_that_tau():
    table = learning("a")
    table.fold_all([game(1.0, step0=20_000), game(0.0, step0=120_000)])
    tau = math.sqrt(Drift(10.0).variance(20_000, 120_000))
    first, second = rate(*rate(NEWCOMER, NEWCOMER, 1.0), 0.0, tau0=tau)
    assert table.belief("a").sigma == pytest.approx(first.sigma, abs=1e-12)
    assert table.belief("b").mu == pytest.approx(second.mu, abs=1e-12)


def test_a_snapshot_inherits_its_parents_belief():
    table = learning("main")
    table.fold_all([game(1.0, "main", "bot", step0=step) for step in (0, 1_000, 2_000)])
    parent = table.belief("main")
    table.inherit("main@52000", "main", 52_000)
    child = table.belief("main@52000")
    grown = Drift(10.0).variance(2_000, 52_000)
    assert child.mu == parent.mu
    assert child.sigma**2 == pytest.approx(parent.sigma**2 + grown, abs=1e-9)
    assert not table.has("main@52000")
    assert "main@52000" not in table.beliefs()
    table.inherit("main@90000", "main@52000", 90_000)
    assert table.belief("main@90000").sigma > child.sigma
    table.inherit("main@9000000", "main@52000", 900_000_000)
    assert table.belief("main@9000000").sigma == NEWCOMER.sigma, "never less known than a newcomer"


def test_inheritance_changes_no_known_player():
    table = table_of([game(1.0, "main", "old"), game(1.0, "main", "old")])
    table.pin("anchor", 30.0)
    before = table.belief("old")
    for name in ("old", "anchor", "main"):
        table.inherit(name, "main", 5)
    table.inherit("new", "unknown", 5)
    assert table.belief("old") == before
    assert table.belief("anchor").mu == 30.0
    assert not table.knows("new")
    table.inherit("young", "anchor", 5)
    assert table.belief("young") == Belief(30.0, NEWCOMER.sigma), "an anchor's σ is its own"
    assert table.knows("young")


games = st.lists(
    st.builds(
        game,
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from("abcd"),
        st.sampled_from("abcd"),
        st.integers(0, 10**7),
        st.integers(0, 10**7),
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None)
@given(games, st.integers(0, 30))
def test_folding_again_gives_the_same_bits(log, split):
    """At once, and in two parts with a checkpoint as JSON between them; counts are symmetric."""
    at_once, first_part = (learning("a", "d", drift=5.0) for _ in range(2))
    for table in (at_once, first_part):
        table.pin("d", 28.0)
        table.begin_epoch(0, 0.3, Link(0.9, 0.4))
    at_once.fold_all(log)
    first_part.fold_all(log[:split])
    second_part = RatingTable.restored(json.loads(json.dumps(first_part.state())))
    second_part.fold_all(log[split:])
    states = [json.loads(json.dumps(table.state())) for table in (at_once, second_part)]
    assert states[0] == states[1]
    assert at_once.beliefs() == second_part.beliefs()
    cells = {(cell.row, cell.column): cell for cell in at_once.payoff.cells()}
    for (row, column), cell in cells.items():
        mirror = cells[column, row]
        assert (cell.wins, cell.draws, cell.losses) == (mirror.losses, mirror.draws, mirror.wins)
    assert sum(cell.games for cell in cells.values()) == 2 * at_once.games


def test_leaderboard_goes_by_score_then_name():
    """One win makes the newcomer's μ the highest, but not its score."""
    table = table_of([game(0.5, "sure", "peer")] * 20 + [game(1.0, "new", "weak")])
    names = ("sure", "weak", "peer", "new")
    board = table.leaderboard({n: Player(name=n, game="g", kind=PlayerKind.BOT) for n in names})
    assert max(board, key=lambda rating: rating.mu).player.name == "new"
    assert [(one.rank, one.player.name) for one in board] == [
        (1, "peer"),
        (2, "sure"),
        (3, "new"),
        (4, "weak"),
    ]
    assert board[0].score == board[0].mu - 3 * board[0].sigma
    counts = [(rating.wins, rating.draws, rating.losses) for rating in board]
    assert counts == [(0, 20, 0), (0, 20, 0), (1, 0, 0), (0, 0, 1)]


def test_payoff_of_chosen_rows_and_columns():
    table = PayoffTable()
    table.add("a", "b", 1.0)
    table.add("a", "c", 0.5)
    cells = table.cells(["a"], ["c"])
    assert [(c.row, c.column, c.wins, c.draws) for c in cells] == [("a", "c", 0, 1)]
    assert table.counts("b", "a").losses == 1
    assert table.counts("b", "c").games == 0
    again = PayoffTable.restored(json.loads(json.dumps(table.state())))
    again.add("c", "a", 1.0)
    assert table.counts("c", "a").games == 1
    assert again.counts("c", "a") == Counts(wins=1, draws=1)
