"""What the evaluator remembers across restarts: a small SQLite file beside its report.

The matchmaker's log is the truth about results. The journal adds what the log has no column for:
the plan of each gauntlet, which seed and seat a match filled, and the numbers of the report. A
match is written here as *pending* before it is reported and settled by the matchmaker's verdict, so
that after a kill -9 every pending match can be asked after, and none is counted twice or played
again for nothing.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evaluator.strategy import Entry, Slot
from league.errors import DataCorrupt, StorageFull, Unavailable, VersionMismatch
from league.players import Book

OPEN, DONE, SKIPPED = "open", "done", "skipped"

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE gauntlets (
        player TEXT PRIMARY KEY, digest TEXT NOT NULL, milestone INTEGER NOT NULL,
        plan_json TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '');
    CREATE TABLE requests (place INTEGER PRIMARY KEY AUTOINCREMENT, player TEXT NOT NULL UNIQUE);
    CREATE TABLE matches (
        match_id TEXT PRIMARY KEY, player TEXT NOT NULL, opponent TEXT NOT NULL, book TEXT NOT NULL,
        pair INTEGER NOT NULL, seat INTEGER NOT NULL, outcome REAL NOT NULL, frames INTEGER NOT
        NULL, stats_json TEXT NOT NULL, opponent_stats_json TEXT NOT NULL, finished_at REAL NOT
        NULL, accepted INTEGER NOT NULL);
    CREATE INDEX matches_by_players ON matches (player, opponent, book);
    """,
)
"""Append-only: entry i brings a journal from version i to i + 1."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A finished gauntlet match from the side of `player`; `outcome` is 1 win, 0.5 draw, 0 loss
    for it.
    """

    match_id: str
    player: str
    slot: Slot
    outcome: float
    frames: int
    finished_at: float
    stats: Mapping[str, float] = field(default_factory=dict)
    opponent_stats: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Gauntlet:
    """The plan of one snapshot's gauntlet and how far it is: open, done or skipped (`reason`
    says why).
    """

    player: str
    digest: str
    milestone: bool
    plan: tuple[Entry, ...]
    state: str = OPEN
    reason: str = ""


def _plan_json(plan: Sequence[Entry]) -> str:
    return json.dumps([[e.opponent, e.book.value, e.matches] for e in plan])


def _gauntlet(row: tuple) -> Gauntlet:
    player, digest, milestone, plan_json, state, reason = row
    plan = tuple(
        Entry(opponent, Book(book), matches) for opponent, book, matches in json.loads(plan_json)
    )
    return Gauntlet(player, digest, bool(milestone), plan, state, reason)


def _played(row: tuple) -> Played:
    (
        match_id,
        player,
        opponent,
        book,
        pair,
        seat,
        outcome,
        frames,
        stats,
        opponent_stats,
        finished_at,
    ) = row
    return Played(
        match_id=match_id,
        player=player,
        slot=Slot(opponent, Book(book), pair, seat),
        outcome=outcome,
        frames=frames,
        finished_at=finished_at,
        stats=json.loads(stats),
        opponent_stats=json.loads(opponent_stats),
    )


_COLUMNS = "pair, seat, outcome, frames, stats_json, opponent_stats_json, finished_at"
_MIRRORED = "pair, 1 - seat, 1.0 - outcome, frames, opponent_stats_json, stats_json, finished_at"


