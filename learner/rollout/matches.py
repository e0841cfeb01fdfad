"""A match's end as the learner sees it, and its failures.

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
    """A match that ended, as the learner saw it.

    `score` is 1 for the learner's win, 0.5 for a draw, 0 for a loss. `reward_terms` are weighted
    and summed over the match; their sum is its reward.
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
    """The `info` of a step in which a match ended, as Stable-Baselines3 and its `Monitor` have it.

    `r` is the reward, `l` the length in decisions, `t` the seconds since the environment was made.
    A match that reached its last frame has ended by the rules, since its time is part of the game;
    one that failed (no `match`) was truncated.
    """
    info: dict[str, Any] = {"terminal_observation": view_O, "TimeLimit.truncated": match is None}
    if match is not None:
        info["episode"] = {"r": match.reward, "l": match.steps, "t": round(seconds, 6)}
        info["is_success"] = match.score == 1.0
    return info


def check_finite(
    values: NDArray[np.float32], playing: Sequence[Assignment | None], name: Callable[..., str]
) -> None:
    """Raises `NumericalFault` for the first NaN or infinity, before it is learnt from.

    Args:
        values: numbers `[N, …]` of the game.
        playing: the match of each row.
        name: what a number is, of its indices after the first.
    """
    finite = np.isfinite(values)
    if finite.all():
        return
    n, *place = (int(index[0]) for index in np.nonzero(~finite))
    match = playing[n]
    where = "a match that has not begun"
    if match is not None:
        where = f"match {match.match_id} against {match.opponent.name}"
    raise NumericalFault(
        f"{name(*place)} is {values[n, *place]} in {where}: fix the game, then continue from the "
        "newest checkpoint"
    )
