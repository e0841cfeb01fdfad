"""A match's end: the learner's view of it, its result for the matchmaker, and its failures.

Shape suffixes: N matches, 2 seats, O observation, K reward terms.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
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


def played_result(
    assignment: Assignment, game: BatchedGame, n: int, steps: tuple[int, int]
) -> MatchResult:
    """The result of the match that just ended in row `n`.

    Args:
        steps: the learner's steps at the match's start and end.
    """
    names, rows = game.spec.stats, game.final_stats_N2S[n].tolist()
    stats = [dict(zip(names, row, strict=True)) for row in rows]
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=float(game.outcomes_N[n]),
        frames=int(game.final_frames_N[n]),
        seats=(
            _seat_result(assignment, 0, steps, stats[0]),
            _seat_result(assignment, 1, steps, stats[1]),
        ),
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
    """A match that could not be played: the matchmaker counts it and never rates it."""
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


def check_observations(
    observations_N2O: NDArray[np.float32], playing: Sequence[Assignment | None]
) -> None:
    """Raises `NumericalFault` for the first NaN or infinity, before it is learnt from.

    The message names the match, the seat and the index of the number.
    """
    finite_N2O = np.isfinite(observations_N2O)
    if not finite_N2O.all():
        n, seat, place = (int(index[0]) for index in np.nonzero(~finite_N2O))
        raise NumericalFault(
            f"number {place} of seat {seat}'s observation is {observations_N2O[n, seat, place]} in "
            f"{_match(playing[n])}: fix the game, then continue from the newest checkpoint"
        )


def check_rewards(
    terms_NK: NDArray[np.float32], names: Sequence[str], playing: Sequence[Assignment | None]
) -> None:
    """Raises `NumericalFault` with the match and the reward term that is NaN or infinite."""
    finite_NK = np.isfinite(terms_NK)
    if not finite_NK.all():
        n, k = (int(index[0]) for index in np.nonzero(~finite_NK))
        raise NumericalFault(
            f"the reward term {names[k]} is {terms_NK[n, k]} in {_match(playing[n])}: fix the game, "
            "then continue from the newest checkpoint"
        )


def _match(assignment: Assignment | None) -> str:
    if assignment is None:
        return "a match that has not begun"
    return f"match {assignment.match_id} against {assignment.opponent.name}"
