"""What another policy would have drawn at each point of a real run's log.

At each draw the books hold the results that it knew, and the players are those of that moment. A
draw counts as often as matches were assigned by it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from league.errors import InvalidInput
from league.runs.finding import checked_run, database_of
from matchmaker.sampling.draw import DrawTable, draw_table, draw_table_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.replay import LogReplay
from matchmaker.store.sqlite import SqliteStore
from matchmaker.store.transaction import Reader

DRAWN = "a.mix != '' AND a.replaces = ''"
"""SQL: an assignment was drawn from a mix, and not carried over a restart."""
_CALLS = f"SELECT a.draw, count(*) FROM assignments a WHERE {DRAWN} GROUP BY a.draw ORDER BY a.draw"
_DRAWN_OF = f"""
SELECT a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END, count(*)
FROM assignments a WHERE {DRAWN} AND a.draw IN ({{}}) GROUP BY 1, 2
"""
_Counts = dict[tuple[str, str], float]
"""Matches by category and opponent."""


class Row(NamedTuple):
    """Shares of the matches: as drawn, by the run's policy, and by the other one."""

    name: str
    drawn: float
    policy_of_run: float
    other_policy: float


@dataclass
class Replayed:
    """Matches of the draws that were compared: as drawn, by their policy, by the other one."""

    draws: int
    matches: int
    drawn: _Counts
    recorded: _Counts
    other: _Counts

    def shares(self, by: int) -> list[Row]:
        """Returns shares of categories (by = 0) or opponents (1), the most played first."""
        found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for place, counts in enumerate((self.drawn, self.recorded, self.other)):
            for key, count in counts.items():
                found[key[by]][place] += count / self.matches
        rows = [Row(name, *shares) for name, shares in found.items()]
        return sorted(rows, key=lambda row: (-row.drawn, -row.other_policy, row.name))

    @property
    def distance(self) -> float:
        """Share of the matches that the other policy would have given to other opponents."""
        keys = self.recorded.keys() | self.other.keys()
        moved = sum(abs(self.recorded.get(k, 0.0) - self.other.get(k, 0.0)) for k in keys)
        return moved / 2.0 / self.matches


def replayed(run: Path, settings: MatchmakerSettings, points: int) -> Replayed:
    """Draws again by other settings at up to `points` of the run's draws, evenly spread.

    Raises:
        NotFound: no league is there, or the settings lack a mix that its learners asked for.
        InvalidInput: no opponent was drawn in the run.
    """
    store = SqliteStore(database_of(checked_run(run)), read_only=True)
    try:
        with store.read() as reader:
            return _replayed(reader, settings, points)
    finally:
        store.close()


def _replayed(reader: Reader, settings: MatchmakerSettings, points: int) -> Replayed:
    calls: dict[int, int] = dict(reader.select(_CALLS))
    if not calls:
        raise InvalidInput(
            "no opponent was drawn in this league yet: name a run whose learners have played"
        )
    numbers_of_calls = list(calls)
    step = max(1.0, len(numbers_of_calls) / points)
    places = range(min(points, len(numbers_of_calls)))
    chosen = [numbers_of_calls[int(place * step)] for place in places]
    recorded: _Counts = defaultdict(float)
    other: _Counts = defaultdict(float)
    past = LogReplay(reader)
    for number in chosen:
        row = reader.draw(number)
        assert row is not None
        past.move_to(row.log_position, row.event_position)
        _add(recorded, draw_table_of(row.body_json), calls[number])
        drawn_from, players = json.loads(row.body_json), past.players
        table = draw_table(
            settings,
            players[drawn_from["player"]],
            drawn_from["mix"],
            players,
            past.books.tables,
            past.analysis,
            past.exploiters,
        )
        _add(other, table, calls[number])
    numbers = ", ".join(map(str, chosen))
    counts = reader.select(_DRAWN_OF.format(numbers))
    drawn = Counter({(category, name): count for category, name, count in counts})
    return Replayed(len(chosen), drawn.total(), dict(drawn), recorded, other)


def _add(found: _Counts, table: DrawTable, count: int) -> None:
    for category, share in zip(table.shares.names, table.shares.probabilities, strict=True):
        within = table.within[category]
        for name, part in zip(within.names, within.probabilities, strict=True):
            found[category, name] += count * share * part
