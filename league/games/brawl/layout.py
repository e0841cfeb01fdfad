"""How a match lies in memory: one compact record a player, a weapon and a match, no Python objects."""

from __future__ import annotations

import numpy as np

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
        ("moved_by_hand", np.int32),  # knocked out or placed anew: no displacement is counted
    ],
    align=True,
)

MATCH = np.dtype(
    [
        ("seed", np.uint64),
        ("frame", np.int32),
        ("weapons", np.int32),  # on the ground
        ("weapons_change", np.int32),  # frame in which the next one comes or goes by itself
        ("platform_x", np.float64),
        ("platform_y", np.float64),
        ("platform_vx", np.float64),
        ("platform_vy", np.float64),
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
