"""Holds the constants of the game that don't depend on a stage or a move.

Lengths are in units (u), times in s, speeds in u/s, and y points down. A constant whose name ends
in PER_FRAME is the change of a speed in a frame, which lasts DT seconds. All constants have the
values of the original game, UTMIST's (docs/game.md).
"""

from __future__ import annotations

from typing import Final

FRAMES_PER_SECOND: Final = 30
DT: Final = 1.0 / FRAMES_PER_SECOND

# Keys, in the order of the action vector.
KEY_NAMES: Final = ("W", "A", "S", "D", "space", "H", "L", "J", "K", "G")
KEY_WORDS: Final = (
    *("aim up", "left", "down", "right", "jump", "pick up", "dash", "light", "heavy", "taunt"),
)
"""The effect of each key, for people."""
UP, LEFT, DOWN, RIGHT, JUMP, PICK, DASH_KEY, LIGHT, HEAVY, TAUNT_KEY = (
    1 << bit for bit in range(10)
)

# States, as numbered in the observation.
WALKING: Final = 0
STANDING: Final = 1
TURNAROUND: Final = 2
AIR_TURNAROUND: Final = 3
SPRINTING: Final = 4
STUN: Final = 5
IN_AIR: Final = 6
DODGE: Final = 7
ATTACK: Final = 8
DASH: Final = 9
BACKDASH: Final = 10
KO: Final = 11
TAUNT: Final = 12
STATE_NAMES: Final = (
    *("walking", "standing", "turnaround", "air_turnaround", "sprinting", "stun", "in_air"),
    *("dodge", "attack", "dash", "backdash", "ko", "taunt"),
)

# Sizes of the body (a solid box) and of the upright hurt capsule.
HALF_WIDTH: Final = 0.87 / 2
HALF_HEIGHT: Final = 1.0 / 2
HURT_WIDTH: Final = 0.928
HURT_HEIGHT: Final = 1.024

# Movement.
GRAVITY_PER_FRAME: Final = 17.808 * DT
FRICTION: Final = 0.49  # of a body on a ground: 0.7 * 0.7
PLATFORM_FRICTION: Final = 0.63  # 0.7 * 0.9
FLOOR_SIDE: Final = 0.15  # depth below a ground's top at which its side still counts as floor
FLOOR_SKIN: Final = 0.01
PLATFORM_REACH: Final = 1.25  # sideways from the platform's middle
MAX_FALL: Final = 12.0
FAST_FALL_PER_FRAME: Final = 0.475
WALK_SPEED: Final = 6.75
RUN_SPEED: Final = 8.0
DASH_SPEED: Final = 10.0
DASH_FRAMES: Final = 9
BACKDASH_SPEED: Final = 4.0
BACKDASH_FRAMES: Final = 7
TURN_FRAMES: Final = 1
JUMP_SPEED: Final = 8.9
AIR_JUMPS: Final = 2
AIR_JUMP_WAIT: Final = 6
RECOVERIES: Final = 1
AIR_STEER_PER_FRAME: Final = 10.75 / FRAMES_PER_SECOND
AIR_TURN_DIVISOR: Final = 3.0
STUN_DRAG_PER_FRAME: Final = AIR_STEER_PER_FRAME / 1.5
DODGE_FRAMES: Final = 10
DODGE_WAIT_GROUND: Final = 30
DODGE_WAIT_AIR: Final = 82
TAUNT_FRAMES: Final = 30
BOUNCE: Final = 0.7

# Knockback and match.
FORCE_TO_SPEED: Final = 0.096
MAX_DAMAGE: Final = 700.0
AIR_JUMPS_AFTER_STUN: Final = 1
STOCKS: Final = 3
KO_FRAMES: Final = 90

# Weapons on the ground.
WEAPON_HALF_WIDTH: Final = 20 / 48  # of the weapon's body
WEAPON_HALF_HEIGHT: Final = (16 / 48 + 0.5) / 2
WEAPON_WIDTH: Final = 1.5  # of the capsule that a player has to touch to take the weapon
WEAPON_HEIGHT: Final = 0.83
DROPPED_HEIGHT: Final = 16 / 48
# Each spawner draws a cooldown for the match, in frames. Each wait lasts 0.5 to 1.5 cooldowns.
SPAWN_COOLDOWN_LEAST: Final = 500
SPAWN_COOLDOWN_MOST: Final = 700
SPAWN_FIRST_LATEST: Final = 350  # latest frame in which the first weapon appears
SPAWN_FRAMES: Final = 351  # frames for which a weapon stays on a spawner
SPAWN_READY: Final = 37  # frames from a weapon's appearance until it can be taken
DROP_FRAMES: Final = 250  # frames for which a dropped weapon stays
DROP_READY: Final = 15  # frames for which the player who dropped a weapon can't take it
DROP_AHEAD: Final = 0.1
DROP_BELOW: Final = 0.27
MATCH_SECONDS: Final = 90
