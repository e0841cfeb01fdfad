"""Defines the memory layout of a match: records of named numbers, without Python objects.

The compiled step gets pointers to records and never a slice of an array, because the atomic updates
of slices' reference counts would take most of a step's time. The step writes observations, terms
and statistics into the caller's float32 arrays, which it sees as records.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from league.games.brawl.rewards import TERMS
from league.games.brawl.rules import KEY_NAMES

STATS: Final = (
    *("damage_dealt", "damage_taken", "knockouts", "falls", "attacks", "hits", "jumps", "dodges"),
    *("air_frames", "distance_sum", "speed_sum", "pickups", "keys_pressed", "spawn_side"),
)
"""Totals of a player over a match."""

PLACES: Final = 6
"""Number of places for weapons (weapons.py)."""
SLOTS: Final = 4
"""Number of places for weapons that an observation shows: the first SLOTS of the PLACES."""
SOLIDS: Final = 2
PLATFORM_PERIOD: Final = 290
"""Largest number of frames in a round trip of the platform (stage.py)."""
COUNTERS: Final = 5
"""Number of states with their own count of jumps: in the air, turning in the air, attacking,
dodging, and stunned.
"""
MIRROR_DELAY: Final = 15
"""Frames after which the bot `mirror` repeats its opponent's keys."""

OWN_FIELDS: Final = (
    *("x", "y", "vx", "vy", "facing", "grounded", "aerial", "air_jumps", "state", "recoveries"),
    *("dodge_left", "stun_left", "damage", "stocks", "move", "weapon"),
)
PLATFORM_FIELDS: Final = ("platform_x", "platform_y", "platform_vx", "platform_vy")
FIELDS: Final = (
    *OWN_FIELDS,
    *(f"slot{slot}_{field}" for slot in range(SLOTS) for field in ("x", "y", "type")),
    *PLATFORM_FIELDS,
)
"""The numbers in a half of an observation, in order."""

BODY: Final = (
    *("x", "y", "vx", "vy"),  # units and u/s, y down
    *("bias_vx", "bias_vy"),  # u/s, only in the next frame, to remove overlap
)
"""Fields of every body (a player or a weapon)."""
CONTACTS: Final = (
    # Each field has a value for each ground and for the platform.
    ("normal", np.int32, (SOLIDS + 1,)),  # contact normal, or physics.NONE
    ("frames_apart", np.int32, (SOLIDS + 1,)),  # frames since the body last touched it
    ("normal_impulse", np.float64, (SOLIDS + 1,)),  # accumulated in the last frame, u/s
    ("friction_impulse", np.float64, (SOLIDS + 1,)),
)
BOX = np.dtype(
    [
        *((name, np.float64) for name in ("left", "top", "right", "bottom")),
        ("fitted", np.int64),  # frame in which the box was last fitted
    ]
)
"""A fat box, somewhat larger than its body. When the body leaves the box, the box is fitted to the
body again (physics.py).
"""

PLAYER = np.dtype(
    [
        *((name, np.float64) for name in BODY),
        *CONTACTS,
        ("damage", np.float64),
        # Position of the hurt capsule, against which the opponent's hit boxes are tested.
        ("hurt_x", np.float64),
        ("hurt_y", np.float64),
        # State of the player's own random numbers (splitmix64), so that a bot plays the same in
        # either seat.
        ("random", np.uint64),
        ("side", np.int32),  # spawn side: -1 left, +1 right
        ("facing", np.int32),  # -1 left, +1 right
        ("state", np.int32),
        ("grounded", np.int32),
        ("stocks", np.int32),
        ("keys", np.int32),  # bits held in the last frame
        ("last_way", np.int32),  # which of A and D was pressed last: control.LEFT_RIGHT and so on
        ("past_keys", np.int32, (MIRROR_DELAY,)),  # frame f's keys are at f % MIRROR_DELAY
        # Jumps and recoveries left. Each state has its own counts, which can differ after a hit.
        ("jumps", np.int32, (COUNTERS,)),
        ("recovery_of", np.int32, (COUNTERS,)),
        ("jump_waits", np.int32, (2,)),
        ("air_jumps", np.int32),  # left in the current state, as observations show it
        ("recoveries", np.int32),
        # Frames left.
        ("dodge_wait", np.int32),
        ("state_left", np.int32),  # of a turn, Dodge, Dash, BackDash, Taunt, KO
        ("stun_left", np.int32),
        ("is_grounded_dodge", np.int32),
        ("last_state", np.int32),  # state at the start of the frame
        # The current attack.
        ("weapon", np.int32),
        ("move", np.int32),  # 0, or a move type of moves.py
        ("move_frame", np.int32),
        ("power", np.int32),  # row of the tables
        ("cast", np.int32),  # number in its power
        ("cast_frame", np.int32),
        ("power_frame", np.int32),
        ("recovering", np.int32),  # frames of the power's recovery so far
        ("is_new_cast", np.int32),
        ("power_has_hit", np.int32),  # a box of the power has met the opponent
        ("power_has_struck", np.int32),  # the power has hurt the opponent
        ("move_has_hit", np.int32),
        ("charged", np.int32),  # frames for which the attack was charged so far, 0 after release
        # Pending effects of the opponent's attack on this player.
        ("struck", np.int32),  # 1 after a hit
        ("struck_damage", np.float64),
        ("struck_stun", np.int32),
        ("struck_vx", np.float64),
        ("struck_vy", np.float64),
        ("pull_x", np.float64),
        ("pull_y", np.float64),
        ("speed_kept", np.float64),  # the downward speed becomes speed * kept + given
        ("speed_given", np.float64),
        ("is_put", np.int32),
        ("put_x", np.float64),
        ("put_y", np.float64),
        ("push_x", np.float64),  # speed of hits and pulls, added when the player acts next
        ("push_y", np.float64),
        ("stun_due", np.int32),
        # Events of this frame, for rewards and statistics.
        ("dealt", np.float64),
        ("last_x", np.float64),
        ("combos", np.int32),
        ("fell", np.int32),
        ("equipped", np.int32),  # weapon picked up, or 0
        ("dropped", np.int32),  # weapon dropped, or 0
        ("no_pick_until", np.int32),  # first frame in which it may take a dropped weapon again
        ("moved_by_hand", np.int32),  # knocked out or respawned: no displacement is counted
    ],
    align=True,
)

