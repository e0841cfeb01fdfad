"""Learners in the fit: their stretches, the walk that ties them, and the drift that games show."""

import math

import numpy as np
import pytest

from league.errors import InvalidInput
from league.stats.ratings import Drift
from league.stats.ratings.fit import fit, log_probabilities
from league.stats.ratings.lineage import (
    SLOPE_SIGMA,
    START_SIGMA,
    Seats,
    Walk,
    fit_lineages,
    measured_drift,
    nodes_of,
)

SETTLING = 50_000


def seats(lineage, step, is_live):
    return Seats(np.array(lineage), np.array(step), np.array(is_live))


def test_stretches_snapshots_and_bots_are_nodes_in_order_of_steps():
    """Lineage 0 plays live at four steps of two stretches, and two snapshots of it; lineage 7 is
    a bot.
    """
    live = [0, 2_000, 104_000, 106_000]
    first = seats([0] * 4 + [0, 0], [*live, 52_000, 52_000], [True] * 4 + [False, False])
    second = seats([7] * 5 + [0], [0] * 5 + [300_000], [False] * 6)
    outcome = np.array([1.0, 0.0, 0.5, 1.0, 1.0, 0.0])
    nodes = nodes_of(first, second, outcome, SETTLING)
    assert nodes.lineage_N.tolist() == [0, 0, 0, 0, 7]
    assert nodes.step_N.tolist() == [1_000.0, 52_000.0, 105_000.0, 300_000.0, 0.0]
    assert nodes.is_live_N.tolist() == [True, False, True, False, False]
    assert (nodes.first_N[2], nodes.last_N[2]) == (104_000.0, 106_000.0)
    assert nodes.seat0_G.tolist() == [0, 0, 2, 2, 1, 1]
    assert nodes.seat1_G.tolist() == [4, 4, 4, 4, 4, 3]
    played = dict(
        zip(
            zip(nodes.counts.first_P, nodes.counts.second_P, strict=True),
            nodes.counts.games_P,
            strict=True,
        )
    )
    assert played == {(0, 4): 2, (2, 4): 2, (1, 4): 1, (1, 3): 1}


def test_the_walk_is_that_of_means_over_stretches():
    """Against a walk drawn many times: stretches, and snapshots within, between and after them."""
    early = np.array([0.0, 0.15, 0.3, 0.45, 0.9, 1.5])
    late = np.array([0.3, 0.15, 0.6, 0.45, 0.9, 2.0])
    order = np.argsort((early + late) / 2)
    walk = Walk(np.arange(6), ((early + late) / 2)[order], early[order], late[order])
    rng, cells = np.random.default_rng(1), 400
    x = (np.arange(cells) + 0.5) * 2.0 / cells
    paths = np.cumsum(rng.normal(0.0, math.sqrt(2.0 / cells), (5_000, cells)), axis=1)
    shown = [
        paths[:, (x >= a) & (x <= b)].mean(axis=1) if b > a else paths[:, np.searchsorted(x, a)]
        for a, b in zip(early[order], late[order], strict=True)
    ]
    assert walk.covariance_KK() == pytest.approx(np.cov(np.array(shown)), abs=0.07)
    precision = walk.block(3.0).precision_KK
    expected = (
        START_SIGMA**2 + SLOPE_SIGMA**2 * np.outer(walk.x_K, walk.x_K) + 3.0 * walk.covariance_KK()
    )
    assert np.linalg.inv(precision) == pytest.approx(expected, abs=0.01)


def learners(rng, kappa, climb=5.0, learners=6, games=2_500):
    """Live games of learners against four bots; strengths in points at 3.44 a logit."""
    step = np.sort(rng.integers(0, 2_000_000, (learners, games)), axis=1)
    fold = np.log1p(step / SETTLING)
    moves = rng.normal(size=fold.shape) * np.sqrt(kappa * np.diff(fold, axis=1, prepend=0.0))
    theta = (climb * fold + np.cumsum(moves, axis=1) - 8.0) / 3.44
    lineage = np.repeat(np.arange(learners), games)
    bot = rng.integers(4, size=lineage.size)
    gap = theta.ravel() - np.array([-2.0, 0.0, 2.0, 4.0])[bot]
    outcome = (rng.random(gap.size) < np.exp(log_probabilities(gap, -math.inf)[0])).astype(
        np.float64
    )
    live = np.ones(gap.size, np.bool_)
    still = np.zeros(gap.size, np.int64)
    nodes = nodes_of(
        Seats(lineage, step.ravel(), live), Seats(learners + bot, still, ~live), outcome, SETTLING
    )
    truth = np.bincount(nodes.seat0_G, theta.ravel(), len(nodes.step_N)) / np.maximum(
        1, np.bincount(nodes.seat0_G, minlength=len(nodes.step_N))
    )
    return nodes, truth


@pytest.mark.parametrize(("kappa", "guess"), [(3.0, 60.0), (12.0, 0.3)])
def test_the_drift_of_simulated_learners_is_found(kappa, guess):
    nodes, _ = learners(np.random.default_rng(2), kappa, learners=3, games=3_000)
    drift, found = measured_drift(nodes, Drift(guess))
    assert drift.points2_per_fold == pytest.approx(kappa, rel=0.35)
    assert drift.settling_steps == SETTLING
    assert fit_lineages(nodes, drift).rating_N == pytest.approx(found.rating_N, abs=0.01)


def test_neighbours_lend_each_other_games():
    nodes, truth = learners(np.random.default_rng(3), 2.0, games=800)
    tied, alone = fit_lineages(nodes, Drift(2.0)), fit(nodes.counts, len(nodes.step_N))
    live = nodes.is_live_N
    truth = 3.44 * truth
    wrong = [np.std((found.rating_N - truth)[live]) for found in (tied, alone)]
    assert wrong[0] < 0.6 * wrong[1]
    widths = [np.diff(found.intervals(), axis=0)[0][live].mean() for found in (tied, alone)]
    assert widths[0] < 0.6 * widths[1]


def test_a_steady_climb_is_not_made_shorter():
    """Nothing wanders, so the walk alone would expect no climb at all."""
    nodes, truth = learners(np.random.default_rng(4), 0.0, climb=6.0)
    found = fit_lineages(nodes, Drift(0.2))
    live = nodes.is_live_N
    climbed = np.polyfit(3.44 * truth[live], found.rating_N[live], 1)[0]
    assert climbed == pytest.approx(1.0, abs=0.04)


def test_a_league_without_learners_shows_no_drift():
    bots = [seats([n, n], [0, 0], [False, False]) for n in (0, 1)]
    nodes = nodes_of(*bots, np.array([1.0, 0.0]))
    with pytest.raises(InvalidInput, match="no learner has two snapshots"):
        measured_drift(nodes, Drift())
    assert fit_lineages(nodes, Drift()).rating_N == pytest.approx([25.0, 25.0])
