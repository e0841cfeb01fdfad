"""The arrays that the game and its worker processes share, in one anonymous file that both map.

Shape suffixes: N matches, 2 seats, A action width, O observation width, W workers.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

RESET, STEP, TEXT = b"reset", b"step", b"text"
"""What a worker is told: begin the active rows, step them, show one in text."""

_ALIGNED = 64


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What the layout follows from; equal sizes give equal layouts."""

    matches: int
    actions: int
    observation: int
    own: int
    workers: int

    def as_dict(self) -> dict[str, int]:
        """To make the same sizes in another process."""
        return asdict(self)


class Memory:
    """Shared arrays; a worker writes only rows of its own matches.

    Attributes:
        actions_N2A: what the seats do next. active_N: rows that the next command is for. last_N:
        whether the next step is the match's last one, whatever the environment says. seeds_N,
        next_seeds_N: of the current and of the next match. observations_N2O,
        final_observations_N2O: workers write them from `own` on. legal_N2A, acting_N2: what the
        seats may do, and whether it counts. rewards_N2, illegal_N2: of the last step. done_N:
        whether the row did what was commanded. ended_N: whether its match ended with that. row_W,
        calls_W: the row that a worker is at (-1: none), and how often it called an environment.
    """

    actions_N2A: NDArray[np.uint8]
    active_N: NDArray[np.bool_]
    last_N: NDArray[np.bool_]
    seeds_N: NDArray[np.uint64]
    next_seeds_N: NDArray[np.uint64]
    observations_N2O: NDArray[np.float32]
    final_observations_N2O: NDArray[np.float32]
    legal_N2A: NDArray[np.bool_]
    acting_N2: NDArray[np.bool_]
    rewards_N2: NDArray[np.float64]
    illegal_N2: NDArray[np.bool_]
    done_N: NDArray[np.bool_]
    ended_N: NDArray[np.bool_]
    row_W: NDArray[np.int64]
    calls_W: NDArray[np.int64]

    def __init__(self, sizes: Sizes, descriptor: int | None = None) -> None:
        """New arrays of zeros, or those behind `descriptor` that another process made."""
        self.sizes = sizes
        layout = _layout(sizes)
        starts = np.cumsum([0, *(_room(shape, dtype) for shape, dtype in layout.values())]).tolist()
        self.descriptor = _anonymous_file(starts[-1]) if descriptor is None else descriptor
        mapped = mmap.mmap(self.descriptor, starts[-1])
        for (name, (shape, dtype)), start in zip(layout.items(), starts, strict=False):
            array = np.ndarray(shape, dtype, buffer=mapped, offset=start)
            setattr(self, name, array)

    def close(self) -> None:
        """Gives the file back; the arrays stay as long as they are referred to."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _layout(sizes: Sizes) -> dict[str, tuple[tuple[int, ...], type]]:
    n, a, o, w = sizes.matches, sizes.actions, sizes.observation, sizes.workers
    return {
        "actions_N2A": ((n, 2, a), np.uint8),
        "active_N": ((n,), np.bool_),
        "last_N": ((n,), np.bool_),
        "seeds_N": ((n,), np.uint64),
        "next_seeds_N": ((n,), np.uint64),
        "observations_N2O": ((n, 2, o), np.float32),
        "final_observations_N2O": ((n, 2, o), np.float32),
        "legal_N2A": ((n, 2, a), np.bool_),
        "acting_N2": ((n, 2), np.bool_),
        "rewards_N2": ((n, 2), np.float64),
        "illegal_N2": ((n, 2), np.bool_),
        "done_N": ((n,), np.bool_),
        "ended_N": ((n,), np.bool_),
        "row_W": ((w,), np.int64),
        "calls_W": ((w,), np.int64),
    }


def _room(shape: tuple[int, ...], dtype: type) -> int:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return -(-size // _ALIGNED) * _ALIGNED


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kumite-pettingzoo")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