WEAPON = np.dtype(
    [
        *((name, np.float64) for name in BODY),
        *CONTACTS,
        ("shown_x", np.float64),  # where it appeared, which is the place that views show
        ("shown_y", np.float64),
        ("random", np.uint64),  # state of a spawner's own random numbers
        ("type", np.int32),  # 0 for nothing, else moves.SPEAR or moves.HAMMER
        ("ready", np.int32),  # first frame in which it can be taken
        ("leaves", np.int32),  # frame in which it disappears
        ("comes", np.int32),  # frame in which the spawner shows the next weapon
        ("cooldown", np.int32),  # the spawner's cooldown, in frames
    ],
    align=True,
)
"""A place for a weapon (weapons.py)."""

MATCH = np.dtype(
    [
        ("seed", np.uint64),
        ("frame", np.int32),
        # Bits of the keys that the seats held in the last frame played. If a match has just ended,
        # they are still the keys of its last frame.
        ("keys_0", np.int32),
        ("keys_1", np.int32),
        ("weapons_lying", np.int32),
        ("last_cleared", np.int32),  # frame in which a dropped weapon was last removed
        # How this match differs from the original (variation.py).
        ("random", np.uint64),
        ("platform_ahead", np.int32),  # number of frames by which the platform's path is shifted
        ("friction", np.float64),  # factor of the usual friction
        ("keys_late", np.int32),  # 1: keys take effect a frame late
        ("late_keys_0", np.int32),
        ("late_keys_1", np.int32),
        ("platform_x", np.float64),
        ("platform_y", np.float64),
        ("platform_vx", np.float64),
        ("platform_vy", np.float64),
        ("boxes", BOX, (3,)),  # fat boxes of the platform and both players
        ("order", np.int32, (3,)),  # numbers of the boxes in the tree, from left to right
        ("weapons", WEAPON, (PLACES,)),
    ],
    align=True,
)

STAGE = np.dtype(
    [
        ("solids", np.float64, (SOLIDS, 4)),  # left, top, right, bottom
        ("period", np.int32),  # frames of the platform's round trip
        ("path", np.float64, (PLATFORM_PERIOD, 4)),  # x, y, vx, vy of the platform, by frame
        ("is_fair", np.int32),  # 1 under the fair rules
        ("variation", np.float64),  # from 0 to 1
        ("off_stage_starts", np.float64),  # probability that a player begins off the grounds
        ("platform_half_width", np.float64),
        ("platform_half_height", np.float64),
        ("blast_x", np.float64),
        ("blast_y", np.float64),
        ("spawn_x", np.float64),
        ("spawn_y", np.float64),
        ("spawner_near", np.float64),  # a weapon's |x| is drawn between these bounds
        ("spawner_far", np.float64),
        ("spawner_right_y", np.float64),
        ("spawner_left_y", np.float64),
    ],
    align=True,
)
"""A stage in units of the game. stage.py fills it."""

PLAN_PARTS: Final = 6
PLAN = np.dtype(
    [
        ("decided", np.int32),  # frame of the latest decision
        ("begun", np.int32),  # frame in which the plan began
        ("parts", np.int32),  # number of parts, after which `based` plays
        ("keys", np.int32, (PLAN_PARTS,)),  # bits of the keys that a part holds
    ],
    align=True,
)
"""A planner's plan (planner.py)."""

STATS_ROW = np.dtype([(name, np.float32) for name in STATS])
"""A player's totals: a row of `stats_N2S`, by name."""

TERMS_ROW = np.dtype([(name, np.float32) for name in TERMS])
"""A seat's reward terms: a row of `reward_terms_N2K`, by name."""

HALF = np.dtype(
    [
        *((name, np.float32) for name in OWN_FIELDS),
        ("slots", np.float32, (SLOTS, 3)),
        *((name, np.float32) for name in PLATFORM_FIELDS),
    ]
)
"""Half of an observation, by name."""

OBSERVATION = np.dtype([("own", HALF), ("opponent", HALF), ("keys", np.float32, (len(KEY_NAMES),))])
"""A seat's view: a row of `observations_N2O`, by name."""
