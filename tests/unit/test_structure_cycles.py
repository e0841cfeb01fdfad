"""The cyclic share and its interval; three-cycles found, ordered, counted and tested."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from structure_games import (
    BIASED_RPS,
    CHAIN,
    DISC,
    RPS,
    blotto,
    chances,
    elo,
    expected,
    games,
    partly_cyclic,
    played,
)

from league.stats.structure.cycles import (
    count_cycles,
    cyclicity,
    holm,
    replayed,
    side_p_values,
    split,
    strongest_cycles,
    sure_cycles,
)
from league.stats.structure.table import logits


def brute_force(beats):
    return {
        three
        for three in itertools.permutations(range(len(beats)), 3)
        if three[0] == min(three)
        and beats[three[0], three[1]] and beats[three[1], three[2]] and beats[three[2], three[0]]
    }  # fmt: skip


def test_rock_paper_scissors_is_the_cycle():
    table = expected(chances(2 * RPS), 40)
    (cycle,) = strongest_cycles(table, 5)
    assert cycle.players == (0, 2, 1), "rock beats scissors, who beat paper, who beats rock"
    assert cycle.games == (40, 40, 40)
    assert cycle.strength == pytest.approx(float(table.chance_NN[0, 2]))
    assert cycle.p_value < 1e-5
    assert sure_cycles(table) == 1


@settings(max_examples=50, deadline=None)
@given(games(most=8), st.integers(1, 12))
def test_the_strongest_of_all_are_found(payoff, most):
    table = expected(chances(payoff), 100)
    found = strongest_cycles(table, most)
    everyone = brute_force((table.chance_NN > 0.5) & table.known_NN)
    assert count_cycles((table.chance_NN > 0.5) & table.known_NN) == len(everyone)
    assert len(found) == min(most, len(everyone))
    assert {cycle.players for cycle in found} <= everyone

    def strength(three):
        return min(table.chance_NN[three[i], three[(i + 1) % 3]] for i in range(3))

    best = sorted((strength(three) for three in everyone), reverse=True)[:most]
    assert [cycle.strength for cycle in found] == pytest.approx(best)


def test_sides_that_never_met_make_no_cycle():
    known = np.ones((3, 3), dtype=bool)
    known[0, 1] = known[1, 0] = False
    table = replace(expected(chances(RPS), 30, known), predicted_NN=chances(RPS))
    assert table.chance_NN[1, 0] > 0.5, "the ratings think so"
    assert strongest_cycles(table, 5) == []


def test_a_sides_p_value_is_the_exact_sign_test():
    rng = np.random.default_rng(0)
    table = played(np.full((2, 2), 0.7), 25, rng, drawn=0.4)
    won, lost = int(table.wins_NN[0, 1]), int(table.wins_NN[1, 0])
    one, other = (binomtest(k, won + lost, alternative="greater").pvalue for k in (won, lost))
    adjusted = side_p_values(table)
    assert adjusted[0, 1] == pytest.approx(min(1, 2 * one))
    assert adjusted[1, 0] == pytest.approx(min(1, max(2 * one, other)))
    assert adjusted[0, 0] == 1


def test_holm_by_hand():
    """.01·4, .02·3, .03·2 (but not under the one before), .5·1."""
    assert holm(np.array([0.5, 0.01, 0.03, 0.02])) == pytest.approx([0.5, 0.04, 0.06, 0.06])


def test_looking_at_many_even_players_finds_no_sure_cycle():
    """Of 40 leagues without any, at most 5 % may have a sure cycle: 6 or more has a chance under
    2 %.
    """
    rng = np.random.default_rng(6)
    leagues = [played(np.full((12, 12), 0.5), 30, rng) for _ in range(40)]
    assert any(strongest_cycles(league, 1) for league in leagues)
    assert sum(sure_cycles(league) > 0 for league in leagues) < 6


@pytest.mark.parametrize(
    ("payoff", "share"),
    [
        (elo([0.0, 0.3, 1.0, 2.0]), 1.0),
        (RPS, 0.0),
        (DISC, 0.0),
        (BIASED_RPS, 0.323),
        (blotto(5, 3), 0.229),
        (CHAIN, 8 / 9),
    ],
    ids=["elo", "rps", "disc", "biased rps", "blotto", "chain"],
)
def test_known_transitive_shares(payoff, share):
    assert split(payoff).cyclic_share == pytest.approx(1 - share, abs=5e-4)


@settings(max_examples=60, deadline=None)
@given(games())
def test_both_parts_are_antisymmetric_and_orthogonal(payoff):
    found = split(payoff)
    assert np.allclose(found.transitive_NN + found.cyclic_NN, payoff)
    assert np.allclose(found.transitive_NN, -found.transitive_NN.T)
    assert np.allclose(found.cyclic_NN.sum(axis=1), 0), (
        "nothing of a cycle makes anybody better on the whole"
    )
    assert np.sum(found.transitive_NN * found.cyclic_NN) == pytest.approx(0, abs=1e-9)
    assert np.allclose(found.strength_N, payoff.mean(axis=1), atol=1e-9)


def test_unknown_pairs_have_no_say():
    """A line of which only neighbours met is a line, whatever the other pairs hold."""
    payoff = elo([0.0, 1.0, 5.0, 5.5])
    known = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    payoff[~known] = 0.0
    found = split(payoff, known)
    assert found.cyclic_share == pytest.approx(0.0)
    assert np.diff(found.strength_N) == pytest.approx([1.0, 4.0, 0.5])
    assert split(payoff).cyclic_share > 0.1, "taken as even they look cyclic"


@pytest.mark.parametrize(
    ("payoff", "share"),
    [(elo([0.0, 0.3, 1.0, 2.0]), 0.0), (RPS, 1.0), (CHAIN, 1 / 9)],
    ids=["elo", "rps", "chain"],
)
def test_with_many_matches_the_estimate_is_the_known_share(payoff, share):
    found = cyclicity(expected(chances(payoff), 100_000), 40, np.random.default_rng(0))
    assert found.share == pytest.approx(share, abs=0.005)
    assert found.low <= found.share <= found.high < found.low + 0.02


@pytest.mark.parametrize("logit", [0.0, 0.1])
def test_few_matches_of_equal_players_say_nothing(logit):
    """If all results are even, the estimate is unknown; the interval is 0 to 1 anyway."""
    found = cyclicity(expected(chances(logit * RPS), 10), 40, np.random.default_rng(0))
    assert np.isnan(found.share)
    assert (found.low, found.high) == (0, 1)


def test_two_players_have_no_cycle():
    found = cyclicity(expected(chances(elo([0.0, 2.0])), 40), 40, np.random.default_rng(0))
    assert (found.share, found.low, found.high) == (0, 0, 0)


def test_results_that_happen_to_fit_a_ladder_prove_little():
    table = expected(chances(elo(np.linspace(-1, 1, 12))), 20)
    found = cyclicity(table, 40, np.random.default_rng(0))
    assert (found.share, found.low) == (0, 0)
    assert found.high > 0.1, "as for matches whose noise looks cyclic"


def leagues(share, games, count, known=None):
    """Finds the shares of `count` random leagues of six players with the true `share`."""
    rng, known = np.random.default_rng(5), ~np.eye(6, dtype=bool) if known is None else known
    for _ in range(count):
        truth = partly_cyclic(known, share, 1.4, rng)
        table = played(chances(truth), games, rng, drawn=0.2, known_NN=known)
        yield table, cyclicity(table, 60, rng)


def test_noise_is_not_taken_for_a_cycle():
    """10 matches a pair make a ladder look 10 % cyclic. Most of it is noise."""
    found = list(leagues(0.0, 10, 12))
    raw = [split(logits(table.chance_NN), table.known_NN).cyclic_share for table, _ in found]
    shares, lows = np.array([(its.share, its.low) for _, its in found]).T
    assert np.mean(raw) > 0.1
    assert np.mean(shares) < 0.6 * np.mean(raw)
    assert np.mean(lows > 0) <= 0.1


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("met", [1.0, 0.5])
def test_the_interval_contains_the_true_share(share, met):
    """A true coverage of 95 % leaves out 10 of 80 leagues or more with a probability under 1 %."""
    known = np.random.default_rng(0).random((6, 6)) < met
    known = np.triu(known, 1) | np.triu(known, 1).T
    found = [its for _, its in leagues(share, 40, 80, known)]
    assert sum(not its.low <= share <= its.high for its in found) < 10
    assert np.mean([its.high - its.low for its in found]) < 0.5, "the interval is not just wide"
    assert np.mean([its.share for its in found]) == pytest.approx(share, abs=0.03)


def test_matches_are_played_again_as_often_and_draw_as_often():
    rng = np.random.default_rng(1)
    table = played(chances(elo([0.0, 1.0, 2.0, -1.0])), 500, rng, drawn=0.5)
    again = replayed(table, table.chance_NN, rng)
    assert (again.games_NN == table.games_NN).all()
    assert again.draws_NN.sum() == pytest.approx(table.draws_NN.sum(), rel=0.1)
    assert again.wins_NN == pytest.approx(table.wins_NN, abs=100)
    assert (again.wins_NN != table.wins_NN).any()
