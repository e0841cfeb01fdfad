"""Names the reward terms, and defines the presets that weigh them.

A reward is `reward_terms_N2K @ weights_K`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

DAMAGE_SCALE: Final = 140.0
"""Points of damage that count as 1 in the damage terms."""
DANGER_Y: Final = 4.2
"""A player with a larger y is in danger (y points down)."""
MANY_KEYS: Final = 3
"""The term `many_keys` counts frames in which more keys than this are held."""

TERM_HELP: Final = {
    "damage": "(damage dealt - taken) / 140",
    "damage_dealt": "damage dealt / 140",
    "damage_taken": "-damage taken / 140",
    "danger_zone": "-1 per second below y = 4.2",
    "attack_state": "+1 per second in an attack (weigh it negatively against empty swings)",
    "many_keys": "+1 per second with more than 3 keys held (weigh it negatively)",
    "toward_opponent": "units by which own side steps or a respawn came nearer the opponent",
    "closing_distance": "units by which the distance to the opponent shrank",
    "edge_pressure": "per second, units / 7 by which the opponent is nearer to the edge (to 1)",
    "toward_middle": "own sideways movement in units, positive toward the middle of the stage",
    "height": "-1 per second and squared unit away from y = 0",
    "taunt": "+1 per second of taunting",
    "idle": "+1 per second of standing still (weigh it negatively)",
    "win": "+1 for a win, -1 for a loss, 0 for a draw, when the match ends",
    "knockout": "+1 when the opponent is knocked out, -1 when oneself is",
    "combo": "+1 for hitting a stunned opponent, -1 for being hit so",
    "equip": "+2 for picking up a hammer, +1 for a spear",
    "drop": "-1 for dropping a weapon",
}
TERMS: Final = tuple(TERM_HELP)

_DENSE: Final = {
    "damage": 1.0,
    "danger_zone": 0.5,
    "attack_state": -0.04,
    "many_keys": -0.01,
    "win": 50.0,
    "knockout": 8.0,
    "combo": 5.0,
    "equip": 10.0,
    "drop": 15.0,
}

PRESETS: Final[Mapping[str, Mapping[str, float]]] = {
    "dense": _DENSE,
    "sparse": {"damage": DAMAGE_SCALE, "win": 100.0, "knockout": 50.0},
    # Small weights for quick learning. They reward each step toward the opponent, and then hits and
    # knockouts.
    "laptop": {
        "toward_opponent": 0.6,
        "damage": 1.0,
        "combo": 0.5,
        "knockout": 5.0,
        "win": 10.0,
    },
    # Like `duel`, but with twice the reward for going toward the opponent. With `duel` an agent may
    # unlearn the climb to the other ground, and wait on its own ground.
    "approach": {
        "toward_opponent": 0.4,
        "damage": 5.0,
        "danger_zone": 4.0,
        "knockout": 5.0,
        "win": 5.0,
    },
    # For agents that already reach the opponent. It rewards exchanges of blows and staying on the
    # stage.
    "duel": {
        "toward_opponent": 0.2,
        "damage": 5.0,
        "danger_zone": 4.0,
        "knockout": 5.0,
        "win": 5.0,
    },
    # The weights at the start of a run. A learner gradually changes them into the weights of
    # `sparse`, on the schedule below.
    "curriculum": _DENSE,
}
ANNEALED: Final[Mapping[str, tuple[str, str]]] = {"curriculum": ("dense", "sparse")}
"""Presets whose weights change from a first preset to a second during a training run."""
ANNEALS_FROM: Final = 0.2
"""Until this share of the run's steps, the first preset of an annealed preset applies."""
ANNEALS_UNTIL: Final = 0.8
"""After this share of the run's steps, the second preset applies. Between the shares `ANNEALS_FROM`
and `ANNEALS_UNTIL`, the weights are interpolated linearly.
"""


def annealed_share(step: int, steps: int) -> float:
    """Returns how far an annealed preset has moved from its first preset (0) to its second (1)."""
    return min(max((step / steps - ANNEALS_FROM) / (ANNEALS_UNTIL - ANNEALS_FROM), 0.0), 1.0)


def annealed_weights(
    preset: str, step: int, steps: int, overrides: Mapping[str, float]
) -> NDArray[np.float32]:
    """Returns an annealed preset's weights, float32[K]: w(step) = w_begin + s * (w_end - w_begin).

    s is `annealed_share(step, steps)`.

    Args:
        overrides: weights that stay the same for the whole run, by term.
    """
    begin, end = (
        np.array([{**PRESETS[name], **overrides}.get(term, 0.0) for term in TERMS], np.float32)
        for name in ANNEALED[preset]
    )
    share = np.float32(annealed_share(step, steps))
    return end if share == 1 else share * (end - begin) + begin
