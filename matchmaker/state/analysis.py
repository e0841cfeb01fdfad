"""What the newest analysis of the league found: an event of the log, made by `acts.analyse`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from league.players import Event

EVENT = "analysis"


@dataclass(frozen=True)
class Analysis:
    """One analysis, of `matches` clean ones: the snapshots with mass in the Nash mixture."""

    matches: int = 0
    support: frozenset[str] = frozenset()


NO_ANALYSIS = Analysis()


def analysis_of(event: Event) -> Analysis:
    """Reads an analysis from its event."""
    data = json.loads(event.data_json)
    return Analysis(data["matches"], frozenset(data["support"]))
