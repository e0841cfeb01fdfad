"""The scripted bots: each gives the keys of one frame from the state that the frame begins with."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from league.games.brawl import characters, rules, spec
from league.games.brawl.random_stream import draw

BASED_TURNS_BACK: Final = 5.335
BASED_JUMPS_BELOW: Final = 1.6
BASED_REACH: Final = 2.0
_ALL_KEYS = np.uint64(2 ** len(rules.KEY_NAMES) - 1)

CLOCKWORK_SCRIPT: Final = (
    (15, rules.RIGHT),
    (4, 0),
    (15, rules.LEFT),
    (3, rules.LEFT | rules.LIGHT),
    (14, 0),
    (1, rules.JUMP),
    (12, 0),
    (3, rules.LIGHT),
    (25, 0),
    (8, rules.HEAVY),
    (24, 0),
    (3, rules.RIGHT | rules.LIGHT),
    (20, 0),
)
"""(frames, keys held), played in a loop."""

# One key set a frame, so that the compiled bot only looks it up.
_CLOCKWORK_KEYS = np.repeat(
    np.array([keys for _, keys in CLOCKWORK_SCRIPT], np.int32),
    [frames for frames, _ in CLOCKWORK_SCRIPT],
)


@njit
def _based(me: Any, opponent: Any, frame: int) -> int:
    helpless = opponent.stun_left > 0 or opponent.state == rules.KO
    keys = 0
    if abs(me.x) > BASED_TURNS_BACK:
        keys |= rules.LEFT if me.x > 0 else rules.RIGHT
    elif not helpless:
        # Exactly level, at the same wall, it continues the way it faces: no side is preferred.
        ahead = opponent.x - me.x if opponent.x != me.x else me.facing
        keys |= rules.RIGHT if ahead > 0 else rules.LEFT
    if frame % 2 == 0 and (me.y > BASED_JUMPS_BELOW or me.y > opponent.y):
        keys |= rules.JUMP
    dx, dy = opponent.x - me.x, opponent.y - me.y
    if dx * dx + dy * dy < BASED_REACH * BASED_REACH:
        keys |= rules.LIGHT
    return keys


@njit
def _character_keys(bot: int, me: Any, opponent: Any, match: Any, stage: Any) -> int:
    if characters.hesitates(me):
        return 0
    frame = match.frame
    if bot == spec.AGGRESSIVE:
        return characters.aggressive(me, opponent, frame, stage)
    if bot == spec.DEFENSIVE:
        return characters.defensive(me, opponent, frame, stage)
    if bot == spec.KITER:
        return characters.kiter(me, opponent, frame, stage)
    if bot == spec.AERIAL:
        return characters.aerial(me, opponent, frame, stage)
    if bot == spec.SIG_SPAMMER:
        return characters.sig_spammer(me, opponent, frame, stage)
    if bot == spec.WEAPON_SEEKER:
        return characters.weapon_seeker(me, opponent, match, frame, stage)
    return characters.edge_guarder(me, opponent, frame, stage)


@njit
def bot_keys(bot: int, me: Any, opponent: Any, match: Any, stage: Any) -> Any:
    """Key bits of bot number `bot` (its place in spec.BOTS) for the frame after `match.frame`."""
    if bot == spec.RANDOM:
        return np.int64(draw(me) & _ALL_KEYS)
    if bot == spec.BASED:
        return _based(me, opponent, match.frame)
    if bot == spec.CLOCKWORK:
        return np.int64(_CLOCKWORK_KEYS[match.frame % len(_CLOCKWORK_KEYS)])
    if bot == spec.MIRROR:
        return np.int64(characters.mirror(opponent, match.frame))
    if bot == spec.DRUNK:
        return characters.drunk(me, _based(me, opponent, match.frame))
    if spec.AGGRESSIVE <= bot <= spec.EDGE_GUARDER:
        return _character_keys(bot, me, opponent, match, stage)
    return 0
