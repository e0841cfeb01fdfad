"""Scripted players beyond the original's four, each with its own way to play (numbers:
docs/game.md).

Six to train against, and three that are held out for the evaluator: edge_guarder, mirror, drunk.
"""

from __future__ import annotations

from typing import Any, Final

from numba import njit

from league.games.brawl import moves, rules
from league.games.brawl.layout import MIRROR_DELAY, PLACES
from league.games.brawl.tactics import (
    blow,
    distance,
    go,
    ground_toward,
    is_in_reach,
    is_off_stage,
    reach_of,
    share,
    walk,
)

HESITATION: Final = 0.08
"""Share of frames in which a character presses nothing, so that no two matches are the same."""
KITE_FROM: Final = 5.0
KITE_CYCLE: Final = 180
KITE_STRIKES: Final = 55
"""Frames of each cycle in which the kiter comes in to hit; in the others it keeps away."""
GUARDS_WITHIN: Final = 3.0
SPAMMER_CHARGE: Final = 20
"""Frames that the sig_spammer holds an attack at most, waiting for its opponent to come into
reach.
"""
DRUNKENNESS: Final = 0.3


@njit
def _leap(me: Any, opponent: Any, frame: int) -> int:
    """A jump toward who stands higher."""
    higher = opponent.y < me.y - 1.0 and abs(opponent.x - me.x) < 3.0
    return rules.JUMP if higher and frame % 2 == 0 and (me.grounded or me.vy > 0.0) else 0


@njit
def aggressive(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Runs up to its opponent all the time and strikes whatever comes into reach."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    strike = blow(me, opponent)
    if strike:
        return strike
    if abs(opponent.x - me.x) > 3.0 and me.state == rules.WALKING:
        keys |= rules.DASH_KEY
    return keys | _leap(me, opponent, frame)


@njit
def defensive(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Waits in the middle of its ground, dodges attacks and strikes back in the opening."""
    home = ground_toward(me.side, stage)
    keys = go(me, (stage.solids[home, 0] + stage.solids[home, 2]) / 2.0, frame, stage)
    if is_off_stage(me, stage):
        return keys
    near = distance(me, opponent) < GUARDS_WITHIN
    if near and opponent.state == rules.ATTACK and me.dodge_wait == 0:
        return rules.DASH_KEY if frame % 2 == 0 else 0
    strike = blow(me, opponent)
    if strike:
        return strike
    return walk(opponent.x - me.x) if near and (opponent.x - me.x) * me.facing < 0.0 else keys


@njit
def kiter(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Hits and runs: comes in for a blow in some frames, and keeps away in the others."""
    comes_in = frame % KITE_CYCLE < KITE_STRIKES and opponent.state != rules.KO
    flees = 1.0 if me.x > opponent.x else -1.0
    away = me.x + 2.0 * flees
    if abs(away) < stage.solids[0, 0] + 0.6:  # over the pit rather than into it
        away = 4.5 * flees
    if is_off_stage(me, stage):
        return go(me, opponent.x if comes_in else away, frame, stage)
    strike = blow(me, opponent)
    if strike and (comes_in or opponent.stun_left > 0):
        return strike
    if comes_in:
        return go(me, opponent.x, frame, stage) | _leap(me, opponent, frame)
    if distance(me, opponent) > KITE_FROM:
        return 0
    cornered = abs(me.x) > 5.5 and abs(away) > abs(me.x) and distance(me, opponent) < 2.5
    return go(me, -me.x if cornered else away, frame, stage) | (
        rules.JUMP if cornered and frame % 2 == 0 else 0
    )


@njit
def aerial(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Stays in the air: leaves the ground at once and strikes from above."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    if frame % 2 == 0 and (me.grounded or (me.vy > 0.0 and me.y > opponent.y - 2.2)):
        return keys | rules.JUMP
    return keys if me.grounded else keys | blow(me, opponent)


@njit
def sig_spammer(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Uses heavy attacks alone, and charges them until the opponent is in reach."""
    keys = go(me, opponent.x, frame, stage)
    if is_off_stage(me, stage):
        return keys
    if me.state == rules.ATTACK:
        charges = (
            me.move_frame <= 6 and me.charged < SPAMMER_CHARGE and not is_in_reach(me, opponent)
        )
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
    return keys | _leap(me, opponent, frame)


@njit
def _nearest_weapon(me: Any, match: Any) -> int:
    """The place of the weapon on the ground that is nearest sideways, -1 for none."""
    nearest, least = -1, 1e9
    for p in range(PLACES):
        place = match.weapons[p]
        if place.type != moves.UNARMED and abs(place.x - me.x) < least:
            nearest, least = p, abs(place.x - me.x)
    return nearest


@njit
def weapon_seeker(me: Any, opponent: Any, match: Any, frame: int, stage: Any) -> int:
    """Fetches every weapon that comes, and fights near where it stands when it has none to
    fetch.
    """
    place = _nearest_weapon(me, match) if me.weapon == moves.UNARMED else -1
    if place < 0:
        if me.weapon != moves.UNARMED or distance(me, opponent) < 4.0 or is_off_stage(me, stage):
            return aggressive(me, opponent, frame, stage)
        return go(me, 4.5 if me.x > 0.0 else -4.5, frame, stage)
    weapon = match.weapons[place]
    keys = go(me, weapon.x, frame, stage)
    if weapon.y < me.y - 1.5 and frame % 2 == 0 and (me.grounded or me.vy > 0.0):
        keys |= rules.JUMP
    if abs(weapon.x - me.x) < 1.0:
        keys |= rules.PICK
    return keys


@njit
def edge_guarder(me: Any, opponent: Any, frame: int, stage: Any) -> int:
    """Stands at the edge of the pit and strikes who tries to come back over it."""
    r = ground_toward(me.side, stage)
    inner = stage.solids[r, 0] if me.side > 0 else stage.solids[r, 2]
    keys = go(me, inner + 0.7 * me.side, frame, stage)
    if is_off_stage(me, stage):
        return keys
    strike = blow(me, opponent)
    if strike:
        return strike
    if keys == 0 and opponent.x * me.side < me.x * me.side and me.facing == me.side:
        return walk(-me.side)  # looks over the pit
    if is_off_stage(opponent, stage) and distance(me, opponent) < 2.5 and opponent.y < me.y - 0.9:
        return rules.UP | rules.HEAVY
    return keys


@njit
def mirror(opponent: Any, frame: int) -> int:
    """Repeats what its opponent pressed half a second ago."""
    return opponent.past_keys[(frame + 1) % MIRROR_DELAY]


@njit
def drunk(me: Any, sober_keys: int) -> int:
    """The keys of `based`, of which each is thrown by chance with the probability DRUNKENNESS."""
    keys = sober_keys
    for bit in range(len(rules.KEY_NAMES)):
        if share(me) < DRUNKENNESS:
            keys &= ~(1 << bit)
            keys |= (1 if share(me) < 0.5 else 0) << bit
    return keys


@njit
def hesitates(me: Any) -> bool:
    """Whether a character presses nothing in this frame."""
    return share(me) < HESITATION
