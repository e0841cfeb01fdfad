"""The scripted bots by name, and what a match counts of each player; known without the compiler."""

from __future__ import annotations

from typing import Final

from league.games.base import BotSpec

BOTS: Final = (
    BotSpec(name="constant", summary="presses nothing"),
    BotSpec(name="random", summary="presses each key with probability 1/2 in every frame"),
    BotSpec(name="based", summary="walks up to its opponent, jumps back up and strikes lightly within reach"),
    BotSpec(name="clockwork", summary="plays a fixed list of keys and starts over"),
)
CONSTANT, RANDOM, BASED, CLOCKWORK = range(len(BOTS))

STATS: Final = (
    "damage_dealt",
    "damage_taken",
    "knockouts",
    "falls",
    "attacks",
    "hits",
    "jumps",
    "dodges",
    "air_frames",
    "distance_sum",
    "speed_sum",
    "pickups",
    "keys_pressed",
    "spawn_side",
)
"""Totals of one player over a match."""
