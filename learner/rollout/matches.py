"""A match's end: the learner's view of it, its result for the matchmaker, and its failures.

Shape suffixes: N matches, O observation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import NumericalFault
from league.games.base import BatchedGame
from league.players import Assignment, MatchResult, PlayerKind, SeatResult


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


def match_result(
    assignment: Assignment, game: BatchedGame, n: int, steps: tuple[int, int], failure: str = ""
) -> MatchResult:
    """The result of the match in row `n`; `steps` are the learner's at both ends.

    The matchmaker counts a match with a `failure` and never rates it.
    """
    seats = []
    for player, numbers in zip(assignment.seats, game.final_stats_N2S[n].tolist(), strict=True):
        start, end = steps if player.kind is PlayerKind.LIVE else (player.step, player.step)
        seats.append(
            SeatResult(
                player=player.name,
                digest=player.digest,
                step_start=start,
                step_end=end,
                stats={} if failure else dict(zip(game.spec.stats, numbers, strict=True)),
            )
        )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=0.5 if failure else float(game.outcomes_N[n]),
        frames=0 if failure else int(game.final_frames_N[n]),
        seats=(seats[0], seats[1]),
        failed=bool(failure),
        failure=failure,
        finished_at=time.time(),
    )


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
