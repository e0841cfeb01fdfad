"""Plays the scripted bots. Each bot chooses a frame's keys from the state before that frame.

Four bots come from the original game, UTMIST's (constant, random, based, clockwork). Nine more
bots are opponents for training. Three bots (edge_guarder, mirror, drunk) play only for the
evaluator. docs/game.md has measurements of all bots. `me` and `opponent` are records of
layout.PLAYER. tactics.py has the tactics that several bots share, and habits.py has the bots that
play differently in each match.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from league.games.brawl import moves, rules, spec
from league.games.brawl.compiling import inner
from league.games.brawl.habits import SLOWNESS, camper, fencer, habit, platform_holder
from league.games.brawl.layout import MIRROR_DELAY
from league.games.brawl.physics import gap
from league.games.brawl.random_stream import draw, share
from league.games.brawl.tactics import (
    blow,
    go,
    ground_toward,
    is_in_reach,
    is_off_stage,
    leap,
    nearest_weapon,
    reach_of,
    walk,
)

HESITATION: Final = 0.08
"""Share of frames in which a bot presses no key, so that its matches differ."""
KITE_FROM: Final = 5.0
KITE_CYCLE: Final = 180
KITE_STRIKES: Final = 55
"""Number of frames in each cycle in which the kiter comes in to hit. In the other frames it keeps
its distance.
"""
GUARDS_WITHIN: Final = 3.0
SPAMMER_CHARGE: Final = 20
"""Largest number of frames for which the sig_spammer charges an attack while its opponent is out of
reach.
"""
DRUNKENNESS: Final = 0.3
BASED_TURNS_BACK: Final = 5.335
BASED_JUMPS_BELOW: Final = 1.6
BASED_REACH: Final = 2.0
_ALL_KEYS = np.uint64(2 ** len(rules.KEY_NAMES) - 1)

_JUMPS: Final = ((15, rules.JUMP), (5, 0))
CLOCKWORK_SCRIPT: Final = (
    (10, rules.LEFT),
    (1, rules.DASH_KEY),
    (20, rules.LEFT),
    (3, rules.LEFT | rules.LIGHT),
    (30, 0),
    (7, rules.RIGHT),
    *((1, rules.LEFT), (4, rules.LEFT | rules.DASH_KEY)) * 4,
    (20, 0),
    *_JUMPS * 5,
)
"""The script of the original game's clockwork bot, as (frames, held keys). It is played once."""

# The keys of each frame, so that the compiled bot only looks them up.
_CLOCKWORK_KEYS = np.repeat(
    np.array([keys for _, keys in CLOCKWORK_SCRIPT], np.int32),
    [frames for frames, _ in CLOCKWORK_SCRIPT],
)


