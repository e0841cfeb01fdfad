"""Numbers that follow from a match's seed alone: its environment's seed, and what the random bot
does.

They are hashes, so a match draws the same whatever it is played beside,
and a saved match needs no generator's state. Shape suffixes: N matches, 2 seats, A action width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.games.choice_game import mixed

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def environment_seed(seed: int) -> int:
    """The seed that an environment gets, below 2^31: NumPy's older generators take no greater
    one.
    """
    return int(mixed(np.array([seed], np.uint64))[0] >> np.uint64(33))


def draws(seeds_N: NDArray[np.uint64], frames_N: NDArray[np.int32]) -> NDArray[np.uint64]:
    """64 random bits for each seat in the frame, [N, 2]."""
    moments_N2 = 2 * frames_N.astype(np.uint64)[:, None] + np.array([[1, 2]], np.uint64)
    return mixed(mixed(seeds_N)[:, None] + moments_N2 * _GOLDEN)


def random_choices(draws_N2: NDArray[np.uint64], legal_N2A: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """One of the legal choices, each with equal probability; one-hot."""
    places_N2A = legal_N2A.cumsum(axis=2)
    chosen_N2 = draws_N2 % places_N2A[:, :, -1].astype(np.uint64)
    return (legal_N2A & (places_N2A == chosen_N2[:, :, None].astype(np.int64) + 1)).astype(np.uint8)


def random_keys(draws_N2: NDArray[np.uint64], size: int) -> NDArray[np.uint8]:
    """Each of `size` keys down with probability 1/2."""
    numbers_A = np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN
    return (mixed(draws_N2[:, :, None] + numbers_A) >> np.uint64(63)).astype(np.uint8)
