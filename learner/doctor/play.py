"""Matches played to look at the game alone: traces of what was seen, paid and decided.

Shape suffixes: T decisions, N matches, 2 seats, O observation, K reward terms, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE, EXTERNAL, BatchedGame

KEY_SHARE = 0.18
"""How often a fresh policy holds a key: sigmoid(-1.5)."""

Chosen = Callable[[int, BatchedGame], NDArray[np.uint8]]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What happened in T decisions of N matches. `scores_TN` is seat 0's where `ended_TN`, else
    NaN.
    """

    observations_TN2O: NDArray[np.float32]
    terms_TN2K: NDArray[np.float32]
    ended_TN: NDArray[np.bool_]
    scores_TN: NDArray[np.float32]

    @property
    def first_TN(self) -> NDArray[np.bool_]:
        """Whether the decision belongs to the row's first match, its last one included."""
        ends_TN = np.cumsum(self.ended_TN, axis=0)
        return (ends_TN - self.ended_TN) == 0

    def rewards_TN2(self, weights_K: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weighted reward of each decision and seat."""
        return self.terms_TN2K @ weights_K


def record(
    game: BatchedGame,
    seeds_N: NDArray[np.uint64],
    choose: Chosen,
    steps: int,
    frame_skip: int,
    bots_N2: NDArray[np.int8] | None = None,
) -> Trace:
    """Plays `steps` decisions from `seeds_N`, stopping early once every row's first match has
    ended.

    `choose(t, game)` gives the actions of both seats; rows' later matches follow from their seeds.
    """
    game.bots_N2[:] = EXTERNAL if bots_N2 is None else bots_N2
    game.reset(seeds_N)
    game.next_seeds_N[:] = seeds_N + np.uint64(1_000_003)
    seen, paid, ended, scores = [game.observations_N2O.copy()], [], [], []
    over_N = np.zeros(game.num_matches, np.bool_)
    for t in range(steps):
        game.step(choose(t, game), frame_skip)
        paid.append(game.reward_terms_N2K.copy())
        ended.append(game.ended_N.copy())
        scores.append(np.where(game.ended_N, game.outcomes_N, np.nan).astype(np.float32))
        seen.append(game.observations_N2O.copy())
        over_N |= game.ended_N
        if over_N.all():
            break
    return Trace(
        observations_TN2O=np.stack(seen[:-1]),
        terms_TN2K=np.stack(paid),
        ended_TN=np.stack(ended),
        scores_TN=np.stack(scores),
    )


def random_player(
    num_matches: int, seed: int, streams_N: NDArray[np.int64] | None = None
) -> Chosen:
    """Plays as a fresh policy would: keys held now and then, or any legal choice.

    Rows of one stream draw the same luck at each decision; without `streams_N` each has its own.
    """
    streams = np.arange(num_matches) if streams_N is None else streams_N

    def choose(t: int, game: BatchedGame) -> NDArray[np.uint8]:
        rng = np.random.default_rng((seed, t))
        shape = (int(streams.max()) + 1, 2, game.spec.action_size)
        return decide(game, rng.random(shape, np.float32)[streams])

    return choose


def decide(game: BatchedGame, luck_N2A: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Actions of both seats from uniform luck."""
    if game.spec.action_kind != CHOICE:
        return (luck_N2A < KEY_SHARE).astype(np.uint8)
    assert game.legal_N2A is not None
    best_N21 = np.where(game.legal_N2A, luck_N2A, -1.0).argmax(-1)[..., None]
    actions_N2A = np.zeros(luck_N2A.shape, np.uint8)
    np.put_along_axis(actions_N2A, best_N21, 1, -1)
    return actions_N2A


def first_difference_N(
    one: Trace, other: Trace, rows: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.int64]:
    """First decision at which rows of one trace and rows of another are not bit for bit alike;
    -1: never.
    """
    steps = min(len(one.ended_TN), len(other.ended_TN))
    differ_TR = np.zeros((steps, len(rows)), np.bool_)
    for first, second in (
        (one.observations_TN2O, other.observations_TN2O),
        (one.terms_TN2K, other.terms_TN2K),
        (one.ended_TN, other.ended_TN),
        (one.scores_TN, other.scores_TN),
    ):
        a, b = first[:steps, rows], second[:steps, others]
        same = (a == b) | ((a != a) & (b != b))
        differ_TR |= ~same.reshape(steps, len(rows), -1).all(-1)
    return np.where(differ_TR.any(0), differ_TR.argmax(0), -1)
