"""Copies a league's log, as it is now (for a backup) or as it was at an earlier moment."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlite_utils import Database

from league.errors import AlreadyExists, DataCorrupt, InvalidInput
from league.players import PlayerState
from matchmaker.store.faults import as_league_errors
from matchmaker.store.schema import APPLICATION_ID, migrations
from matchmaker.store.sqlite import SqliteStore, locked
from matchmaker.store.transaction import Reader, Transaction

FIRST_SECOND = 1_000_000_000
"""Whole numbers from this number on are Unix seconds (2001 and later). Smaller whole numbers are
log positions.
"""
PlayerStates = dict[str, tuple[PlayerState, bool]]
"""State by player, and whether the player is a milestone."""
_STATES = {
    "player_registered": PlayerState.ACTIVE,
    "player_retired": PlayerState.RETIRED,
    "player_returned": PlayerState.ACTIVE,
    "player_quarantined": PlayerState.QUARANTINED,
    "gate_opened": PlayerState.CANDIDATE,
}

_PAST = """
INSERT INTO meta SELECT * FROM past.meta;
INSERT INTO heartbeats SELECT * FROM past.heartbeats
  WHERE at <= :at AND incarnation IN (SELECT number FROM incarnations);
INSERT INTO draws SELECT * FROM past.draws WHERE event_position <= :event;
INSERT INTO policies SELECT * FROM past.policies
  WHERE at <= :at OR hash IN (SELECT policy_hash FROM draws);
INSERT INTO assignments SELECT ordinal, match_id, lease_token, a.incarnation, assigned_at, seat0,
  seat1, learner_seat, book, seed, category, mix, replaces, draw, draw_seed, probability,
  CASE WHEN r.event_position <= :event THEN 'reported'
       WHEN r.position IS NOT NULL THEN iif(r.late AND lease_deadline <= :at, 'expired', 'open')
       WHEN closed_at <= :at THEN lease_state ELSE 'open' END AS state,
  lease_deadline, lease_limit, closed_at, close_reason, a.crc
  FROM past.assignments a LEFT JOIN past.results r USING (ordinal)
  WHERE assigned_at <= :at OR r.event_position <= :event;
UPDATE assignments SET closed_at = NULL, close_reason = '' WHERE lease_state = 'open';
INSERT INTO results SELECT * FROM past.results WHERE event_position <= :event;
INSERT INTO lost_results SELECT * FROM past.lost_results
  WHERE incarnation IN (SELECT number FROM incarnations);
INSERT INTO events SELECT * FROM past.events WHERE position <= :event;
INSERT INTO folds SELECT * FROM past.folds WHERE event_position <= :event
  AND log_position <= (SELECT ifnull(max(position), 0) FROM results)
