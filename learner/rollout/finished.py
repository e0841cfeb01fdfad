"""What is left of a match that ended: the learner's view of it, and its result for the
matchmaker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.base import BatchedGame
from league.players import Assignment, MatchResult, PlayerKind, SeatResult


@dataclass(frozen=True, kw_only=True)
class FinishedMatch:
    """A match that ended, as the learner saw it."""

    assignment: Assignment
    score: float  # the learner's: 1 win, 0.5 draw, 0 loss
    steps: int
    frames: int
    reward_terms: NDArray[np.float64]  # weighted, summed over the match; their sum is its reward
    stats: dict[str, float]

    @property
    def reward(self) -> float:
        return float(self.reward_terms.sum())


def end_info(
    view_O: NDArray[np.float32], match: FinishedMatch | None = None, seconds: float = 0.0
) -> dict[str, Any]:
    """What Stable-Baselines3 looks for in the `info` of a step in which a match ended.

    The learner's last view and, as its `Monitor` tells them, `r` the reward, `l` the length in
    decisions and `t` the seconds since the environment was made; a success is a win. A match that
    reached its last frame is over by the rules, for its time is part of the game. One that failed
    (no `match`) was cut off.
    """
    info: dict[str, Any] = {"terminal_observation": view_O, "TimeLimit.truncated": match is None}
    if match is not None:
        info["episode"] = {"r": match.reward, "l": match.steps, "t": round(seconds, 6)}
        info["is_success"] = match.score == 1.0
    return info


def played_result(
    assignment: Assignment, game: BatchedGame, n: int, steps: tuple[int, int]
) -> MatchResult:
    """The result of the match that just ended in row `n`; `steps` are the learner's at its start
    and end.
    """
    first, second = (
        _seat_result(
            assignment, seat, steps, dict(zip(game.spec.stats, map(float, row), strict=True))
        )
        for seat, row in enumerate(game.final_stats_N2S[n])
    )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=float(game.outcomes_N[n]),
        frames=int(game.final_frames_N[n]),
        seats=(first, second),
        finished_at=time.time(),
    )


def _seat_result(
    assignment: Assignment, seat: int, steps: tuple[int, int], stats: dict[str, float]
) -> SeatResult:
    player = assignment.seats[seat]
    start, end = steps if player.kind is PlayerKind.LIVE else (player.step, player.step)
    return SeatResult(
        player=player.name, digest=player.digest, step_start=start, step_end=end, stats=stats
    )


def failed_result(assignment: Assignment, reason: str) -> MatchResult:
    """A match that could not be played: counted by the matchmaker, never rated."""
    first, second = (
        SeatResult(player=player.name, digest=player.digest) for player in assignment.seats
    )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=0.5,
        frames=0,
        seats=(first, second),
        failed=True,
        failure=reason,
        finished_at=time.time(),
    )
