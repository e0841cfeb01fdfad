"""Describes how a match ended for the learner, and checks that the game's numbers are finite.

Shape suffixes: N matches, O observation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import NumericalFault
from league.players import Assignment


@dataclass(frozen=True, kw_only=True)
class FinishedMatch:
    """Describes a match that ended, as the learner saw it.

    Attributes:
        score: 1 for the learner's win, 0.5 for a draw, 0 for a loss.
        steps: length in decisions.
        frames: length in frames.
        reward_terms: each reward term, multiplied by its weight and added up over the match. The
            sum of all terms is the match's reward.
    """

    assignment: Assignment
    score: float
    steps: int
    frames: int
    reward_terms: NDArray[np.float64]
    stats: dict[str, float]

    @property
    def reward(self) -> float:
        return float(self.reward_terms.sum())


def end_info(
    view_O: NDArray[np.float32], match: FinishedMatch | None = None, seconds: float = 0.0
) -> dict[str, Any]:
    """Makes the `info` of a match's last step, in the form of Stable-Baselines3 and its `Monitor`.

    A match that reached its time limit is terminated, not truncated, because the limit is part of
    the rules. A match that failed is truncated.

    Args:
        view_O: the last observation.
        match: the match, None if it failed.
        seconds: seconds since the environment was made.

    Returns:
        The `info`: `r` is the reward, `l` the length in decisions, `t` the seconds.
    """
    info: dict[str, Any] = {"terminal_observation": view_O, "TimeLimit.truncated": match is None}
    if match is not None:
        info["episode"] = {"r": match.reward, "l": match.steps, "t": round(seconds, 6)}
        info["is_success"] = match.score == 1.0
    return info


def check_finite(
    values: NDArray[np.float32], playing: Sequence[Assignment | None], name: Callable[..., str]
) -> None:
    """Raises `NumericalFault` for the first NaN or infinity, before anything is learnt from it.

    Args:
        values: numbers `[N, …]` of the game.
        playing: the match in each row, None if no match has begun there.
        name: returns the name of a number in `values`. It is called with all of the number's
            indices except the first, which is the row.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    n, *position = (int(index[0]) for index in np.nonzero(~finite))
    match = playing[n]
    where = "a match that has not begun"
    if match is not None:
        where = f"match {match.match_id} against {match.opponent.name}"
    raise NumericalFault(
        f"{name(*position)} is {values[n, *position]} in {where}: fix the game, then continue "
        "from the newest checkpoint"
    )
