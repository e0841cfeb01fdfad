"""The scripted bots by name, and what a match counts of each player; known without the compiler."""

from __future__ import annotations

from typing import Final

from league.games.base import BotSpec

BOTS: Final = (
    BotSpec(name="constant", summary="presses nothing"),
    BotSpec(name="random", summary="presses each key with probability 1/2 in every frame"),
    BotSpec(
        name="based",
        summary="walks up to its opponent, jumps back up and strikes lightly within reach",
    ),
    BotSpec(name="clockwork", summary="plays a fixed list of keys and starts over"),
    BotSpec(
        name="aggressive", summary="runs up to its opponent and strikes whatever comes into reach"
    ),
    BotSpec(name="defensive", summary="waits on its own ground, dodges attacks and strikes back"),
    BotSpec(name="kiter", summary="hits and runs, and keeps its distance in between"),
    BotSpec(name="aerial", summary="stays in the air and strikes from above"),
    BotSpec(
        name="sig_spammer",
        summary="uses heavy attacks alone, charged until the opponent is in reach",
    ),
    BotSpec(name="weapon_seeker", summary="fetches every weapon that comes, then attacks"),
    BotSpec(
        name="edge_guarder",
        summary="stands at the edge of the pit and strikes who comes back over it",
        held_out=True,
    ),
    BotSpec(
        name="mirror", summary="repeats its opponent's keys after half a second", held_out=True
    ),
    BotSpec(
        name="drunk",
        summary="plays like based, with 30 % of its keys left to chance",
        held_out=True,
    ),
)
(
    CONSTANT,
    RANDOM,
    BASED,
    CLOCKWORK,
    AGGRESSIVE,
    DEFENSIVE,
    KITER,
    AERIAL,
    SIG_SPAMMER,
    WEAPON_SEEKER,
    EDGE_GUARDER,
    MIRROR,
    DRUNK,
) = range(len(BOTS))

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
