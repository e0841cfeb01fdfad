"""Games with known structure, and tables of matches played in them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from league.stats.structure.cycles import split
from league.stats.structure.table import Matrix, Table, measured_prior

RPS = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]])
CHAIN = np.array([[0.0, -1, -1], [1, 0, -1], [1, 1, 0]])
BIASED_RPS = np.array([[0.0, -25, 50], [25, 0, -5], [-50, 5, 0]])
_ANGLES = np.arange(6) * np.pi / 3
DISC = np.sin(_ANGLES[None, :] - _ANGLES[:, None])


def elo(strengths: Sequence[float]) -> Matrix:
    """Logits of players on a line."""
    strength_N = np.asarray(strengths, float)
    return strength_N[:, None] - strength_N[None, :]


def blotto(coins: int, fields: int) -> Matrix:
    """1 for who has more coins on more fields; all ways to divide the coins."""
    ways = [way for way in itertools.product(range(coins + 1), repeat=fields) if sum(way) == coins]
    signs = [[np.sign(np.sign(np.subtract(one, other)).sum()) for other in ways] for one in ways]
    return np.array(signs, float)


@st.composite
def games(draw: st.DrawFn, most: int = 9, whole: bool = True) -> Matrix:
    """Antisymmetric payoffs: of −1, 0 and 1, so that many players tie, or of any size."""
    count = draw(st.integers(1, most))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    upper = (
        rng.integers(-1, 2, (count, count))
        if whole and draw(st.booleans())
        else rng.normal(size=(count, count))
    )
    payoff_NN = np.triu(upper, 1).astype(float)
    return payoff_NN - payoff_NN.T


def partly_cyclic(known_NN: Matrix, share: float, size: float, rng: np.random.Generator) -> Matrix:
    """Random logits whose cyclic share over the known pairs is `share`, of the given mean size."""
    count = len(known_NN)
    noise_NN = rng.normal(size=(count, count))
    ladder_NN, cyclic_NN = elo(rng.normal(size=count)) * known_NN, noise_NN - noise_NN.T
    whole = size * np.sqrt(known_NN.sum())
    parts = (ladder_NN, 1 - share), (split(cyclic_NN, known_NN).cyclic_NN, share)
    return sum(whole * np.sqrt(its) / np.linalg.norm(part_NN) * part_NN for part_NN, its in parts)


def chances(logit_NN: Matrix) -> Matrix:
    return 1.0 / (1.0 + np.exp(-logit_NN))


def expected(chance_NN: Matrix, games: int, known_NN: Matrix | None = None) -> Table:
    """Matches that end as often as their chances say, and ratings that know nothing."""
    counts_NN = (
        np.full(chance_NN.shape, float(games))
        if known_NN is None
        else games * known_NN.astype(float)
    )
    np.fill_diagonal(counts_NN, 0.0)
    return _table(np.round(chance_NN * counts_NN), np.zeros_like(counts_NN))


def played(
    chance_NN: Matrix,
    games: int,
    rng: np.random.Generator,
    drawn: float = 0.0,
    known_NN: Matrix | None = None,
) -> Table:
    """Matches as they fall; a share `drawn` of the room that a chance leaves ends in draws."""
    wins_NN, draws_NN = np.zeros((2, *chance_NN.shape))
    for one, other in itertools.combinations(range(len(chance_NN)), 2):
        if known_NN is not None and not known_NN[one, other]:
            continue
        p = chance_NN[one, other]
        d = drawn * 2 * min(p, 1 - p)
        won, drew, lost = rng.multinomial(games, [p - d / 2, d, 1 - p - d / 2])
        wins_NN[one, other], wins_NN[other, one] = won, lost
        draws_NN[one, other] = draws_NN[other, one] = drew
    return _table(wins_NN, draws_NN)


def _table(wins_NN: Matrix, draws_NN: Matrix) -> Table:
    predicted_NN = np.full(wins_NN.shape, 0.5)
    return Table(
        names=tuple(f"p{index}" for index in range(len(wins_NN))),
        wins_NN=wins_NN,
        draws_NN=draws_NN,
        predicted_NN=predicted_NN,
        prior_games=measured_prior(wins_NN, draws_NN, predicted_NN),
        matches_NN=wins_NN + wins_NN.T + draws_NN,
    )
