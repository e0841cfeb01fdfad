"""Plays the planners, bots that search in the game itself. Their strength needs no training.

A planner decides every `DECISION` frames. It tries several plans in copies of the match, and
follows the plan with the largest value. The plans are its previous plan, the play of the bot
`based`, and random plans. A random plan holds random keys for a few decisions, and then `based`
continues.

A planner does not know how its opponent plays, so a plan's value is the sum over two rollouts,
against the bots `constant` and `aggressive`. A planner knows the whole state of the match, but not
the future, because the copies draw other random numbers.

Sources: A. V. Rao, "A survey of numerical methods for optimal control" (2009) describes random
shooting. G. Tesauro and G. R. Galperin, "On-line policy improvement using Monte-Carlo search" (NIPS
1996) describe rollouts in which a scripted policy continues.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from league.games.brawl import rules, spec
from league.games.brawl.bots import based, bot_keys
from league.games.brawl.compiling import inner
from league.games.brawl.frame import play_frame
from league.games.brawl.layout import PLAN_PARTS
from league.games.brawl.physics import gap
from league.games.brawl.random_stream import draw, mixed, share
from league.games.brawl.tactics import is_off_stage
from league.games.brawl.variation import take_keys
from league.games.brawl.weapons import SPAWNERS

DECISION: Final = 4
"""Frames between two decisions, as for agents of the default preset."""
HORIZON: Final = 45
"""Number of frames in a rollout. While a player has no ground below, the rollout continues, for up
to `LONGEST` frames.
"""
LONGEST: Final = 90
STOCK: Final = 200.0
"""Value of a stock in points of damage."""
DISCOUNT: Final = 0.98
"""An event's value is multiplied by this factor for each frame before the event."""
DISTANCE: Final = 0.05
"""Cost of each unit of distance between the players at a rollout's end, in points of damage."""

# The opponents in a plan's rollouts.
_OPPONENTS = np.array([spec.CONSTANT, spec.AGGRESSIVE], np.int32)
# Random keys combine left or right, up or down, and a button, each drawn from one of these tables.
_WAYS = np.array([0, rules.LEFT, rules.LEFT, rules.RIGHT, rules.RIGHT], np.int32)
_HEIGHTS = np.array([0] * 7 + [rules.DOWN] * 2 + [rules.UP], np.int32)
_BUTTONS = np.array(
    [0] * 7
    + [rules.JUMP] * 4
    + [rules.LIGHT] * 4
    + [rules.HEAVY] * 2
    + [rules.DASH_KEY] * 2
    + [rules.PICK],
    np.int32,
)


@inner
def _drawn(table: Any, player: Any) -> int:
    return table[int(share(player) * len(table))]


@inner
def _draw_plan(plan: Any, player: Any) -> None:
    """Draws a plan from the player's random stream: keys for 1 to PLAN_PARTS decisions, after which
    the bot `based` plays.
    """
    plan.parts = 1 + int(share(player) * PLAN_PARTS)
    for part in range(plan.parts):
        keys = _drawn(_WAYS, player) | _drawn(_HEIGHTS, player) | _drawn(_BUTTONS, player)
        holds_on = part > 0 and share(player) < 0.33
        plan.keys[part] = plan.keys[part - 1] if holds_on else keys


@inner
def _plan_keys(plan: Any, me: Any, opponent: Any, match: Any, stage: Any) -> Any:
    """Returns a plan's keys for the frame after `match.frame`."""
    part = (match.frame - plan.begun) // DECISION
    if part < plan.parts:
        return np.int64(plan.keys[part])
    return np.int64(based(me, opponent, match.frame, stage))


@inner
def _may_fall(player: Any, stage: Any) -> bool:
    return player.state != rules.KO and is_off_stage(player, stage)


@inner
def _value(
    plan: Any, bot: int, n: int, seat: int, seed: Any, arrays: Any, max_frames: int, scratch: Any
) -> float:
    """Plays a plan against a bot in a copy of a match.

    Returns:
        The plan's value, in points of damage.
    """
    stage, tables = arrays[0][0], arrays[1][0]
    paid, stats = scratch[4][0], scratch[5][0]
    players_2, match_1 = scratch[1], scratch[2]
    players_2[0], players_2[1], match_1[0] = arrays[2][n, 0], arrays[2][n, 1], arrays[3][n]
    me, opponent, match = players_2[seat], players_2[1 - seat], match_1[0]
    opponent.random = mixed(seed)
    for p in range(SPAWNERS):
        match.weapons[p].random = mixed(seed + np.uint64(p + 1))
    value, weight = 0.0, 1.0
    for frame in range(LONGEST):
        if frame >= HORIZON and not (_may_fall(me, stage) or _may_fall(opponent, stage)):
            break
        keys = _plan_keys(plan, me, opponent, match, stage)
        others: Any = np.int64(bot_keys(bot, opponent, me, match, stage))
        take_keys(match, keys if seat == 0 else others, others if seat == 0 else keys)
        play_frame(players_2[0], players_2[1], match, stage, tables, paid, paid, stats, stats)
        value += weight * (me.dealt - opponent.dealt)
        value += weight * STOCK * (opponent.fell - me.fell)
        weight *= DISCOUNT
        if me.stocks == 0 or opponent.stocks == 0 or match.frame >= max_frames:
            break
    if _may_fall(me, stage):
        value -= weight * STOCK
    return value - DISTANCE * gap(me, opponent)


@inner
def planner_keys(n: int, seat: int, bot: int, arrays: Any, max_frames: int, scratch: Any) -> Any:
    """Returns a planner's key bits for the frame after `match.frame`.

    Args:
        n: row of the match.
        seat: the planner's seat.
        bot: the planner's index in the spec's `all_bots`.
        arrays: `BrawlGame._arrays`.
        max_frames: time limit in frames.
        scratch: `BrawlGame._scratch()`.
    """
    stage, players_N2, matches_N = arrays[0][0], arrays[2], arrays[3]
    plans_N2, tried_1 = scratch[0], scratch[3]
    me, opponent, match = players_N2[n, seat], players_N2[n, 1 - seat], matches_N[n]
    plan, tried = plans_N2[n, seat], tried_1[0]
    age = match.frame - plan.decided
    if match.frame > 0 and 0 <= age < DECISION:
        return _plan_keys(plan, me, opponent, match, stage)
    continues = match.frame > 0 and age == DECISION
    seed, best = draw(me), -np.inf
    for r in range(spec.ROLLOUTS[bot - spec.PLANNER] // len(_OPPONENTS)):
        if r == 0 and continues:
            tried_1[0] = plan
        else:
            tried.begun, tried.parts = match.frame, 0
            if r > 1:
                _draw_plan(tried, me)
        tried.decided = match.frame
        value = 0.0
        for other in _OPPONENTS:
            value += _value(tried, other, n, seat, seed, arrays, max_frames, scratch)
        if value > best:
            best = value
            plans_N2[n, seat] = tried
    return _plan_keys(plan, me, opponent, match, stage)
