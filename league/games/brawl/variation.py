"""Varies matches a little, for training agents that don't depend on details of the original game
(UTMIST's).

The seed of a match decides where the platform begins, how much friction surfaces have, and whether
keys take effect a frame late. In every observation, errors are added to both players' positions and
speeds. The option `variation` scales these changes from 0 (no variation) to 1. docs/tournament.md
shows how much they help.

The option `off_stage_starts` lets players begin where they could fall: in the air over the pit or
outside the stage, with few jumps left. Without this option an agent rarely meets such situations,
and it falls without being hit. For example, the key for heavy attacks starts the recovery in the
air, a move that carries the player up. But the side wall of a ground counts as ground. Next to the
wall the same key starts a long ground attack, during which the player falls.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from league.games.brawl import rules
from league.games.brawl.compiling import inner
from league.games.brawl.control import set_air_counts
from league.games.brawl.random_stream import share, stream_of

FRICTION: Final = 0.3
"""Largest relative error of friction."""
LATE: Final = 0.5
"""Share of the matches in which keys take effect late."""
PLACE_ERROR: Final = 0.1 / 14.0
"""Largest error of a position, scaled as in an observation: 0.1 units in x, 0.06 units in y."""
SPEED_ERROR: Final = 0.02
"""Largest error of a speed, scaled as in an observation: about 0.25 u/s."""
PIT: Final = 1.55
"""Largest |x| of a body over the pit, between the inner walls of the two grounds."""
EDGE: Final = 7.5
"""Smallest |x| of a body outside the stage, beyond the outer walls."""
_STREAM: Final = np.uint64(0x9FB21C651E98DF25)


@inner
def begin_variation(match: Any, stage: Any) -> None:
    """Draws the variation of a new match."""
    match.random = stream_of(match.seed, _STREAM)
    match.platform_ahead = int(stage.variation * share(match) * stage.period)
    match.friction = 1.0 + stage.variation * FRICTION * (2.0 * share(match) - 1.0)
    match.keys_late = share(match) < stage.variation * LATE
    match.late_keys_0, match.late_keys_1 = 0, 0


@inner
def take_keys(match: Any, keys_0: int, keys_1: int) -> None:
    """Sets the keys that take effect in this frame. In a match with late keys, these are the keys
    of the previous frame.
    """
    match.keys_0, match.keys_1 = keys_0, keys_1
    if match.keys_late:
        match.keys_0, match.keys_1 = match.late_keys_0, match.late_keys_1
        match.late_keys_0, match.late_keys_1 = keys_0, keys_1


@inner
def _wrong(match: Any, most: float) -> float:
    return most * (2.0 * share(match) - 1.0)


@inner
def blur(half: Any, match: Any, stage: Any) -> None:
    """Adds errors to a player's position and speed in a view."""
    position_error, speed = stage.variation * PLACE_ERROR, stage.variation * SPEED_ERROR
    half.x = min(max(half.x + _wrong(match, position_error), -1.0), 1.0)
    half.y = min(max(half.y + _wrong(match, position_error), -1.0), 1.0)
    half.vx = min(max(half.vx + _wrong(match, speed), -1.0), 1.0)
    half.vy = min(max(half.vy + _wrong(match, speed), -1.0), 1.0)


@inner
def _either(match: Any) -> float:
    return 1.0 if share(match) < 0.5 else -1.0


@inner
def start_off_stage(player: Any, match: Any, stage: Any) -> None:
    """Moves a new player off the grounds, with the probability that the stage gives.

    40 % of the moved players begin anywhere over the pit, 35 % over the pit close to a wall, and
    25 % outside the stage. Their positions, speeds, directions, and numbers of jumps and recoveries
    left are random. Half of the moved players hold the key for heavy attacks. A player that would
    touch the platform stays at its spawn.
    """
    if share(match) >= stage.off_stage_starts:
        return
    where = share(match)
    if where < 0.4:
        x = PIT * (2.0 * share(match) - 1.0)
    elif where < 0.75:
        x = _either(match) * (PIT + 0.05 - 0.5 * share(match))
    else:
        x = _either(match) * (EDGE + 2.0 * share(match))
    y = 5.0 * share(match) - 1.0
    if abs(x - match.platform_x) < 1.5 and abs(y - match.platform_y) < 0.7:
        return
    player.x, player.y = x, y
    player.vx, player.vy = 4.0 * (2.0 * share(match) - 1.0), 10.0 * share(match) - 3.0
    player.facing = int(_either(match))
    set_air_counts(player, int(3.0 * share(match)), int(2.0 * share(match)))
    if share(match) < 0.5:
        player.keys = rules.HEAVY