@inner
def _aggressive(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Always runs up to its opponent, and strikes it within reach."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    strike = blow(me, opponent, stage)
    if strike:
        return strike
    if abs(opponent.x - me.x) > 3.0 and me.state == rules.WALKING:
        keys |= rules.DASH_KEY
    return keys | leap(me, opponent, frame)


@inner
def _defensive(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Waits in the middle of the ground on its side, dodges attacks and then strikes back."""
    home = ground_toward(me.side, stage)
    keys = go(me, (stage.solids[home, 0] + stage.solids[home, 2]) / 2.0, frame, stage)
    if is_off_stage(me, stage):
        return keys
    near = gap(me, opponent) < GUARDS_WITHIN
    if near and opponent.state == rules.ATTACK and me.dodge_wait == 0:
        return rules.DASH_KEY if frame % 2 == 0 else 0
    strike = blow(me, opponent, stage)
    if strike:
        return strike
    return walk(opponent.x - me.x) if near and (opponent.x - me.x) * me.facing < 0.0 else keys


@inner
def _kiter(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Hits and runs: comes in to strike in a part of each cycle, and otherwise keeps away."""
    comes_in = frame % KITE_CYCLE < KITE_STRIKES and opponent.state != rules.KO
    flees = 1.0 if me.x > opponent.x else -1.0
    away = me.x + 2.0 * flees
    if abs(away) < stage.solids[0, 0] + 0.6:  # it jumps over the pit rather than into it
        away = 4.5 * flees
    if is_off_stage(me, stage):
        return go(me, opponent.x if comes_in else away, frame, stage)
    strike = blow(me, opponent, stage)
    if strike and (comes_in or opponent.stun_left > 0):
        return strike
    if comes_in:
        return go(me, opponent.x, frame, stage) | leap(me, opponent, frame)
    if gap(me, opponent) > KITE_FROM:
        return 0
    cornered = abs(me.x) > 5.5 and abs(away) > abs(me.x) and gap(me, opponent) < 2.5
    return go(me, -me.x if cornered else away, frame, stage) | (
        rules.JUMP if cornered and frame % 2 == 0 else 0
    )


@inner
def _aerial(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Stays in the air: leaves the ground at once and strikes from above."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    if frame % 2 == 0 and (me.grounded or (me.vy > 0.0 and me.y > opponent.y - 2.2)):
        return keys | rules.JUMP
    return keys if me.grounded else keys | blow(me, opponent, stage)


@inner
def _sig_spammer(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Uses only heavy attacks, and charges them until the opponent is in reach."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    if me.state == rules.ATTACK:
        charges = 0 < me.charged < SPAMMER_CHARGE and not is_in_reach(me, opponent)
        return rules.HEAVY if charges else 0
    dx, dy = opponent.x - me.x, opponent.y - me.y
    if (
        me.grounded
        and opponent.state != rules.KO
        and abs(dx) < reach_of(me) + 0.1
        and abs(dy) < 1.2
    ):
        if abs(dx) < 0.5:
            return rules.HEAVY if dy < 0.0 else rules.DOWN | rules.HEAVY
        return walk(dx) | rules.HEAVY
    return keys | leap(me, opponent, frame)


@inner
def _weapon_seeker(me: Any, opponent: Any, match: Any, frame: int, stage: Any) -> int:
    """Fetches every weapon that appears, then attacks. Without a weapon, it fights only near
    opponents.
    """
    nearest = nearest_weapon(me, match) if me.weapon == moves.UNARMED else -1
    if nearest < 0:
        if me.weapon != moves.UNARMED or gap(me, opponent) < 4.0 or is_off_stage(me, stage):
            return _aggressive(me, opponent, frame, stage)
        return go(me, 4.5 if me.x > 0.0 else -4.5, frame, stage)
    weapon = match.weapons[nearest]
    keys = go(me, weapon.x, frame, stage)
    if weapon.y < me.y - 1.5 and frame % 2 == 0 and (me.grounded or me.vy > 0.0):
        keys |= rules.JUMP
    if abs(weapon.x - me.x) < 1.0:
        keys |= rules.PICK
    return keys


@inner
def _edge_guarder(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Stands at the edge of the pit and strikes an opponent that comes back over the pit."""
    r = ground_toward(me.side, stage)
    inner = stage.solids[r, 0] if me.side > 0 else stage.solids[r, 2]
    keys = go(me, inner + 0.7 * me.side, frame, stage)
    if is_off_stage(me, stage):
        return keys
    strike = blow(me, opponent, stage)
    if strike:
        return strike
    if keys == 0 and opponent.x * me.side < me.x * me.side and me.facing == me.side:
        return walk(-me.side)  # looks over the pit
    if is_off_stage(opponent, stage) and gap(me, opponent) < 2.5 and opponent.y < me.y - 0.9:
        return rules.UP | rules.HEAVY
    return keys


@inner
def _drunk(me: Any, sober_keys: int) -> int:
    """Replaces each key's state in `sober_keys` by a random state with probability DRUNKENNESS."""
    keys = sober_keys
    for bit in range(len(rules.KEY_NAMES)):
        if share(me) < DRUNKENNESS:
            keys &= ~(1 << bit)
            keys |= (1 if share(me) < 0.5 else 0) << bit
    return keys


@inner
def based(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Plays the original game's BasedAgent, which never jumps in even frames, including frame 0."""
    keys = 0
    if abs(me.x) > BASED_TURNS_BACK:
        keys |= rules.LEFT if me.x > 0 else rules.RIGHT
    elif opponent.state != rules.STUN and opponent.state != rules.KO:
        # If both players have the same x (for example, at the same wall), the original goes left.
        # Under the fair rules the bot goes in the direction that it faces.
        ahead = opponent.x - me.x
        if ahead == 0.0 and stage.is_fair:
            ahead = me.facing
        keys |= rules.RIGHT if ahead > 0 else rules.LEFT
    y, other_y = min(max(me.y, -7.0), 7.0), min(max(opponent.y, -7.0), 7.0)  # as in observations
    if frame % 2 == 1 and (y > BASED_JUMPS_BELOW or y > other_y):
        keys |= rules.JUMP
    dx, dy = opponent.x - me.x, other_y - y
    if dx * dx + dy * dy < BASED_REACH * BASED_REACH:
        keys |= rules.LIGHT
    return keys


@inner
def _character_keys(bot: int, me: Any, opponent: Any, match: Any, stage: Any) -> int:
    habitual = bot >= spec.CAMPER
    if share(me) < (2.0 * HESITATION * habit(match, me, SLOWNESS) if habitual else HESITATION):
        return 0
    frame = match.frame
    if bot == spec.CAMPER:
        return camper(me, opponent, match, stage)
    if bot == spec.FENCER:
        return fencer(me, opponent, match, stage)
    if bot == spec.PLATFORM_HOLDER:
        return platform_holder(me, opponent, match, stage)
    if bot == spec.AGGRESSIVE:
        return _aggressive(me, opponent, frame, stage)
    if bot == spec.DEFENSIVE:
        return _defensive(me, opponent, frame, stage)
    if bot == spec.KITER:
        return _kiter(me, opponent, frame, stage)
    if bot == spec.AERIAL:
        return _aerial(me, opponent, frame, stage)
    if bot == spec.SIG_SPAMMER:
        return _sig_spammer(me, opponent, frame, stage)
    if bot == spec.WEAPON_SEEKER:
        return _weapon_seeker(me, opponent, match, frame, stage)
    return _edge_guarder(me, opponent, frame, stage)


@inner
def bot_keys(bot: int, me: Any, opponent: Any, match: Any, stage: Any) -> Any:
    """Returns the key bits of bot number `bot` (in spec.BOTS) for the frame after `match.frame`."""
    if bot == spec.RANDOM:
        return np.int64(draw(me) & _ALL_KEYS)
    if bot == spec.BASED:
        return based(me, opponent, match.frame, stage)
    if bot == spec.CLOCKWORK:
        is_over = match.frame >= len(_CLOCKWORK_KEYS)
        return np.int64(0 if is_over else _CLOCKWORK_KEYS[match.frame])
    if bot == spec.MIRROR:
        return np.int64(opponent.past_keys[(match.frame + 1) % MIRROR_DELAY])
    if bot == spec.DRUNK:
        return _drunk(me, based(me, opponent, match.frame, stage))
    if spec.AGGRESSIVE <= bot <= spec.EDGE_GUARDER or spec.CAMPER <= bot <= spec.PLATFORM_HOLDER:
        return _character_keys(bot, me, opponent, match, stage)
    return 0
