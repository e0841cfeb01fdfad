"""Presets that weigh the reward terms of terms.py.

A reward is `reward_terms_N2K @ weights_K`: the sum that is trained on and the values that are logged
come from the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.brawl.terms import DAMAGE_SCALE, TERM_HELP, TERMS

PRESETS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "dense": {
            "damage": 1.0,
            "danger_zone": 0.5,
            "attack_state": -0.04,
            "many_keys": -0.01,
            "win": 50.0,
            "knockout": 8.0,
            "combo": 5.0,
            "equip": 5.0,
            "drop": 15.0,
        },
        "sparse": {"damage": DAMAGE_SCALE, "win": 100.0, "knockout": 50.0},
        # Small scale for quick learning: a dense pull toward the opponent, then hits, then knockouts.
        "laptop": {"toward_opponent": 0.6, "damage": 1.0, "combo": 0.5, "knockout": 5.0, "win": 10.0},
        # For who can reach the opponent already: exchanges of blows, and staying on the stage.
        "duel": {"toward_opponent": 0.1, "damage": 5.0, "danger_zone": 4.0, "knockout": 5.0, "win": 5.0},
    }
)


def reward_weights(preset: str, overrides: Mapping[str, float] | None = None) -> NDArray[np.float32]:
    """float32[K]: the preset's weights with single terms overridden; raises `ConfigError`."""
    if preset not in PRESETS:
        raise ConfigError(f"there is no reward preset {preset!r}: choose one of {', '.join(PRESETS)}")
    weights = {**PRESETS[preset], **(overrides or {})}
    for term, weight in weights.items():
        if term not in TERM_HELP:
            raise ConfigError(f"there is no reward term {term!r}: known are {', '.join(TERMS)}")
        if not np.isfinite(weight):
            raise ConfigError(f"the weight of reward term {term!r} is {weight}: it must be a finite number")
    return np.array([weights.get(term, 0.0) for term in TERMS], np.float32)
