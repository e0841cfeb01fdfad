"""Reads analyses of the league from the log's events. An analysis holds the snapshots' shares of
the league's Nash mixture. `acts.analyse` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from league.players import Event

EVENT = "analysis"


@dataclass(frozen=True)
class Analysis:
    """Holds the Nash mixture that was computed from `matches` clean matches.

    Attributes:
        support: snapshots with a share of the mixture.
        shares: share of every snapshot that had clean matches, 0 outside the support. Events of
            older versions have no shares.
    """

    matches: int = 0
    support: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=dict)

    def share(self, name: str) -> float:
        """Returns a player's share. A player that had no clean matches counts as average."""
        return self.shares.get(name, 1.0 / max(len(self.shares), 1))


NO_ANALYSIS = Analysis()


def analysis_of(event: Event) -> Analysis:
    """Reads an analysis from its event."""
    data = json.loads(event.data_json)
    return Analysis(data["matches"], frozenset(data["support"]), data.get("shares", {}))
