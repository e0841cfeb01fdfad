"""What the seats across from the learner did in a step, as far as the game tells it.

Shape suffixes: N matches, 2 seats, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.games.base import EXTERNAL, BatchedGame


@dataclass(frozen=True, kw_only=True)
class Moves:
    """Of one step, by match.

    Attributes:
        actions_NA: uint8, the keys held in the last frame that was played, or the choice made
        (one-hot);
            zeros where it is not known.
        legal_NA: bool, what could be chosen then; None in games of keys.
        known_N: bool, where the game tells it and there was something to choose.
    """

    actions_NA: NDArray[np.uint8]
    legal_NA: NDArray[np.bool_] | None
    known_N: NDArray[np.bool_]


def moves_across(
    game: BatchedGame,
    sent_N2A: NDArray[np.uint8],
    other_N: NDArray[np.int64],
    legal_NA: NDArray[np.bool_] | None,
) -> Moves:
    """The moves of seats `other_N` in the step just played, in matches that ended with it too.

    `sent_N2A` is what the game was given, in which bots have no part; `legal_NA` those seats'
    choices before.
    """
    rows, played_N2A = np.arange(game.num_matches), game.played_N2A()
    known_N = game.bots_N2[rows, other_N] == EXTERNAL
    if played_N2A is not None:
        known_N = np.ones_like(known_N)
    actions_NA = (sent_N2A if played_N2A is None else played_N2A)[rows, other_N]
    # a forced move tells nothing, an illegal one (some games allow it) has no place
    if legal_NA is not None:
        known_N = known_N & (legal_NA.sum(-1) > 1) & (actions_NA * legal_NA).any(-1)
    return Moves(actions_NA=actions_NA * known_N[:, None], legal_NA=legal_NA, known_N=known_N)
