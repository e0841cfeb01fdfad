"""How a match lies in memory: records of named numbers, no Python objects.

The compiled step is handed pointers to records and never a slice of an array: taking one costs an
atomic count, which was most of a step's time. What it writes for the caller (observations, terms,
statistics) is the caller's float32 array seen as records.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from league.games.brawl.rewards import TERMS

STATS: Final = (
    *("damage_dealt", "damage_taken", "knockouts", "falls", "attacks", "hits", "jumps", "dodges"),
    *("air_frames", "distance_sum", "speed_sum", "pickups", "keys_pressed", "spawn_side"),
)
"""Totals of one player over a match."""

PLACES: Final = 4
"""Places for weapons (weapons.py)."""
SOLIDS: Final = 2
PLATFORM_PERIOD: Final = 290
MIRROR_DELAY: Final = 15
"""Frames after which the bot `mirror` repeats its opponent's keys."""

OWN_FIELDS: Final = (
    *("x", "y", "vx", "vy", "facing", "grounded", "aerial", "air_jumps", "state", "recoveries"),
    *("dodge_left", "stun_left", "damage", "stocks", "move", "weapon"),
)
PLATFORM_FIELDS: Final = ("platform_x", "platform_y", "platform_vx", "platform_vy")
FIELDS: Final = (
    *OWN_FIELDS,
    *(f"slot{slot}_{field}" for slot in range(PLACES) for field in ("x", "y", "type")),
    *PLATFORM_FIELDS,
)
"""What stands where in a half of an observation."""

PLAYER = np.dtype(
    [
        # Body: units and u/s, y down.
        ("x", np.float64),
        ("y", np.float64),
        ("vx", np.float64),
        ("vy", np.float64),
        ("damage", np.float64),
        # Own random numbers (splitmix64), so that a bot plays the same from either seat.
        ("random", np.uint64),
        ("side", np.int32),  # spawn side: -1 left, +1 right
        ("facing", np.int32),  # -1 left, +1 right
        ("state", np.int32),
        ("grounded", np.int32),
        ("on_platform", np.int32),
        ("stocks", np.int32),
        ("air_jumps", np.int32),
        ("recoveries", np.int32),
        ("keys", np.int32),  # bits held in the last frame
        ("past_keys", np.int32, (MIRROR_DELAY,)),  # those of match frame f at f % MIRROR_DELAY
        # Frames left.
        ("jump_wait", np.int32),
        ("dodge_wait", np.int32),
        ("state_left", np.int32),  # of Dodge, Dash, BackDash, Taunt, KO
        ("stun_left", np.int32),
        # The attack being made.
        ("weapon", np.int32),
        ("move", np.int32),  # 0, or a move of moves.MOVES
        ("move_frame", np.int32),
        ("charged", np.int32),  # frames held beyond the shortest charge
        ("stages_hit", np.int32),  # bit per stage of the move that has hit
        # What happened in this frame, for rewards and statistics.
        ("dealt", np.float64),
        ("last_x", np.float64),
        ("combos", np.int32),
        ("fell", np.int32),
        ("equipped", np.int32),  # weapon picked up, 0 for none
        ("dropped", np.int32),  # weapon dropped, 0 for none
        ("moved_by_hand", np.int32),  # knocked out or respawned: no displacement is counted
    ],
    align=True,
)

WEAPON = np.dtype(
    [
        ("x", np.float64),
        ("y", np.float64),
        ("random", np.uint64),  # a spawner's own numbers
        ("type", np.int32),  # 0 for nothing, else moves.SPEAR or moves.HAMMER
        ("ready", np.int32),  # frame from which it can be taken
        ("leaves", np.int32),  # frame in which it vanishes
        ("comes", np.int32),  # frame in which the spawner shows the next one
        ("cooldown", np.int32),  # a spawner's, frames
    ],
    align=True,
)
"""One of a match's four places for weapons (weapons.py)."""

MATCH = np.dtype(
    [
        ("seed", np.uint64),
        ("frame", np.int32),
        # bits that the seats held in the last frame played, of an ended match too
        ("keys_0", np.int32),
        ("keys_1", np.int32),
        ("weapons_lying", np.int32),
        ("weapons_change", np.int32),  # frame in which the next one appears or disappears
        ("platform_x", np.float64),
        ("platform_y", np.float64),
        ("platform_vx", np.float64),
        ("platform_vy", np.float64),
        ("weapons", WEAPON, (PLACES,)),
    ],
    align=True,
)

STAGE = np.dtype(
    [
        ("solids", np.float64, (SOLIDS, 4)),  # left, top, right, bottom
        ("path", np.float64, (PLATFORM_PERIOD, 4)),  # x, y, vx, vy of the platform, by frame
        ("platform_half_width", np.float64),
        ("platform_half_height", np.float64),
        ("blast_x", np.float64),
        ("blast_y", np.float64),
        ("spawn_x", np.float64),
        ("spawn_y", np.float64),
        ("spawner_near", np.float64),  # x of weapons is drawn from near to far, on either side
        ("spawner_far", np.float64),
        ("spawner_right_y", np.float64),
        ("spawner_left_y", np.float64),
    ],
    align=True,
)
"""A stage in units of the game; stage.py fills it."""

STATS_ROW = np.dtype([(name, np.float32) for name in STATS])
"""One player's totals: a row of `stats_N2S`, by name."""

TERMS_ROW = np.dtype([(name, np.float32) for name in TERMS])
"""One seat's reward terms: a row of `reward_terms_N2K`, by name."""

HALF = np.dtype(
    [
        *((name, np.float32) for name in OWN_FIELDS),
        ("slots", np.float32, (PLACES, 3)),
        *((name, np.float32) for name in PLATFORM_FIELDS),
    ]
)
"""Half of an observation, by name."""
