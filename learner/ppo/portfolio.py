"""Which references a portfolio keeps: pure functions of steps, ratings and distances.

Members are given oldest first; each function returns the index of the one to drop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput

PRUNINGS = ("recent", "best", "diverse")


def oldest(count: int) -> int:
    """`recent`: the oldest goes."""
    _some(count)
    return 0


def lowest_rated(scores: Sequence[float | None]) -> int:
    """`best`: the lowest rated goes, of equal ones the older.

    One that has no rating yet is not judged; where none has, the oldest goes.
    """
    _some(len(scores))
    rated = [(score, index) for index, score in enumerate(scores) if score is not None]
    return min(rated)[1] if rated else 0


def least_apart(kl_MM: NDArray[np.floating]) -> int:
    """`diverse`: the one whose nearest other is nearest of all goes, of equal ones the older.

    `kl_MM[i, j]` is KL(π_i ‖ π_j) on a batch of states: how much is lost when j stands for i.
    """
    count = len(kl_MM)
    _some(count)
    if kl_MM.shape != (count, count):
        raise InvalidInput(
            f"distances have shape {kl_MM.shape}: one row and one column a member are wanted"
        )
    apart_MM = np.where(np.eye(count, dtype=bool), np.inf, kl_MM)
    return int(apart_MM.min(1).argmin())


def _some(count: int) -> None:
    if count < 1:
        raise InvalidInput("no member can be dropped of an empty portfolio")
