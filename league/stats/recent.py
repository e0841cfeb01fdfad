"""Weights a learner's results by their age, because the learner changes and old results say little
about its present strength.

A match of a learner against an opponent counts for

    2^(−Δ/h) · (1 − 1/m)^k,  h = 100,000 steps, m = 100 matches

where Δ is the number of steps that the learner has made since the match, and k is the number of
later matches of the same two players. So a learner with few steps and many matches, as in a small
game, also forgets old matches.

A snapshot's neighbours in its lineage are similar to it. A match against a neighbour that is d
steps away counts for e^(−d/r) of a match against the snapshot itself, with r = 200,000 steps. All
neighbours together count for at most 30 matches, so they can't outweigh a long series of matches
against the snapshot itself.

docs/league.md has measurements from a run of `laptop` and from simulated learners.

Shapes: N opponents in a query, K opponents that the learner met, L opponents of a lineage in the
query, M opponents of the same lineage that the learner met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidName
from league.ids import SnapshotName

Array = NDArray[np.float64]
HALF_LIFE_STEPS = 100_000
MEMORY_MATCHES = 100
REACH_STEPS = 200_000
MOST_FROM_NEIGHBOURS = 30.0
"""Largest number of matches for which all neighbours of a snapshot together count."""
_KEPT = 1.0 - 1.0 / MEMORY_MATCHES


@dataclass(slots=True)
class _Cell:
    """Holds a learner's number of matches against an opponent and the sum of its margins. Each
    match is weighted by its age when the learner was at `step`.
    """

    step: int
    games: float = 0.0
    margins: float = 0.0


class RecentScores:
    """Keeps the weighted matches of every learner against every opponent.

    The margin of a match is the learner's payoff minus its opponent's, or in games without payoffs
    1 for a win and −1 for a loss. A score is ½ + margin / (2 · stake), where the stake is the mean
    size of the margins other than 0. In games without payoffs scores are 1, ½ and 0.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, _Cell]] = defaultdict(dict)
        self._steps: dict[str, int] = {}
        self._stakes = 0.0
        self._decided = 0

    def add(self, learner: str, opponent: str, margin: float, step: int) -> None:
        """Counts a match of a learner.

        Args:
            learner, opponent: names of the players.
            margin: the learner's margin.
            step: the learner's steps when the match began.
        """
        row = self._rows[learner]
        cell = row.get(opponent)
        if cell is None:
            cell = row[opponent] = _Cell(step)
        decay = _KEPT
        if step > cell.step:
            decay *= 0.5 ** ((step - cell.step) / HALF_LIFE_STEPS)
            cell.step = step
        cell.games = cell.games * decay + 1.0
        cell.margins = cell.margins * decay + margin
        if step > self._steps.get(learner, -1):
            self._steps[learner] = step

    def add_stake(self, margin: float) -> None:
        """Adds the absolute value of a match's margin to the mean size of margins, the stake. The
        caller adds each match once, even if both players learn.
        """
        if margin:
            self._stakes += abs(margin)
            self._decided += 1

    @property
    def stake(self) -> float:
        """Returns the mean size of the margins other than 0, or 1 before the first such margin."""
        return self._stakes / self._decided if self._decided else 1.0

    def evidence(self, learner: str, names: Sequence[str]) -> tuple[Array, Array]:
        """Estimates a learner's present score against each of N opponents from its matches.

        Args:
            learner: the learner.
            names: N opponents.

        Returns:
            Two arrays of shape N: the weighted numbers of matches, including matches against
            neighbours, and the weighted sums of the scores in these matches. A sum lies between 0
            and the opponent's number of matches.
        """
        row, now = self._rows.get(learner, {}), self._steps.get(learner, 0)
        sums = {
            name: (cell.games * weight, cell.margins * weight)
            for name, cell in row.items()
            if (weight := 0.5 ** ((now - cell.step) / HALF_LIFE_STEPS)) > 1e-3
        }
        sums_N2 = np.array([sums.get(name, (0.0, 0.0)) for name in names]).reshape(-1, 2)
        met, asked = _by_lineage(list(sums)), _by_lineage(names)
        sums_K2 = np.array(list(sums.values()))
        for lineage in met.keys() & asked.keys():
            places, steps_L = asked[lineage]
            others, steps_M = met[lineage]
            gaps_LM = np.abs(steps_L[:, None] - steps_M[None, :])
            sums_L2 = np.where(gaps_LM > 0.0, np.exp(-gaps_LM / REACH_STEPS), 0.0) @ sums_K2[others]
            games_L1 = sums_L2[:, :1]
            sums_N2[places] += (
                sums_L2 * MOST_FROM_NEIGHBOURS / np.maximum(games_L1, MOST_FROM_NEIGHBOURS)
            )
        games_N, margins_N = sums_N2.T
        points_N = np.clip(games_N / 2.0 + margins_N / (2.0 * self.stake), 0.0, games_N)
        return games_N, points_N

    def state(self) -> dict[str, Any]:
        """Returns all values in a form that JSON keeps to the last bit."""
        return {
            "rows": {
                learner: {name: astuple(cell) for name, cell in row.items()}
                for learner, row in self._rows.items()
            },
            "steps": dict(self._steps),
            "stakes": [self._stakes, self._decided],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> RecentScores:
        """Returns the scores from which `state` was taken."""
        scores = cls()
        for learner, row in state["rows"].items():
            scores._rows[learner] = {name: _Cell(*values) for name, values in row.items()}
        scores._steps = dict(state["steps"])
        scores._stakes, scores._decided = state["stakes"]
        return scores


def _by_lineage(names: Sequence[str]) -> dict[str, tuple[list[int], Array]]:
    """Groups snapshots by lineage. Returns, for each lineage, the positions of its snapshots in
    `names` and their steps.
    """
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for index, name in enumerate(names):
        snapshot = _snapshot(name)
        if snapshot is not None:
            places, steps = groups[snapshot.lineage]
            places.append(index)
            steps.append(snapshot.step)
    return {
        lineage: (places, np.array(steps, np.float64))
        for lineage, (places, steps) in groups.items()
    }


@lru_cache(maxsize=8192)
def _snapshot(name: str) -> SnapshotName | None:
    try:
        return SnapshotName.parse(name)
    except InvalidName:
        return None
