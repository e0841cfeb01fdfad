"""The league as it was: players, books and shares at a moment of its log.

A moment is a position among the results and one among the events. Results that a later restart
marked as lost counted then, so they count here.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any

from league.errors import InvalidInput
from league.players import Book, Event, Player, PlayerState
from matchmaker.state.books import MARK_KINDS, Books, Mark, epoch_data, marks_of
from matchmaker.store.base import Reader
from matchmaker.store.rows import ResultRow

LEAST_SECONDS = 1_000_000_000
"""Whole numbers from here on are Unix seconds (of 2001 and later), smaller ones log positions."""


@dataclass(frozen=True)
class Moment:
    """`at`: Unix seconds."""

    log_position: int
    event_position: int
    at: float


def moment_of(reader: Reader, words: str) -> Moment:
    """The moment that a person means: an ISO time (UTC unless it says otherwise), Unix seconds, or
    a log position, right behind that result.

    Raises:
        InvalidInput: it is none of these, or the league holds nothing of then.
    """
    if words.isdecimal() and int(words) < LEAST_SECONDS:
        return _behind(reader, int(words))
    at = _seconds(words)
    events = reader.select("SELECT max(position) FROM events WHERE at <= :at", at=at)[0][0]
    if events is None:
        first = reader.select("SELECT min(at) FROM events")[0][0]
        since = (
            ""
            if first is None
            else f" ({datetime.fromtimestamp(first, UTC):%Y-%m-%dT%H:%M:%S+00:00})"
        )
        raise InvalidInput(f"{words} is before the league began{since}: give a later time")
    results = reader.select("SELECT max(position) FROM results WHERE received_at <= :at", at=at)[0][
        0
    ]
    return Moment(results or 0, events, at)


def _seconds(words: str) -> float:
    try:
        seconds = float(words)
        if math.isfinite(seconds) and seconds >= LEAST_SECONDS:
            return seconds
    except ValueError:
        try:
            when = datetime.fromisoformat(words)
            return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
        except ValueError:
            pass
    raise InvalidInput(
        f"{words!r} is no moment: give a time as 2026-11-21T14:00, Unix seconds, or a log position"
    )


def _behind(reader: Reader, position: int) -> Moment:
    """Right behind that result, before anything else happened."""
    newest, last_event, _ = reader.positions()
    if not 1 <= position <= newest:
        raise InvalidInput(f"there is no log position {position}: the log holds 1 to {newest}")
    ((at,),) = reader.select(
        "SELECT received_at FROM results WHERE position <= :position ORDER BY position DESC LIMIT 1",
        position=position,
    )
    ((after,),) = reader.select(  # events of older versions tell no log position
        "SELECT min(position) FROM events WHERE kind NOT IN ('result', 'results') "
        "AND ifnull(json_extract(data_json, '$.log_position') >= :position, at > :at)",
        position=position,
        at=at,
    )
    return Moment(position, last_event if after is None else after - 1, at)


def results_at(reader: Reader, moment: Moment, after: int = 0) -> Iterator[ResultRow]:
    """The results behind position `after` up to then, in commit order, as they counted then."""
    opened = dict(reader.select("SELECT number, event_position FROM incarnations"))
    for row in reader.results(after, moment.log_position):
        if row.lost_by is not None and opened[row.lost_by] > moment.event_position:
            row = row._replace(lost_by=None)
        yield row


def is_lost(reader: Reader, row: ResultRow, moment: Moment | None) -> bool:
    """Whether a restart had taken a result back by then; without a moment, whether one has."""
    if row.lost_by is None or moment is None:
        return row.lost_by is not None
    restart = reader.incarnation(row.lost_by)
    return restart is not None and restart.event_position <= moment.event_position


def books_at(reader: Reader, moment: Moment, begin: Books | None = None) -> Books:
    """Ratings and payoffs as they were, folded on from `begin`, which knows nothing of later."""
    books = begin or Books()
    events = (e for e in reader.events_of(*MARK_KINDS) if e.position <= moment.event_position)
    books.follow(results_at(reader, moment, books.log_position), marks_of(events))
    books.log_position, books.event_position = moment.log_position, moment.event_position
    return books


class PastPlayers:
    """Who was there in the state of then, as events in the order of the log tell it."""

    def __init__(self, reader: Reader) -> None:
        self.players: dict[str, Player] = {}
        self._without: dict[str, PlayerState] = {}
        self._now = {player.name: player for player in reader.players()}

    def take(self, event: Event) -> None:
        """Goes on by one event, one of `PLAYER_EVENTS`."""
        data = json.loads(event.data_json)
        name = data["candidate"] if event.kind in _OF_GATES else data["player"]
        player = self.players.get(name) or self._entered(name)
        if event.kind == "player_registered":
            player = replace(player, milestone=bool(data.get("milestone")))
        elif event.kind == "milestone":
            player = replace(player, milestone=True)
        elif event.kind == "player_quarantined":
            if name not in self.players:  # it entered before events told of that
                self._without[name] = PlayerState(data["was"])
            player = replace(player, state=PlayerState.QUARANTINED)
        elif event.kind == "player_released":
            player = replace(player, state=self._without[name])
        else:
            self._without[name] = _state_by(event.kind, data)
            if player.state is not PlayerState.QUARANTINED:
                player = replace(player, state=self._without[name])
        self.players[name] = player

    def without_quarantine(self, name: str) -> PlayerState:
        """The state that a player is in when its quarantine ends."""
        return self._without[name]

    def _entered(self, name: str) -> Player:
        self._without[name] = PlayerState.ACTIVE
        return replace(self._now[name], milestone=False, state=PlayerState.ACTIVE)


def past_players(reader: Reader, event_position: int | None = None) -> PastPlayers:
    """The events up to a position taken, or all."""
    past = PastPlayers(reader)
    for event in reader.events_of(*PLAYER_EVENTS):
        if event_position is None or event.position <= event_position:
            past.take(event)
    return past


def players_at(reader: Reader, moment: Moment) -> list[Player]:
    """Who was there, in order of registration, in the state of then."""
    return list(past_players(reader, moment.event_position).players.values())


_OF_GATES = ("gate_opened", "gate_decided")
_QUARANTINE = ("player_quarantined", "player_released")
PLAYER_EVENTS = (
    "player_registered",
    "player_retired",
    "player_returned",
    "milestone",
    *_QUARANTINE,
    *_OF_GATES,
)
"""Kinds of events that change who is there, or in which state."""


def _state_by(kind: str, data: Mapping[str, Any]) -> PlayerState:
    """The state that an event put its player in."""
    if kind == "gate_opened":
        return PlayerState.CANDIDATE
    left = kind == "player_retired" or (kind == "gate_decided" and data["state"] != "accepted")
    return PlayerState.RETIRED if left else PlayerState.ACTIVE


def ordinal_at(reader: Reader, moment: Moment) -> int:
    """Of the newest match that had been handed out."""
    query = "SELECT ifnull(max(ordinal), 0) FROM assignments WHERE assigned_at <= :at"
    return int(reader.select(query, at=moment.at)[0][0])


def drawn_at(reader: Reader, moment: Moment) -> dict[tuple[str, str, str], int]:
    """Matches drawn by then, by (player, mix, category)."""
    rows = reader.select(
        "SELECT i.player, a.mix, a.category, count(*) FROM assignments a "
        "JOIN incarnations i ON i.number = a.incarnation "
        "WHERE a.mix != '' AND a.replaces = '' AND a.assigned_at <= :at GROUP BY 1, 2, 3",
        at=moment.at,
    )
    return {(player, mix, category): count for player, mix, category, count in rows}


def wrong_epochs(reader: Reader) -> list[str]:
    """A sentence for each epoch of which the log, as it counted then, gives other numbers.

    Folds the results once, and once more for each restart that took results back between two
    epochs.
    """
    marks = marks_of(reader.events_of(*MARK_KINDS))
    measured = [mark for mark in marks if "sharpness" in mark.data]
    losses = [row[0] for row in reader.select(LOSSES)]
    findings = []
    for _, epochs in groupby(measured, key=lambda mark: bisect_left(losses, mark.event_position)):
        findings += _wrong_among(reader, marks, list(epochs))
    return findings


LOSSES = (
    "SELECT DISTINCT i.event_position FROM lost_results l JOIN incarnations i ON i.number = l.incarnation "
    "ORDER BY 1"
)
"""Positions of the events at which restarts took results back."""


def _wrong_among(reader: Reader, marks: Sequence[Mark], epochs: Sequence[Mark]) -> list[str]:
    """Of epochs between which no restart took results back."""
    books, findings, since = Books(), [], 0
    rows = results_at(reader, Moment(epochs[-1].log_position, epochs[-1].event_position, math.inf))
    ahead: list[ResultRow] = []
    for epoch in epochs:
        part = [mark for mark in marks if since < mark.event_position < epoch.event_position]
        books.follow(until(rows, epoch.log_position, ahead), part)
        found = books.tables[Book(epoch.data["book"])].next_epoch(epoch.log_position)
        given = {} if found is None else epoch_data(found)
        if given.items() - epoch.data.items() or not given:
            findings.append(
                f"the epoch of the {epoch.data['book']} book behind log position {epoch.log_position} is not "
                f"what the log gives: {given or 'none is due there'}"
            )
        since = epoch.event_position - 1
    return findings


def until(rows: Iterator[ResultRow], position: int, ahead: list[ResultRow]) -> Iterator[ResultRow]:
    """Rows up to a position; the one behind it, which was read to know, waits in `ahead`."""
    for row in chain([ahead.pop()] if ahead else [], rows):
        if row.position > position:
            ahead.append(row)
            return
        yield row
