"""Ratings: known answers, extreme matches, drift, anchors, inheritance, epochs, folding twice."""

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
    PredictionRecord,
    RatingTable,
    rate,
)
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.table import (
    DRAWS_CEILING,
    DRAWS_FLOOR,
    FIRST_GAMES,
    GROWTH,
    PRIOR_GAMES,
)


def game(outcome=1.0, seat0="a", seat1="b", step0=0, step1=0):
    return seat0, seat1, outcome, step0, step1


def fold(table, *games):
    for one in games:
        table.fold(*one)


def learning(*names, drift=10.0):
    table = RatingTable(Drift(drift))
    for name in names:
        table.learns(name)
    return table


def table_of(games):
    table = RatingTable()
    fold(table, *games)
    return table


def grown(belief, tau):
    return Belief(belief.mu, math.hypot(belief.sigma, tau))


def rounded(*beliefs):
    return [(round(belief.mu, 3), round(belief.sigma, 3)) for belief in beliefs]


def test_known_answers():
    """Of the package's documentation; its 6.458 after a draw is of players with τ = 25/300."""
    winner, loser = rate(NEWCOMER, NEWCOMER, 1.0)
    assert rounded(winner, loser) == [(29.396, 7.171), (20.604, 7.171)]
    assert rate(NEWCOMER, NEWCOMER, 0.0) == (loser, winner)
    drifted = grown(NEWCOMER, 25.0 / 300.0)
    assert rounded(*rate(drifted, drifted, 0.5)) == [(25.0, 6.458)] * 2
    assert rounded(*rate(NEWCOMER, NEWCOMER, 0.5)) == [(25.0, 6.457)] * 2
    assert rounded(rate(NEWCOMER, NEWCOMER, 1.0, 1e-4)[0]) == [(29.205, 7.194)]
    assert Belief(30.0, 2.0).score == 24.0


def test_a_link_bends_predictions():
    t, e = 0.9, 0.2
    plain = (math.erf((t - e) / math.sqrt(2)) + math.erf((t + e) / math.sqrt(2))) / 4 + 0.5
    assert Link().score(t, e) == pytest.approx(plain, abs=1e-12)
    assert Link().score(-t, e) == pytest.approx(1.0 - plain, abs=1e-12)
    assert 0.5 < Link(sharpness=0.5).score(t, e) < plain
    logistic = 1.0 / (1.0 + math.exp(-1.702 * t))
    assert Link(logistic_share=1.0).curve(t) == pytest.approx(logistic, abs=1e-12)


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
        got = rate(*match, draw_probability)
        wanted = with_fifty_digits(*match, draw_probability)
        for mine, theirs in zip(got, wanted, strict=True):
            assert mine.mu == pytest.approx(theirs.mu, rel=1e-7)
            assert mine.sigma == pytest.approx(theirs.sigma, rel=1e-5)


def test_a_pinned_player_never_moves_and_counts_as_known():
    table = learning("anchor")
    table.pin("anchor", 31.0)
    expected = NEWCOMER
    for step, outcome in enumerate((1.0, 0.5, 0.0, 0.0)):
        fold(table, game(outcome, "anchor", "new", step0=1_000_000 * step))
        expected = with_fifty_digits(Belief(31.0, 1e-9), expected, outcome, 0.1)[1]
    assert table.belief("anchor") == Belief(31.0, 0.0)
    assert table.belief("new").mu == pytest.approx(expected.mu, abs=1e-9)
    assert table.belief("new").sigma == pytest.approx(expected.sigma, abs=1e-9)
    with pytest.raises(InvalidInput, match="nan"):
        table.pin("bot", math.nan)


def test_an_unpinned_anchor_has_its_belief_from_before_the_pin():
    table, plain = RatingTable(), RatingTable()
    for one in (table, plain):
        fold(one, game(1.0))
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


def test_a_live_player_is_less_known_the_more_it_learnt():
    def sigma_after(*steps):
        table = learning("main")
        for step in steps:
            fold(table, game(0.5, "main", "bot", step0=step))
        return table.belief("main").sigma

    assert sigma_after(1_000, 1_000) < sigma_after(1_000, 50_000) < sigma_after(1_000, 500_000)
    assert sigma_after(400_000, 100_000) == sigma_after(400_000, 400_000), "a late result"


