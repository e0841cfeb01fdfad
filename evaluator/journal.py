"""What the evaluator remembers across restarts: a small SQLite file next to its report.

The matchmaker's log is the truth about results; the journal adds gauntlets' plans and the report's
numbers. A match is *pending* here before it is reported, until the matchmaker's verdict settles it:
after a kill -9 the evaluator asks about pending matches, and counts and plays none twice.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from league.errors import DataCorrupt, StorageFull, Unavailable
from league.players import Book

OPEN, DONE, SKIPPED = "open", "done", "skipped"


@dataclass(frozen=True)
class Entry:
    """One line of a gauntlet: `matches` (in all, even) against `opponent` in `book`."""

    opponent: str
    book: Book
    matches: int


@dataclass(frozen=True)
class Slot:
    """One match of a gauntlet: each pair has its own seed, `seat` is the evaluated player's."""

    opponent: str
    book: Book
    pair: int
    seat: int


@dataclass(frozen=True)
class Gauntlet:
    """The plan of one snapshot's gauntlet and its state: open, done or skipped for a reason."""

    player: str
    digest: str
    milestone: bool
    plan: tuple[Entry, ...]
    state: str = OPEN
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A finished match from the side of `player`; its outcome is 1 win, 0.5 draw, 0 loss."""

    match_id: str
    player: str
    opponent: str
    book: Book
    pair: int
    seat: int
    outcome: float
    frames: int
    finished_at: float
    stats: Mapping[str, float] = field(default_factory=dict)
    opponent_stats: Mapping[str, float] = field(default_factory=dict)


class Journal:
    """The file at `path`, made when missing. Threads may share it; a return means: on disk."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, threading.RLock()
        connection = sqlite3.connect(path, check_same_thread=False, timeout=10)
        with self._errors_explained():
            self._db = Database(connection)
            self._db.enable_wal()
            self._db.execute("PRAGMA synchronous = FULL")
            self._create_tables()

    def _create_tables(self) -> None:
        text = dict.fromkeys(("player", "digest", "plan", "state", "reason"), str)
        self._db.table("gauntlets").create(
            text | {"milestone": int}, pk="player", if_not_exists=True
        )
        self._db.table("requests").create(
            {"place": int, "player": str}, pk="place", if_not_exists=True
        )
        text = dict.fromkeys(("match_id", "player", "opponent", "book"), str)
        text |= {"stats": str, "opponent_stats": str}
        numbers = dict.fromkeys(("pair", "seat", "frames", "accepted"), int)
        columns = text | numbers | {"outcome": float, "finished_at": float}
        matches = self._db.table("matches")
        matches.create(columns, pk="match_id", not_null=set(columns), if_not_exists=True)
        matches.create_index(["player", "opponent", "book"], if_not_exists=True)

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "full" in text:
                raise StorageFull(f"the disk is full: {self._path} can't grow") from None
            if "locked" in text:
                raise Unavailable(f"{self._path} is in use by another evaluator") from None
            raise DataCorrupt(
                f"{self._path} can't be read as the evaluator's journal ({text}): move it away"
            ) from None

    @contextmanager
    def _write(self) -> Iterator[Database]:
        with self._lock, self._errors_explained(), self._db.atomic():
            yield self._db

    def _rows(self, table: str, where: str = "", /, **values: object) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._db.table(table).rows_where(where or None, values))

    def close(self) -> None:
        """Twice is fine."""
        with self._lock:
            self._db.close()

    # --- gauntlets

    def gauntlets(self) -> dict[str, Gauntlet]:
        """All of them by player."""
        found = {}
        for row in self._rows("gauntlets"):
            entries = json.loads(row["plan"])
            plan = tuple(Entry(name, Book(book), matches) for name, book, matches in entries)
            row |= {"plan": plan, "milestone": bool(row["milestone"])}
            found[row["player"]] = Gauntlet(**row)
        return found

    def write(self, gauntlet: Gauntlet) -> None:
        """Opens, finishes or skips a gauntlet; a finished one is no longer requested."""
        plan = [[entry.opponent, entry.book.value, entry.matches] for entry in gauntlet.plan]
        with self._write() as db:
            db.table("gauntlets").upsert(vars(gauntlet) | {"plan": plan}, pk="player")
            if gauntlet.state != OPEN:
                db.table("requests").delete_where("player = ?", [gauntlet.player])

    def forget(self, player: str) -> None:
        """Removes a gauntlet and its player's matches: they are of other weights or leagues."""
        with self._write() as db:
            db.table("gauntlets").delete_where("player = ?", [player])
            db.table("matches").delete_where("player = :p OR opponent = :p", {"p": player})

    def request(self, player: str) -> None:
        """Puts `player` ahead of all earlier requests."""
        with self._write() as db:
            db.table("requests").delete_where("player = ?", [player])
            db.table("requests").insert({"player": player})

    def requests(self) -> list[str]:
        """Requested players, the newest request first."""
        rows = sorted(self._rows("requests"), key=lambda row: -row["place"])
        return [row["player"] for row in rows]

    # --- matches

    def record(self, matches: Iterable[Played]) -> None:
        """Keeps finished matches as pending, before they are reported."""
        rows = [
            vars(match)
            | {"book": match.book.value, "accepted": 0}
            | {"stats": dict(match.stats), "opponent_stats": dict(match.opponent_stats)}
            for match in matches
        ]
        with self._write() as db:
            db.table("matches").insert_all(rows, ignore=True)

    def settle(self, accepted: Iterable[str], refused: Iterable[str]) -> None:
        """Applies the matchmaker's verdicts: accepted matches count, refused ones are removed."""
        with self._write() as db:
            for match_id in accepted:
                db.execute("UPDATE matches SET accepted = 1 WHERE match_id = ?", [match_id])
            for match_id in refused:
                db.table("matches").delete_where("match_id = ?", [match_id])

    def pending(self) -> list[str]:
        """Matches that were to be reported when the evaluator died."""
        return [row["match_id"] for row in self._rows("matches", "accepted = 0")]

    def matches(self, player: str, opponent: str, book: Book) -> list[Played]:
        """Accepted matches of the two from `player`'s side, of either one's gauntlet."""
        both = "accepted AND book = :book AND player = :player AND opponent = :opponent"
        own = self._rows("matches", both, book=book.value, player=player, opponent=opponent)
        others = self._rows("matches", both, book=book.value, player=opponent, opponent=player)
        return [_played(row) for row in own] + [
            replace(
                match,
                player=player,
                opponent=opponent,
                seat=1 - match.seat,
                outcome=1.0 - match.outcome,
                stats=match.opponent_stats,
                opponent_stats=match.stats,
            )
            for match in map(_played, others)
        ]

    def done_slots(self, player: str, opponent: str, book: Book) -> set[tuple[int, int]]:
        """(pair, seat of `player`) of the accepted matches of the two."""
        return {(match.pair, match.seat) for match in self.matches(player, opponent, book)}


def _played(row: dict[str, Any]) -> Played:
    del row["accepted"]
    read = {name: json.loads(row[name]) for name in ("stats", "opponent_stats")}
    return Played(**row | read | {"book": Book(row["book"])})
