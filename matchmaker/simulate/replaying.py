"""What another policy would have drawn at each point of a real run's log.

The log is gone through in order: at a draw the books hold the results that it knew of, and the
players are those of then. A draw's matches count as often as they were handed out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from league.errors import InvalidInput
from league.runs.finding import checked_run, database_of
from matchmaker.sampling.draw import DrawTable, draw_table_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.past import DRAWN, Past, evenly
from matchmaker.store.base import Reader
from matchmaker.store.sqlite import SqliteStore

_CALLS = f"SELECT a.draw, count(*) FROM assignments a WHERE {DRAWN} GROUP BY a.draw ORDER BY a.draw"
_DRAWN_OF = f"""
SELECT a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END, count(*)
FROM assignments a WHERE {DRAWN} AND a.draw IN ({{}}) GROUP BY 1, 2
"""


class Row(NamedTuple):
    """Shares of the matches: as drawn, as the run's policy said, and by the other one."""

    name: str
    drawn: float
    policy_of_run: float
    other_policy: float


@dataclass
class Replayed:
    """Matches of the draws that were looked at: as drawn, as their policy said, by the other
    one.
    """

    draws: int
    matches: int
    drawn: Counter[tuple[str, str]]
    written: dict[tuple[str, str], float]
    other: dict[tuple[str, str], float]

    def shares(self, by: int) -> list[Row]:
        """Of categories (by = 0) or opponents (1), whom the run played most first."""
        found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        columns: tuple[Mapping[tuple[str, str], float], ...] = (
            self.drawn,
            self.written,
            self.other,
        )
        for place, counts in enumerate(columns):
            for key, count in counts.items():
                found[key[by]][place] += count / self.matches
        rows = [Row(name, *shares) for name, shares in found.items()]
        return sorted(rows, key=lambda row: (-row.drawn, -row.other_policy, row.name))

    @property
    def distance(self) -> float:
        """Share of the matches that the other policy would have given to others."""
        keys = self.written.keys() | self.other.keys()
        return (
            sum(abs(self.written.get(k, 0.0) - self.other.get(k, 0.0)) for k in keys)
            / 2.0
            / self.matches
        )


def replayed(run: Path, settings: MatchmakerSettings, points: int) -> Replayed:
    """The other policy at `points` of the run's draws, evenly spread, or at all of them if there
    are fewer.

    Raises:
        NotFound: no league there, or the policy lacks a mix that its learners asked for.
        InvalidInput: nothing was drawn in it.
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
    chosen = evenly(list(calls), points)
    written: dict[tuple[str, str], float] = defaultdict(float)
    other: dict[tuple[str, str], float] = defaultdict(float)
    past = Past(reader)
    for number in chosen:
        row = reader.draw(number)
        assert row is not None
        past.move_to(row)
        _add(written, draw_table_of(row.body_json), calls[number])
        _add(other, past.draw_table(settings, json.loads(row.body_json)), calls[number])
    numbers = ", ".join(map(str, chosen))
    drawn = Counter(
        {(category, name): n for category, name, n in reader.select(_DRAWN_OF.format(numbers))}
    )
    return Replayed(len(chosen), drawn.total(), drawn, dict(written), dict(other))


def _add(found: dict[tuple[str, str], float], table: DrawTable, count: int) -> None:
    for category, share in zip(table.shares.names, table.shares.probabilities, strict=True):
        within = table.within[category]
        for name, part in zip(within.names, within.probabilities, strict=True):
            found[category, name] += count * share * part
