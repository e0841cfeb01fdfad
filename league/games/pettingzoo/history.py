"""What was done in the current match of every row: with its seed, all that a match is.

Shape suffixes: T frames, N matches, 2 seats, A action width, B bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from league.games.base import CHOICE


class History:
    """Actions by frame and row: the index of a choice, or the keys packed into bits."""

    def __init__(self, matches: int, kind: str, size: int) -> None:
        self._choices, self._size = kind == CHOICE, size
        shape = (16, matches, 2) if self._choices else (16, matches, 2, -(-size // 8))
        self._kept = np.zeros(shape, np.int32 if self._choices else np.uint8)

    def record(
        self, rows: NDArray[np.intp], frames: NDArray[np.int32], actions: NDArray[np.uint8]
    ) -> None:
        """Keeps what `rows` did in their frames: `actions` [rows, 2, A]."""
        while frames.max(initial=0) >= len(self._kept):
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)])
        self._kept[frames, rows] = (
            actions.argmax(axis=2) if self._choices else np.packbits(actions, axis=2)
        )

    def actions(self, frame: int, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        """What `rows` did in `frame`, [rows, 2, A]."""
        kept = self._kept[frame, rows]
        if not self._choices:
            return np.unpackbits(kept, axis=2, count=self._size)
        return (kept[:, :, None] == np.arange(self._size)).astype(np.uint8)

    def saved(self, frames: int) -> NDArray:
        """A copy of the first `frames` frames."""
        return self._kept[:frames].copy()

    def fits(self, saved: NDArray, frames: int) -> bool:
        """Whether `saved` can be taken back by `restore`."""
        wanted = (frames, *self._kept.shape[1:])
        return (
            isinstance(saved, np.ndarray)
            and saved.shape == wanted
            and saved.dtype == self._kept.dtype
        )

    def restore(self, saved: NDArray) -> None:
        """Goes on from what `saved` returned."""
        room = np.zeros((16, *self._kept.shape[1:]), self._kept.dtype)
        self._kept = np.concatenate([saved, room])
