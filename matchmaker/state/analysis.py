"""Reads analyses of the league from the log's events. An analysis lists the snapshots in the
league's Nash mixture. `acts.analyse` makes the analyses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from league.players import Event

EVENT = "analysis"


@dataclass(frozen=True)
class Analysis:
    """Lists the snapshots with a share of the Nash mixture, which was computed from `matches` clean
    matches (both players frozen).
    """

    matches: int = 0
    support: frozenset[str] = frozenset()


NO_ANALYSIS = Analysis()


def analysis_of(event: Event) -> Analysis:
    """Reads an analysis from its event."""
    data = json.loads(event.data_json)
    return Analysis(data["matches"], frozenset(data["support"]))
