"""A log with rows in every table, and copies of it in which one byte of one cell is another."""

from __future__ import annotations

import random
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from exploiter_league import MIXES, exploiter_league, wins_always
from ratings_league import pair
from small_league import SmallLeague, played

from league.players import Book, Pairing
from league.stages import Place, Stage
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import folding
from matchmaker.store.rows import checksum

SETTINGS = MatchmakerSettings(mixes=MIXES)
MOVED = {"lease_deadline", "lease_limit"}
"""Columns that every start writes again."""


def lived(folder: Path) -> Path:
    """A closed log: matches of every kind, lost, late, expired and failed ones, gates, folds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folding, "FEWEST", 10)
        with exploiter_league(folder) as league:
            small, client = league.small, league.client
            _trains(small)
            generation = league.begin()
            league.to_the_end(league.freeze(generation, 500), wins_always)
            league.play(league.freeze(generation, 900), wins_always, 2)
            pairing = Pairing(
                player="main@1000", opponent="based", pairs=1, book=Book.GREEDY, seed=4
            )
            client.acquire_pairings(league.evaluator, [pairing])
            pair(small, "main@2000", "random", 2, worker="evaluator-1")
            small.server.sweep()
            small.server.league.store_fold(1)
            small.play(small.open(checkpoint=12), 4)
    return folder / "league.db"


def _trains(small: SmallLeague) -> None:
    client, number = small.client, small.open()
    client.heartbeat(number, 1, 500, "league", "rollout", {"rate/steps_per_second": 3.0})
    stages = [Stage(name=name, mix="league", max_steps=100) for name in ("all", "more")]
    client.enter_stage(number, 500, stages, Place(index=0, since_step=500))
    client.ask_stage("more", "anna", "main")
    small.play(number, 12)
    late, failed, released, carried, _ = client.acquire_matches(number, 5, "league")
    client.release_matches(number, [released.match_id], "not wanted")
    small.clock.advance(400.0)
    small.server.sweep()
    client.report_results(number, [played(late), played(failed)])
    client.pin_rating("random", 12.0, "anna")
    client.quarantine("based", "doubtful", "anna")
    client.release_player("based", "anna")
    small.open(checkpoint=10, carried=[carried.match_id])


class Log:
    """A log and its cells."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            db.row_factory = sqlite3.Row
            tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            self.rows = {
                name: [dict(row) for row in db.execute(f"SELECT rowid AS _row, * FROM {name}")]
                for (name,) in tables
                if not name.startswith(("sqlite_", "_"))
            }

    def damage(self, copy: Path, seed: int) -> str:
        """Writes a copy in which a byte of a cell is another; returns what was changed."""
        rng = random.Random(seed)
        while True:
            shutil.copy(self.path, copy)
            table = rng.choice(sorted(self.rows))
            row = rng.choice(self.rows[table])
            column = rng.choice([name for name in row if name != "_row"])
            changed = _changed(row[column], rng)
            if changed is None:
                continue
            place = "CAST(? AS TEXT)" if isinstance(row[column], str) else "?"
            update = f"UPDATE {table} SET {column} = {place} WHERE rowid = ?"
            try:
                with _opened(copy) as db:
                    db.execute(update, [changed, row["_row"]])
            except sqlite3.IntegrityError:
                continue  # two rows of one key
            return f"{table}.{column} of row {row['_row']}: {row[column]!r} -> {changed!r}"

    def rewrite(self, copy: Path, table: str, where: str, column: str, value: Any) -> None:
        """Writes a copy with another value in the first such row, whose checksum agrees."""
        shutil.copy(self.path, copy)
        with _opened(copy) as db:
            first = f"SELECT min(rowid) FROM {table} WHERE {where}"
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ({first})", [value])
            for name, rows in {table: f"SELECT rowid, * FROM {table}", "results": RESULTS}.items():
                for key, *values, _ in db.execute(rows).fetchall():
                    covered = values[:-5] if name == "assignments" else values
                    update = f"UPDATE {name} SET crc = ? WHERE rowid = ?"
                    db.execute(update, [checksum(covered), key])


RESULTS = """
SELECT r.position, r.position, r.ordinal, r.event_position, r.incarnation, outcome, frames, failed,
failure, finished_at, received_at, late, step0, step1, end_step0, end_step1, stats_json, match_id,
seat0, seat1, book, category, r.crc FROM results r JOIN assignments USING (ordinal)"""


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Append-only tables may be changed meanwhile."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA synchronous = OFF")
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = db.execute(query).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        yield db
        for _, sql in triggers:
            db.execute(sql)


def _changed(value: Any, rng: random.Random) -> Any:
    """The value with one byte changed; None where that is impossible."""
    kind = {int: ">q", float: ">d"}.get(type(value))
    body = struct.pack(kind, value) if kind else str(value or "").encode()
    changed = bytearray(value if isinstance(value, bytes) else body)
    if not changed:
        return None
    changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
    if not kind:
        return bytes(changed)
    (number,) = struct.unpack(kind, changed)
    return None if number != number else number  # SQLite has no NaN