def test_a_snapshot_inherits_its_parents_belief():
    table = learning("main")
    fold(table, *(game(1.0, "main", "bot", step0=step) for step in (0, 1_000, 2_000)))
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
    table.inherit("young", "anchor", 5)
    assert table.belief("young") == Belief(30.0, NEWCOMER.sigma), "an anchor's σ is its own"
    assert table.columns(["new", "young"]).knows_N.tolist() == [False, True]


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
    fold(at_once, *log)
    fold(first_part, *log[:split])
    second_part = RatingTable.restored(json.loads(json.dumps(first_part.state())))
    fold(second_part, *log[split:])
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


def test_a_trend_has_scores_of_the_whole_past_and_stays_short():
    """The score after every game at first, then after every 2nd, every 4th, ..."""
    games = [game(float(number % 3 == 0), "one", f"other{number % 7}") for number in range(200)]
    table, scores = RatingTable(), []
    for number, one in enumerate(games, start=1):
        fold(table, one)
        scores.append(table.belief("one").score)
        (own,) = [r for r in table.leaderboard(AnyPlayer()) if r.player.name == "one"]
        stride = 1 << max(0, number.bit_length() - 5)
        assert own.trend == pytest.approx(scores[stride - 1 :: stride], abs=0.006)
        assert len(own.trend) < 32


class AnyPlayer(dict):
    """Players of every name."""

    def __missing__(self, name):
        return Player(name=name, game="g", kind=PlayerKind.BOT)


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


def test_an_epoch_measures_the_games_since_the_last_one():
    table = RatingTable(draw_probability=0.2)
    fold(table, *[game(0.5)] * 500, *[game(1.0)] * 499)
    assert table.next_epoch(999) is None
    table.fold("b", "a", 1.0)
    first = table.next_epoch(1_234)
    assert (first.after_position, first.games) == (1_234, FIRST_GAMES)
    expected = (500 + PRIOR_GAMES * 0.2) / (FIRST_GAMES + PRIOR_GAMES)
    assert first.draw_probability == pytest.approx(expected)
    table.begin_epoch(1_234, first.draw_probability, first.link)
    fold(table, *[game(1.0)] * 500)
    second = table.next_epoch(2_000)
    expected = PRIOR_GAMES * first.draw_probability / (500 + PRIOR_GAMES)
    assert second.draw_probability == pytest.approx(expected), "no draw among the 500 games since"
    assert second.games == GROWTH * FIRST_GAMES


@pytest.mark.parametrize(("share", "bound"), [(0.0, DRAWS_FLOOR), (1.0, DRAWS_CEILING)])
def test_the_draw_probability_keeps_its_bounds(share, bound):
    record = PredictionRecord()
    record.games[0], record.draws[0] = 1e6, 1e6 * share
    assert record.draw_probability(0.1) == bound
    assert PredictionRecord().draw_probability(0.1) == pytest.approx(0.1)


def test_a_record_counts_a_game_from_the_side_that_is_ahead():
    record = PredictionRecord()
    record.add(0.31, 6.0, 1.0)
    record.add(-0.31, 6.0, 0.0)
    record.add(99.0, 6.0, 0.5)
    assert (record.games[3], record.scores[3]) == (2.0, 2.0)
    assert (record.games[-1], record.draws[-1], record.scores[-1]) == (1.0, 1.0, 0.5)


def planted(link, games=50_000, c=6.5):
    """Returns the record of games that came out exactly as `link` says."""
    record, margin = PredictionRecord(), draw_margin(0.1)
    for place in range(41):
        t = 0.1 * place + 0.05
        record.games[place], record.gaps[place] = float(games), games * t
        record.narrowness[place] = games / c
        record.scores[place] = games * float(link.score(t, margin / c))
    return record


@pytest.mark.parametrize("link", [Link(), Link(0.8, 0.0), Link(1.2, 1.0), Link(0.93, 0.5)])
def test_the_link_that_made_the_games_is_found(link):
    assert planted(link).link(0.1) == link


def test_few_games_bend_little():
    assert PredictionRecord().link(0.1).sharpness == 1.0
    assert planted(Link(0.6), games=1).link(0.1).sharpness > 0.8
