"""Varies matches a little, for training agents that don't depend on the original's details.

The seed of a match decides where the platform begins, how much friction surfaces have, and whether
keys take effect a frame late. In every observation, errors are added to both players' positions and
speeds. The option `variation` scales all of these from 0 (no variation) to 1. docs/tournament.md
shows how much this helps.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from league.games.brawl.compiling import inner
from league.games.brawl.random_stream import share, stream_of

FRICTION: Final = 0.3
"""Largest relative error of friction."""
LATE: Final = 0.5
"""Share of the matches in which keys take effect late."""
PLACE_ERROR: Final = 0.1 / 14.0
"""Largest error of a position, scaled as in an observation: 0.1 units in x, 0.06 units in y."""
SPEED_ERROR: Final = 0.02
"""Largest error of a speed, scaled as in an observation: about 0.25 u/s."""
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
