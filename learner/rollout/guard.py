"""Stops a rollout at the first number that is none, and names where it came from.

A NaN that gets into a match would be learnt from, and reported to the league, long before an
update's own guard meets it. Shape suffixes: N matches, 2 seats, O observation, K reward terms, A
actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from league.errors import NumericalFault
from league.players import Assignment

_REMEDY = "mend the game, then go on from the newest checkpoint"


def check_observations(
    observations_N2O: NDArray[np.float32], playing: Sequence[Assignment | None]
) -> None:
    """Raises `NumericalFault` with the match, the seat and the place of a number that is NaN or
    infinite.
    """
    finite_N2O = np.isfinite(observations_N2O)
    if not finite_N2O.all():
        n, seat, place = (int(index[0]) for index in np.nonzero(~finite_N2O))
        raise NumericalFault(
            f"number {place} of seat {seat}'s observation is {observations_N2O[n, seat, place]} in "
            f"{_match(playing[n])}: {_REMEDY}"
        )


def check_rewards(
    terms_NK: NDArray[np.float32], names: Sequence[str], playing: Sequence[Assignment | None]
) -> None:
    """Raises `NumericalFault` with the match and the reward term that is NaN or infinite."""
    finite_NK = np.isfinite(terms_NK)
    if not finite_NK.all():
        n, k = (int(index[0]) for index in np.nonzero(~finite_NK))
        raise NumericalFault(
            f"the reward term {names[k]} is {terms_NK[n, k]} in {_match(playing[n])}: {_REMEDY}"
        )


def check_outputs(logits_NA: Tensor, value_N: Tensor, step: int) -> None:
    """Raises `NumericalFault` when the network's answer to finite observations is not finite.

    One number crosses from the device: a sum is finite when all that is in it is.
    """
    if math.isfinite(float(logits_NA.sum() + value_N.sum())):
        return
    culprit = "value" if math.isfinite(float(logits_NA.sum())) else "logits"
    raise NumericalFault(
        f"the network's {culprit} in the rollout after step {step} are not finite: no weight was changed; "
        "go on from the newest checkpoint with a lower learner.learning_rate"
    )


def _match(assignment: Assignment | None) -> str:
    if assignment is None:
        return "a match that has not begun"
    return f"match {assignment.match_id} against {assignment.opponent.name}"