class Journal:
    """The file at `path`, made when missing. Usable from several threads; a return means: on disk.

    Raises `DataCorrupt` when the file is no journal, `VersionMismatch` when a newer program wrote
    it, `StorageFull` when the disk is full.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._lock = threading.RLock()
        try:
            self._db = sqlite3.connect(
                path, check_same_thread=False, isolation_level=None, timeout=10
            )
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._migrate()
        except sqlite3.DatabaseError as error:
            raise self._explained(error) from None

    def _explained(self, error: sqlite3.DatabaseError) -> Exception:
        text = str(error)
        if "full" in text:
            return StorageFull(
                f"the disk is full: {self._path} can't grow; free some space and start again"
            )
        if "locked" in text:
            return Unavailable(f"{self._path} is in use by another evaluator: stop that one first")
        return DataCorrupt(
            f"{self._path} can't be read as the evaluator's journal ({text}): move it away"
        )

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise VersionMismatch(
                f"{self._path} has version {version}, this evaluator knows {len(MIGRATIONS)}: use a newer one"
            )
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            self._db.executescript(f"BEGIN; {script}; PRAGMA user_version = {number}; COMMIT;")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except sqlite3.DatabaseError as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise self._explained(error) from None

    def _read(self, query: str, values: Sequence[object] = ()) -> list[tuple]:
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def close(self) -> None:
        """Twice is fine."""
        with self._lock:
            self._db.close()

    # --- gauntlets
    # ---------------------------------------------------------------------------------

    def gauntlets(self) -> dict[str, Gauntlet]:
        """All of them by player."""
        rows = self._read(
            "SELECT player, digest, milestone, plan_json, state, reason FROM gauntlets"
        )
        return {row[0]: _gauntlet(row) for row in rows}

    def write(self, gauntlet: Gauntlet) -> None:
        """Opens, finishes or skips a gauntlet; what is finished is no longer requested."""
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO gauntlets VALUES (?, ?, ?, ?, ?, ?)",
                (
                    gauntlet.player,
                    gauntlet.digest,
                    int(gauntlet.milestone),
                    _plan_json(gauntlet.plan),
                    gauntlet.state,
                    gauntlet.reason,
                ),
            )
            if gauntlet.state != OPEN:
                db.execute("DELETE FROM requests WHERE player = ?", (gauntlet.player,))

    def forget(self, player: str) -> None:
        """Removes a gauntlet and its player's matches: they belonged to other weights or another
        league.
        """
        with self._transaction() as db:
            db.execute("DELETE FROM gauntlets WHERE player = ?", (player,))
            db.execute("DELETE FROM matches WHERE player = ? OR opponent = ?", (player, player))

    def request(self, player: str) -> None:
        """Puts `player` before all that were requested earlier, at the head."""
        with self._transaction() as db:
            db.execute("DELETE FROM requests WHERE player = ?", (player,))
            db.execute("INSERT INTO requests (player) VALUES (?)", (player,))

    def requests(self) -> list[str]:
        """Players asked for by hand, the newest request first."""
        return [row[0] for row in self._read("SELECT player FROM requests ORDER BY place DESC")]

    # --- matches
    # -----------------------------------------------------------------------------------

    def record(self, matches: Iterable[Played]) -> None:
        """Keeps finished matches as pending, before they are reported."""
        rows = [
            (
                m.match_id,
                m.player,
                m.slot.opponent,
                m.slot.book.value,
                m.slot.pair,
                m.slot.seat,
                m.outcome,
                m.frames,
                json.dumps(dict(m.stats)),
                json.dumps(dict(m.opponent_stats)),
                m.finished_at,
            )
            for m in matches
        ]
        with self._transaction() as db:
            db.executemany("INSERT OR IGNORE INTO matches VALUES (?,?,?,?,?,?,?,?,?,?,?,0)", rows)

    def settle(self, accepted: Iterable[str], refused: Iterable[str]) -> None:
        """Takes the matchmaker's verdicts: accepted matches count, refused ones never were."""
        with self._transaction() as db:
            db.executemany(
                "UPDATE matches SET accepted = 1 WHERE match_id = ?", [(m,) for m in accepted]
            )
            db.executemany("DELETE FROM matches WHERE match_id = ?", [(m,) for m in refused])

    def pending(self) -> list[str]:
        """Matches that were to be reported when the evaluator died."""
        return [row[0] for row in self._read("SELECT match_id FROM matches WHERE accepted = 0")]

    def matches(self, player: str, opponent: str, book: Book) -> list[Played]:
        """Accepted matches of the two from `player`'s side, whichever's gauntlet they belonged
        to.
        """
        rows = self._read(
            f"SELECT match_id, ?1, ?2, ?3, {_COLUMNS} FROM matches"
            " WHERE accepted AND player = ?1 AND opponent = ?2 AND book = ?3"
            f" UNION ALL SELECT match_id, ?1, ?2, ?3, {_MIRRORED} FROM matches"
            " WHERE accepted AND player = ?2 AND opponent = ?1 AND book = ?3",
            (player, opponent, book.value),
        )
        return [_played(row) for row in rows]

    def done_slots(self, player: str, opponent: str, book: Book) -> set[tuple[int, int]]:
        """(pair, seat of `player`) of the accepted matches of the two."""
        return {(m.slot.pair, m.slot.seat) for m in self.matches(player, opponent, book)}
