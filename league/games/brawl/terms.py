"""The named terms that rewards are made of: raw values, what each pays for, their order."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

DAMAGE_SCALE: Final = 140.0
"""Damage points that make one unit of the damage terms."""
DANGER_Y: Final = 4.2
"""Below this height (y points down) a player is in danger."""
MANY_KEYS: Final = 3
"""More keys than this held at once are many."""

TERM_HELP: Final = MappingProxyType(
    {
        "damage": "(damage dealt - taken) / 140",
        "damage_dealt": "damage dealt / 140",
        "damage_taken": "-damage taken / 140",
        "danger_zone": "-1 per second below y = 4.2",
        "attack_state": "+1 per second in an attack (weigh it negatively against empty swings)",
        "many_keys": "+1 per second with more than 3 keys held (weigh it negatively)",
        "toward_opponent": "units by which own sideways movement came nearer to the opponent, a respawn too",
        "closing_distance": "units by which the distance to the opponent shrank",
        "edge_pressure": "per second, by how many units / 7 the opponent stands nearer to the edge (to 1)",
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
)
TERMS: Final = tuple(TERM_HELP)
