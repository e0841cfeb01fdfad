"""What another policy would have drawn at each point of a real run's log.

The log is gone through in order: at a draw the books hold the results that it knew of, and the players are
those of then. A draw's matches count as often as they were handed out.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from league.cluster.finding import checked_run, database_of
from league.errors import InvalidInput
from league.players import Player, PlayerState
from matchmaker.books import MARK_KINDS, Books, marks_of
from matchmaker.clustering import EVENT, newest_clustering
from matchmaker.drawing import DrawTable, draw_table, draw_table_of
from matchmaker.history import LOSSES, Moment, results_at, until
from matchmaker.settings import MatchmakerSettings
from matchmaker.store.base import Reader
from matchmaker.store.rows import ResultRow
from matchmaker.store.sqlite import SqliteStore

_CALLS = (
    "SELECT draw, count(*) FROM assignments WHERE mix != '' AND replaces = '' GROUP BY draw ORDER BY draw"
)
_DRAWN = """
SELECT a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END, count(*)
FROM assignments a WHERE a.mix != '' AND a.replaces = '' AND a.draw IN ({}) GROUP BY 1, 2
"""
_STATES = {"player_retired": PlayerState.RETIRED, "player_returned": PlayerState.ACTIVE}


class Row(NamedTuple):
    """Shares of the matches: as drawn, as the run's policy said, and by the other one."""

    name: str
    drawn: float
    policy_of_run: float
    other_policy: float


@dataclass
class Replayed:
    """Matches of the draws that were looked at: as drawn, as their policy said, by the other one."""

    draws: int
    matches: int
    drawn: Counter[tuple[str, str]]
    written: dict[tuple[str, str], float]
    other: dict[tuple[str, str], float]

    def shares(self, by: int) -> list[Row]:
        """Of categories (by = 0) or opponents (1), whom the run played most first."""
        found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        columns: tuple[Mapping[tuple[str, str], float], ...] = (self.drawn, self.written, self.other)
        for place, counts in enumerate(columns):
            for key, count in counts.items():
                found[key[by]][place] += count / self.matches
        rows = [Row(name, *shares) for name, shares in found.items()]
        return sorted(rows, key=lambda row: (-row.drawn, -row.other_policy, row.name))

    @property
    def distance(self) -> float:
        """Share of the matches that the other policy would have given to others."""
        keys = self.written.keys() | self.other.keys()
        return sum(abs(self.written.get(k, 0.0) - self.other.get(k, 0.0)) for k in keys) / 2.0 / self.matches


def replayed(run: Path, settings: MatchmakerSettings, points: int) -> Replayed:
    """The other policy at `points` of the run's draws, evenly spread, or at all of them if there are fewer.

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
    calls = reader.select(_CALLS)
    if not calls:
        raise InvalidInput("no opponent was drawn in this league yet: name a run whose learners have played")
    step = max(1.0, len(calls) / points)
    chosen = [calls[int(place * step)] for place in range(min(points, len(calls)))]
    written: dict[tuple[str, str], float] = defaultdict(float)
    other: dict[tuple[str, str], float] = defaultdict(float)
    past = _Past(reader)
    for number, count in chosen:
        row = reader.draw(number)
        assert row is not None
        body = json.loads(row.body_json)
        past.move_to(row.log_position, row.event_position)
        _add(written, draw_table_of(row.body_json), count)
        learner = past.players[body["player"]]
        _add(
            other,
            draw_table(settings, learner, body["mix"], past.players, past.books.tables, past.clustering),
            count,
        )
    numbers = ", ".join(str(number) for number, _ in chosen)
    drawn = Counter({(category, name): n for category, name, n in reader.select(_DRAWN.format(numbers))})
    return Replayed(len(chosen), drawn.total(), drawn, dict(written), dict(other))


def _add(found: dict[tuple[str, str], float], table: DrawTable, count: int) -> None:
    for category, share in zip(table.shares.names, table.shares.probabilities, strict=True):
        within = table.within[category]
        for name, part in zip(within.names, within.probabilities, strict=True):
            found[category, name] += count * share * part


class _Past:
    """The league as its log had it up to a result and an event; it only moves on."""

    def __init__(self, reader: Reader) -> None:
        self.players: dict[str, Player] = {}
        self._reader = reader
        self._registered = {player.name: player for player in reader.players()}
        self._marks = marks_of(reader.events_of(*MARK_KINDS))
        self._states = reader.events_of("player_registered", *_STATES)
        self._clusterings = reader.events_of(EVENT)
        self._losses = [row[0] for row in reader.select(LOSSES)]
        self._event_position = 0
        self._begin(0)

    def _begin(self, event_position: int) -> None:
        """The books from the first result on, with those counted that had not been taken back by then."""
        self.books, self._marked, self._ahead = Books(), 0, list[ResultRow]()
        self._rows = results_at(self._reader, Moment(sys.maxsize, event_position, math.inf))

    def move_to(self, log_position: int, event_position: int) -> None:
        """`log_position` and `event_position` are those that a draw tells, or later ones."""
        if any(self._event_position < loss <= event_position for loss in self._losses):
            self._begin(event_position)
        marks = [mark for mark in self._marks if self._marked < mark.event_position <= event_position]
        self.books.follow(until(self._rows, log_position, self._ahead), marks)
        for event in self._states:
            if self._event_position < event.position <= event_position:
                name = json.loads(event.data_json)["player"]
                state = _STATES.get(event.kind, PlayerState.ACTIVE)
                self.players[name] = replace(self._registered[name], state=state)
        self.clustering = newest_clustering(e for e in self._clusterings if e.position <= event_position)
        self._marked = self._event_position = event_position
