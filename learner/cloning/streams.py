"""Lays whole matches one behind the other into streams, and cuts the streams into sequences.

Shape suffixes: L rows of a stream, S streams, X = C + T rows (C of history, T to learn), O
observation, A actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from learner.cloning.demonstrations import Demonstration


@dataclass(frozen=True)
class Chunk:
    """T rows of all streams, behind up to C rows of their history."""

    obs_XSO: Tensor
    starts_XS: Tensor
    actions_TSA: Tensor
    legal_TSA: Tensor | None
    weight_TS: Tensor
    """1 where there was something to decide, 0 elsewhere and behind a stream's end."""
    prefix: int


class Streams:
    """Matches side by side on `device`: each goes, whole, to the stream that is the shortest so
    far.
    """

    def __init__(
        self,
        demonstrations: Sequence[Demonstration],
        streams: int,
        device: torch.device | str = "cpu",
    ) -> None:
        columns: list[list[Demonstration]] = [[] for _ in range(min(streams, len(demonstrations)))]
        lengths = [0] * len(columns)
        for demonstration in demonstrations:
            shortest = int(np.argmin(lengths))
            columns[shortest].append(demonstration)
            lengths[shortest] += len(demonstration)
        rows = max(lengths)
        first = demonstrations[0]
        self._obs_LSO = _laid(columns, rows, lambda d: d.obs_TO, device)
        self._starts_LS = _laid(columns, rows, lambda d: np.arange(len(d)) == 0, device)
        self._actions_LSA = _laid(columns, rows, lambda d: d.actions_TA, device)
        self._weight_LS = _laid(columns, rows, lambda d: d.decided_T.astype(np.float32), device)
        self._legal_LSA = None if first.legal_TA is None else _laid(columns, rows, _legal, device)

    @property
    def width(self) -> int:
        """Number of streams."""
        return self._obs_LSO.shape[1]

    def chunks(self, steps: int, context: int) -> Iterator[Chunk]:
        """The streams from their beginning, `steps` rows at a time, each with up to `context`
        rows before.
        """
        for first in range(0, len(self._obs_LSO), steps):
            prefix, rows = min(context, first), slice(first, first + steps)
            seen = slice(first - prefix, first + steps)
            yield Chunk(
                self._obs_LSO[seen],
                self._starts_LS[seen],
                self._actions_LSA[rows].float(),
                None if self._legal_LSA is None else self._legal_LSA[rows],
                self._weight_LS[rows],
                prefix,
            )


def _legal(demonstration: Demonstration) -> NDArray[np.bool_]:
    assert demonstration.legal_TA is not None
    return demonstration.legal_TA


def _laid(columns, rows, part, device) -> Tensor:  # type: ignore[no-untyped-def]
    """One part of all matches as `[L, S, ...]`; zeros behind a stream's end."""
    first = part(columns[0][0])
    laid = np.zeros((rows, len(columns), *first.shape[1:]), first.dtype)
    for stream, column in enumerate(columns):
        joined = np.concatenate([part(demonstration) for demonstration in column])
        laid[: len(joined), stream] = joined
    return torch.from_numpy(laid).to(device)
