"""Many candidates at once: what the sampling rules need of them in columns, and their weights.

The same formulas as `matchmaker.sampling.mixes` has for one candidate, for leagues of thousands:
weights of all are found anew whenever enough has changed. Shapes: N candidates, oldest first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.players import Book, Player, PlayerKind
from league.stats.payoff import NO_GAMES
from league.stats.ratings import BETA, RatingTable
from matchmaker.sampling.mixes import Policy, age_weights

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Players that may be drawn, from the asking learner's view.

    Attributes:
        wins_N, draws_N, losses_N: of the learner against each, in training.
        predicted_N: win probability of the learner over each, by the ratings.
        quality_N: TrueSkill match quality.
    """

    names: tuple[str, ...]
    wins_N: Array
    draws_N: Array
    losses_N: Array
    predicted_N: Array
    quality_N: Array


def columns_of(
    players: Sequence[Player], learner: Player, tables: Mapping[Book, RatingTable]
) -> Columns:
    """As `candidates.candidate_of` has it of each."""
    names = [player.name for player in players]
    train = tables[Book.TRAIN]
    mine = train.belief(learner.name)
    row = train.payoff.row(learner.name)
    counts_N3 = np.array(
        [(c.wins, c.draws, c.losses) for c in (row.get(name, NO_GAMES) for name in names)], float
    )
    counts_N3 = counts_N3.reshape(-1, 3)
    mu_N, variance_N = _believed(players, names, tables, mine.mu, mine.sigma**2)
    c_N = np.sqrt(2.0 * BETA**2 + mine.sigma**2 + variance_N)
    t_N = (mine.mu - mu_N) / c_N
    return Columns(
        names=tuple(names),
        wins_N=counts_N3[:, 0],
        draws_N=counts_N3[:, 1],
        losses_N=counts_N3[:, 2],
        predicted_N=train.link.curve(t_N),
        quality_N=math.sqrt(2.0) * BETA / c_N * np.exp(-(t_N**2) / 2.0),
    )


def _believed(
    players: Sequence[Player],
    names: Sequence[str],
    tables: Mapping[Book, RatingTable],
    mu: float,
    variance: float,
) -> tuple[Array, Array]:
    """μ and σ² of each, as `candidates.opponent_belief` has them; `mu`, `variance` are the
    learner's own.
    """
    clean, train = tables[Book.EVAL].columns(names), tables[Book.TRAIN].columns(names)
    is_copy_N = (
        np.array([player.kind is PlayerKind.SNAPSHOT for player in players], bool) & ~train.knows_N
    )
    mu_N = np.where(clean.has_N, clean.mu_N, np.where(is_copy_N, mu, train.mu_N))
    variance_N = np.where(
        clean.has_N, clean.variance_N, np.where(is_copy_N, variance, train.variance_N)
    )
    return mu_N, variance_N


def _each(function: Callable[[float], float], x_N: Array) -> Array:
    return np.array(list(map(function, x_N.tolist())), np.float64)


def weights_of(policy: Policy, candidates: Columns) -> list[float]:
    """Weights of the candidates, not normalised."""
    by_age = age_weights(policy, len(candidates.names))
    if by_age is not None:
        return by_age
    if policy.rule == "quality":
        return candidates.quality_N.tolist()
    return _pfsp(policy, *posteriors(candidates, policy.prior_games)).tolist()


def posteriors(candidates: Columns, prior_games: float) -> tuple[Array, Array]:
    """a and b of each one's `sampling.posterior`."""
    p_N = np.clip(candidates.predicted_N, 1e-6, 1.0 - 1e-6)
    a_N = prior_games * p_N + candidates.wins_N + 0.5 * candidates.draws_N
    b_N = prior_games * (1.0 - p_N) + candidates.losses_N + 0.5 * candidates.draws_N
    return a_N, b_N


def _pfsp(policy: Policy, a_N: Array, b_N: Array) -> Array:
    """The expectation of the rule's function over Beta(a, b), as `sampling.Posterior` has it."""
    n_N = a_N + b_N
    if policy.rule == "pfsp_hard" and policy.power == 2.0:
        return b_N * (b_N + 1.0) / (n_N * (n_N + 1.0))
    if policy.rule == "pfsp_hard":
        lgamma, power = math.lgamma, policy.power
        above_N = _each(lgamma, b_N + power) + _each(lgamma, n_N)
        return np.exp(above_N - _each(lgamma, b_N) - _each(lgamma, n_N + power))
    if policy.rule == "pfsp_var":
        return a_N * b_N / (n_N * (n_N + 1.0))
    if policy.rule == "pfsp_linear":
        return b_N / n_N
    if policy.rule == "pfsp_capped":
        from scipy.special import betainc  # half a second to load, and only this rule wants it

        below_N = b_N / n_N * betainc(b_N + 1.0, a_N, 0.5)
        return np.asarray(below_N + 0.5 * betainc(a_N, b_N, 0.5))
    raise ValueError(f"{policy.rule!r} is no sampling rule")
