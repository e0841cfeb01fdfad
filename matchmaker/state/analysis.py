"""What the newest analysis of the league found: an event of the log, made by `acts.analyse`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.players import Event

EVENT = "analysis"


@dataclass(frozen=True)
class Analysis:
    """One analysis, of `matches` clean ones, with its event's position: the cluster of each
    near-copy, and the snapshots with mass in the Nash mixture.
    """

    position: int = 0
    matches: int = 0
    cluster: Mapping[str, int] = field(default_factory=dict)
    support: frozenset[str] = frozenset()

    def parts(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Returns each player's part of one weight: 1 alone, ½ with one near-copy in `names`."""
        numbers = [self.cluster.get(name) for name in names]
        sizes = Counter(numbers)
        return np.array([1.0 if number is None else 1.0 / sizes[number] for number in numbers])


NO_ANALYSIS = Analysis()


def analysis_of(event: Event) -> Analysis:
    """Reads an analysis from its event."""
    data = json.loads(event.data_json)
    cluster = {name: number for number, names in enumerate(data["clusters"]) for name in names}
    return Analysis(event.position, data["matches"], cluster, frozenset(data["support"]))