"""


def backup(database: Path, copy: Path) -> int:
    """Copies a log, which may be written meanwhile, to a new file. Returns the position of the
    copy's newest result.

    Raises:
        AlreadyExists: `copy` exists.
        InvalidInput: the folder of `copy` does not exist.
    """
    message = f"{copy} is there already: name another file, or move it away"
    if copy.exists():
        raise AlreadyExists(message)
    if not copy.parent.is_dir():
        raise InvalidInput(f"{copy} can't be written: there is no folder {copy.parent}")
    with tempfile.TemporaryDirectory(dir=copy.parent, prefix=f".{copy.name}-") as folder:
        draft = Path(folder) / "copy"
        with _opened(database) as store, as_league_errors(copy):
            store.vacuum_into(draft)
        with _opened(draft) as store, store.read() as reader:
            results = reader.positions()[0]
        try:
            os.link(draft, copy)  # never overwrites a file that appeared meanwhile
        except FileExistsError:
            raise AlreadyExists(message) from None
    return results


def restore(copy: Path, database: Path) -> tuple[int, Path | None]:
    """Puts a copy made by `backup` in the place of `database`. Returns the position of the newest
    result, and the new path of the replaced log (None if there was no log).

    Raises:
        Refused: a matchmaker has the log open.
        DataCorrupt: the copy is damaged.
    """
    with _opened(copy) as store, store.read() as reader:
        results = reader.positions()[0]
        broken = [row[0] for row in reader.select("PRAGMA integrity_check") if row[0] != "ok"]
        for damage in broken or reader.unverified().damaged_rows():
            raise DataCorrupt(f"{copy} is damaged ({damage}): restore another copy")
    database = database.resolve()
    aside = database.parent / f"replaced-{datetime.now():%Y%m%d-%H%M%S-%f}"
    replaced = aside / database.name if database.exists() else None
    with (
        as_league_errors(database),
        os.fdopen(locked(database)),
        tempfile.TemporaryDirectory(dir=database.parent, prefix=".restore-") as folder,
    ):
        draft = Path(folder) / "copy"
        with _opened(copy) as store:
            store.vacuum_into(draft)
        if replaced is not None:
            aside.mkdir()
            os.link(database, replaced)  # so that a crash never leaves the run without a log
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    database.with_name(database.name + ending).rename(f"{replaced}{ending}")
        draft.replace(database)
    return results, replaced


@contextmanager
def _opened(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, read_only=True)) as store:
        yield store


class Moment(NamedTuple):
    """Marks the moment right after an event of the log. `at` is in Unix seconds."""

    event_position: int
    at: float


def moment_of(reader: Reader, words: str) -> Moment:
    """Finds a moment of the league.

    Args:
        words: an ISO time (UTC by default), a time in Unix seconds, or a log position, which means
            the moment just after it.

    Raises:
        InvalidInput: `words` is not a moment, or the moment is before the league began.
    """
    if words.isdecimal() and int(words) < FIRST_SECOND:
        position = int(words)
        moments = reader.select(
            "SELECT event_position, received_at FROM results WHERE position = :position",
            position=position,
        )
        if not moments:
            newest = reader.positions()[0]
            raise InvalidInput(f"there is no log position {position}: the log holds 1 to {newest}")
        return Moment(*moments[0])
    at = _seconds(words)
    ((event, first),) = reader.select(
        "SELECT max(position) FILTER (WHERE at <= :at), min(at) FROM (SELECT position, at "
        "FROM events UNION ALL SELECT event_position, received_at FROM results)",
        at=at,
    )
    if event is None:
        begin = (
            "" if first is None else f" ({datetime.fromtimestamp(first, UTC):%Y-%m-%dT%H:%M:%S})"
        )
        raise InvalidInput(f"{words} is before the league began{begin}: give a later time")
    return Moment(event, at)


def _seconds(words: str) -> float:
    try:
        seconds = float(words)
        if math.isfinite(seconds) and seconds >= FIRST_SECOND:
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


def copy_as_of(database: Path, copy: Path, words: str) -> float:
    """Copies the part of a league's log up to a moment. The copy opens like any other log.

    A log keeps only the newest heartbeat of each start of a worker. If this heartbeat came after
    the moment, the worker's activity is missing in the copy.

    Args:
        database: the log.
        copy: a new file.
        words: the moment, as for `moment_of`.
    """
    with _opened(database) as store, store.read() as reader:
        moment = moment_of(reader, words)
        states = player_states(reader, moment.event_position)
        players = [player for player in reader.players() if player.name in states]
        workers = reader.incarnations(moment.event_position)
    with as_league_errors(copy), closing(Database(copy, execute_plugins=False)) as db:
        migrations.apply(db)
        db.attach("past", database)
        values = {"event": moment.event_position, "at": moment.at}
        with db.atomic():
            tx = Transaction(db)
            for player in players:
                state, is_milestone = states[player.name]
                tx.add_player(replace(player, state=state, milestone=is_milestone))
            newest = max((row.number for row in workers), default=0)
            for row in workers:
                is_fenced = row.fenced_by is not None and row.fenced_by <= newest
                tx.add_incarnation(row if is_fenced else row._replace(fenced_by=None))
            for statement in _PAST.split(";\n"):
                db.execute(statement, values)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    return moment.at


def player_states(reader: Reader, event_position: int | None = None) -> PlayerStates:
    """Computes the players' states from the log's events up to a position, or from all events."""
    states: PlayerStates = {}
    for event in reader.events_of(*_STATES, "player_released", "milestone", "gate_decided"):
        if event_position is not None and event.position > event_position:
            break
        data = json.loads(event.data_json)
        name = data["candidate" if event.kind.startswith("gate_") else "player"]
        state, is_milestone = states.get(name, (PlayerState.ACTIVE, False))
        if event.kind == "gate_decided":
            is_accepted = data["state"] == "accepted"
            state = PlayerState.ACTIVE if is_accepted else PlayerState.RETIRED
        elif event.kind == "player_released":
            state = PlayerState(data["state"])
        else:
            state = _STATES.get(event.kind, state)
        is_milestone = is_milestone or event.kind == "milestone" or bool(data.get("milestone"))
        states[name] = state, is_milestone
    return states
