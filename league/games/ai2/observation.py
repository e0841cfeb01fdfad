"""Converts observations of the original game (UTMIST's) for agents of `brawl`.

This file needs only numpy and Python 3.10, because an exported agent contains a copy of it and runs
on the tournament's server.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

SCALES = np.array(
    # x, y, vx, vy, facing 0 left / 1 right, grounded, aerial, jumps left, state, recoveries left
    [14, 8, 12, 12, 0.5, 1, 1, 2, 12, 1]
    # dodge timer, stun frames, damage (/ 700 already), stocks, move type, weapon
    + [10, 17, 1, 3, 12, 2]
    # four weapons: x, y, type (0 none, 1 on a spawner, 2 spear, 3 hammer); the platform
    + 4 * [14, 8, 3]
    + [14, 8, 2, 2]
)
"""Divisors of the 32 numbers that describe a player."""


def converted(raw: ArrayLike) -> NDArray[np.float32]:
    """Converts an observation of the original game to an observation of `brawl`.

    Args:
        raw: numbers in the original game's units. `[..., 32]` for a player, or `[..., 64]` with the
            opponent's numbers after the player's.

    Returns:
        float32 in [-1, 1], of the same shape.
    """
    values = np.asarray(raw, dtype=np.float64)
    halves = values.reshape(-1, len(SCALES)) / SCALES
    halves[:, 2:4] = np.tanh(halves[:, 2:4])
    halves[:, 4] -= 1.0
    return np.clip(halves, -1.0, 1.0).astype(np.float32).reshape(values.shape)
