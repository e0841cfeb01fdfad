"""Near-copies: found in noisy counts, never chained, and not made of players who are merely
unknown.
"""

import itertools

import numpy as np
import pytest
from structure_games import RPS, chances, elo, expected, played

from league.stats.structure.clusters import FAR, clustered, clusters_of, distances


def of_copies(chance, copies):
    rows = np.repeat(np.arange(len(chance)), copies)
    whole = chance[np.ix_(rows, rows)].copy()
    np.fill_diagonal(whole, 0.5)
    return whole


def test_copies_share_one_weight():
    table = expected(of_copies(chances(2 * RPS), 3), 200)
    found = clusters_of(table)
    assert found.members() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert found.weight_N == pytest.approx(np.full(9, 1 / 3))
    assert found.count == 3


def test_copies_are_seen_through_noise():
    """50 matches a pair: the raw difference of two copies is √(2 · .25 / 50) = 10 points, of
    noise alone.
    """
    rng = np.random.default_rng(2)
    strengths = np.array([-3.0, -1.0, 0.0, 1.2, 3.0])
    table = played(of_copies(chances(elo(strengths)), 4), 50, rng)
    found = clusters_of(table)
    same = found.cluster_N[:, None] == found.cluster_N[None, :]
    alike = np.repeat(np.arange(5), 4)
    truly = alike[:, None] == alike[None, :]
    assert (same == truly).mean() > 0.97


def test_the_distance_is_in_shares_of_matches():
    """0.8 against 0.5: .3 in 4 of 6 columns, and .2 in the two of their match."""
    share = np.full((6, 6), 0.5)
    share[0, 2:], share[2:, 0] = 0.8, 0.2
    share[0, 1], share[1, 0] = 0.7, 0.3
    found = distances(share, np.zeros((6, 6)), np.ones((6, 6), dtype=bool))
    assert found[0, 1] == pytest.approx(np.sqrt((4 * 0.3**2 + 2 * 0.2**2) / 6))
    assert (found == found.T).all()
    assert (np.diag(found) == 0).all()


def test_what_is_not_known_puts_players_apart():
    """The same shares after 4 matches a pair and after 400: only the latter are known to be
    copies.
    """
    few, many = (expected(np.full((5, 5), 0.5), games) for games in (4, 400))
    assert clusters_of(few).count == 5
    assert clusters_of(many).count == 1
    never = distances(np.full((2, 3), 0.5), np.zeros((2, 3)), np.zeros((2, 3), dtype=bool))
    assert never[0, 1] == FAR


def test_the_distance_counts_all_that_either_met_with_its_doubt():
    """By hand, pair by pair."""
    rng = np.random.default_rng(0)
    share, variance = rng.random((4, 7)), rng.random((4, 7)) * 0.02
    known = rng.random((4, 7)) < 0.6
    found = distances(share, variance, known)
    for one, other in itertools.combinations(range(4), 2):
        either = known[one] | known[other]
        noise = (variance[one] + variance[other])[either]
        excess = max(float((((share[one] - share[other])[either]) ** 2 - noise).sum()), 0.0)
        doubt = np.sqrt(2 * (noise**2).sum() + 4 * noise.sum() * excess / either.sum())
        assert found[one, other] == pytest.approx(
            np.sqrt((excess + doubt) / either.sum()), abs=1e-4
        )


def test_a_row_of_small_steps_is_no_cluster():
    """Each is within 10 points of the next, but the first is far from the last: complete
    linkage.
    """
    place = np.linspace(0.0, 0.9, 16)
    found = clustered(np.abs(place[:, None] - place[None, :]))
    assert found.count > 4
    for members in found.members():
        assert place[members].max() - place[members].min() <= 0.1 + 1e-12
