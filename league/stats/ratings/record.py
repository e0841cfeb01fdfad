"""How TrueSkill's predictions have come out: counts by how far apart two players were believed to
be.

Every game is counted before it is folded, so nothing is predicted from itself. The counts add up,
and the difference of two of them is that of the games between; all that an epoch measures comes
from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

BIN = 0.1
"""Width of a bin of |t|, in units of c."""
BINS = 51
"""The last one holds all from 5 on."""


def _zeros() -> list[float]:
    return [0.0] * BINS


@dataclass
class PredictionRecord:
    """Sums by bin of |t|, t = (μ₁ − μ₂)/c.

    Attributes:
        games, draws: how many.
        gaps: of |t|.
        narrowness: of 1/c, in 1/points: what turns a draw margin into units of t.
        scores: what the one believed to be stronger earned: 1 a win, ½ a draw.
    """

    games: list[float] = field(default_factory=_zeros)
    draws: list[float] = field(default_factory=_zeros)
    gaps: list[float] = field(default_factory=_zeros)
    narrowness: list[float] = field(default_factory=_zeros)
    scores: list[float] = field(default_factory=_zeros)

    def add_all(
        self, t_G: NDArray[np.float64], c_G: NDArray[np.float64], outcome_G: NDArray[np.float64]
    ) -> None:
        """G games; `outcome_G` is that of the player who is ahead by `t_G`, which may be below
        0.
        """
        at_G = np.minimum((np.abs(t_G) / BIN).astype(np.int64), BINS - 1)
        score_G = np.where(t_G < 0.0, 1.0 - outcome_G, outcome_G)
        columns = (np.ones_like(t_G), outcome_G == 0.5, np.abs(t_G), 1.0 / c_G, score_G)
        for sums, column_G in zip(self.sums(), columns, strict=True):
            sums[:] = (
                np.array(sums) + np.bincount(at_G, weights=column_G, minlength=BINS)
            ).tolist()

    def since(self, earlier: PredictionRecord) -> PredictionRecord:
        """What came in after `earlier`, a copy of this one from then."""
        pairs = zip(self.sums(), earlier.sums(), strict=True)
        return PredictionRecord(
            *([x - y for x, y in zip(now, then, strict=True)] for now, then in pairs)
        )

    def copy(self) -> PredictionRecord:
        return PredictionRecord(*(list(sums) for sums in self.sums()))

    @property
    def total(self) -> int:
        """Games in all."""
        return int(sum(self.games))

    def sums(self) -> tuple[list[float], ...]:
        """The lists themselves: games, draws, gaps, narrowness, scores."""
        return self.games, self.draws, self.gaps, self.narrowness, self.scores
