"""Draws random numbers from splitmix64 streams, whose states are parts of a match's state. A seed
gives the same numbers on every machine.

Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014),
constants of Vigna's public-domain splitmix64.c.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from league.games.brawl.compiling import inner

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S30, _S27, _S31 = np.uint64(11), np.uint64(30), np.uint64(27), np.uint64(31)


@inner
def mixed(seed: Any) -> Any:
    """Returns the next number (uint64) of a stream whose state is `seed` (uint64)."""
    z = seed + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@inner
def stream_of(seed: Any, salt: Any) -> Any:
    """Returns the initial state of a random stream of the match with this seed. `salt` identifies
    the stream within the match.

    The seed is mixed before the salt is applied. Otherwise streams of small seeds would coincide.
    """
    return mixed(mixed(seed) ^ salt)


@inner
def draw(owner: Any) -> Any:
    """Returns the next uint64 of the stream of `owner`, a player or a place for weapons."""
    value = mixed(owner.random)
    owner.random = owner.random + _GOLDEN
    return value


@inner
def share(owner: Any) -> float:
    """Returns the next number in [0, 1) of the owner's stream."""
    return (draw(owner) >> _S11) * 2.0**-53
