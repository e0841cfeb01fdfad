"""Reads the league for the pages, and caches the values for all viewers."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from league.errors import LeagueError, NotFound, Unavailable
from league.evaluations import OpponentScore, Report
from league.gates import CandidateGate
from league.players import Book, Event, MatchLine, MatchRecord, PayoffCell, Player, Rating
from league.population import Population
from league.rpc.client import MatchmakerClient
from league.runs.finding import live_address
from league.status import LeagueStatus
from league.views.dashboard.jobs import ExploitJob
from league.views.facts import LeagueFacts
from league.views.reader import LeagueReader

if TYPE_CHECKING:  # numpy takes a moment to load
    from league.games.base import GameSpec
    from league.replay.highlights import Highlight
    from league.runs.records import Series

MIX_SECONDS = 60.0
"""Longest time for a count over the whole log, and the time for which the count is kept."""
BEHIND = 0.5
"""Delay in seconds before a thread reads a value for which no page waits."""
FIRST_LOOK_SECONDS = 5.0
READ_SECONDS = 3.0
"""Seconds that a page waits for a matchmaker that doesn't answer, before it reports this."""
FORGOTTEN = 60.0
"""Seconds for which an expired value is kept in the cache."""
MATCH_SECONDS = 3600.0
"""Seconds for which a match with a result is kept, because it doesn't change any more."""
SCORES_SECONDS = 60.0
"""Seconds for which an evaluation's counts by opponent are kept."""
SCALARS_SECONDS = 60.0
"""Seconds for which a reader of TensorBoard's files is kept after its last use."""
EVENTS = 200
"""Number of events to keep."""
T = TypeVar("T")


@dataclass
class _Kept:
    """Holds a cached value, and the time until which it is valid."""

    value: Any = None
    until: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)


class Source:
    """Reads values of a league, and shares them between all viewers.

    Args:
        client: a client of its matchmaker.
        run_dir: the run's folder, or None for a league on another machine. Without the folder,
            there are no curves and replays.
        beside: folders of other runs. Their curves can be shown next to the curves of this run.
        title: title of the pages.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        *,
        run_dir: Path | None = None,
        beside: Sequence[Path] = (),
        title: str = "",
    ) -> None:
        self.client, self.run_dir, self.title = client, run_dir, title
        self.beside = beside
        self._reading = MatchmakerClient(
            client.address, wait_seconds=READ_SECONDS, credentials=client.credentials
        )
        self._reader = LeagueReader(
            client.address,
            None,
            lambda *_, **__: None,  # the log has more detailed events
            client.credentials,
            leading="learner-main",
            since=0.0,
        )
        self._kept: dict[Hashable, _Kept] = {}
        self._lock = threading.Lock()
        self._is_read = False
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._event_position = 0
        self.exploiting = ExploitJob(run_dir)

    def close(self) -> None:
        """Ends the threads and processes of this source."""
        self._reader.stop()
        self.exploiting.close()
        self._reading.close()

    @property
    def facts(self) -> LeagueFacts:
        """The league as last read. The first use starts the reading."""
        with self._lock:
            if not self._is_read:
                self._is_read = True
                self._reader.start()
                self._reader.look_again(FIRST_LOOK_SECONDS)
        return self._reader.facts

    def kept(
        self, key: Hashable, seconds: float, read: Callable[[], T], *, behind: bool = False
    ) -> T:
        """Returns a cached value that is at most `seconds` old. If it is older, one caller reads
        the value again, and the other callers wait.

        Args:
            key: the value's key in the cache.
            seconds: how long the value is valid.
            read: reads the value.
            behind: whether only the first caller waits. All later callers get the last value, even
                if it is too old. In that case, a thread reads a new value shortly after the page
                was answered.
        """
        now = time.monotonic()
        with self._lock:
            for old in [
                name for name, cached in self._kept.items() if cached.until < now - FORGOTTEN
            ]:
                if not self._kept[old].lock.locked():
                    del self._kept[old]
            cached = self._kept.setdefault(key, _Kept())
        if behind and cached.until > -math.inf:
            if cached.until < now and not cached.lock.locked():
                later = threading.Timer(BEHIND, self._renew, (cached, seconds, read))
                later.daemon = True
                later.start()
            return cast(T, cached.value)
        return cast(T, self._renew(cached, seconds, read))

    @staticmethod
    def _renew(cached: _Kept, seconds: float, read: Callable[[], Any]) -> Any:
        with cached.lock:
            if cached.until < time.monotonic():
                cached.value = read()
                cached.until = time.monotonic() + seconds
            return cached.value

    def spec(self) -> GameSpec | None:
        """Returns the spec of the run's game, None if it is not known here."""
        return self.kept("spec", MATCH_SECONDS, self._read_spec)

    def _read_spec(self) -> GameSpec | None:
        if self.run_dir is None or not (self.run_dir / "config.toml").is_file():
            return None
        from league.games.settings import GameSettings
        from league.settings.base import resolve

        settings = resolve(file=self.run_dir / "config.toml", environment={}).of(GameSettings)
        try:
            return settings.spec()
        except LeagueError:  # its package or its server is not here
            return None

    def status(self) -> LeagueStatus:
        return self.kept("status", 1.0, self._reading.status)

    def events(self) -> list[Event]:
        """Returns the newest events except results, the newest first."""
        return self.kept("events", 2.0, self._read_events)

    def _read_events(self) -> list[Event]:
        """Adds the log's events since the last call, and returns the newest events."""
        last = self.status().vitals.event_position
        after = max(self._event_position, last - 10 * EVENTS, 0)
        if last > after:
            for event in self._reading.watch(after):
                if event.kind != "result":
                    self._events.append(event)
                if event.position >= last:
                    break
            self._event_position = last
        return list(self._events)[::-1]

    def players(self) -> dict[str, Player]:
        """Returns all players by name, in the order of their registration."""
        return self.kept(
            "players", 3.0, lambda: {player.name: player for player in self._reading.players()}
        )

    def player(self, name: str) -> Player:
        """Returns the player of this name, or raises `NotFound`."""
        try:
            return self.players()[name]
        except KeyError:
            raise NotFound(f"There is no player {name[:80]!r} in this league.") from None

    def ratings(self, book: Book) -> list[Rating]:
        """Returns the ratings by the matches of a book (training, clean or greedy), best first."""
        return self.kept(("ratings", book), 3.0, lambda: self._reading.ratings(book))

    def payoff(
        self,
        book: Book,
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        *,
        with_stats: bool = False,
    ) -> list[PayoffCell]:
        """Returns the counts of the pairs that have met (`MatchmakerClient.payoff`)."""
        key, client = ("payoff", book, rows, columns, with_stats), self._reading
        return self.kept(
            key, 3.0, lambda: client.payoff(book, rows, columns, with_stats=with_stats)
        )

    def population(self) -> Population:
        """Returns the mains that compare themselves with each other, and the copies so far."""
        return self.kept("population", 3.0, lambda: self._reading.population())

    def gates(self) -> list[CandidateGate]:
        """Returns the gates (tests of candidates) with their certificates, the oldest first."""
        return self.kept("gates", 3.0, lambda: self._reading.gates(certificates=True))

    def matches(self, **asked: Any) -> tuple[list[MatchLine], int]:
        """Returns a page of matches, and the position at which older matches begin
        (`MatchmakerClient.matches`).
        """
        key = ("matches", *asked.items())
        return self.kept(key, 2.0, lambda: self._reading.matches(**asked))

    def match(self, match_id: str) -> MatchRecord:
        """Returns a match, or raises `NotFound`."""
        key = ("match", match_id)
        record = self.kept(key, 2.0, lambda: self._reading.match(match_id))
        if record.result is not None:
            with self._lock:
                self._kept[key].until = time.monotonic() + MATCH_SECONDS
        return record

    def replays(self) -> dict[str, Path]:
        """Returns the run's replays by match id, the newest first."""
        return self.kept("replays", 5.0, self._read_replays)

    def _read_replays(self) -> dict[str, Path]:
        files: list[tuple[float, Path]] = []
        for path in self.run_dir.glob("replays/*.replay") if self.run_dir else ():
            with contextlib.suppress(FileNotFoundError):  # the file has just been removed
                files.append((path.stat().st_mtime, path))
        return {path.stem: path for _, path in sorted(files, reverse=True)}

    def highlights(self) -> list[Highlight]:
        """Returns the matches that people should see first, the newest first."""
        return self.kept("highlights", 2.0, self._read_highlights)

    def _read_highlights(self) -> list[Highlight]:
        from league.replay.highlights import read_highlights

        return read_highlights(self.run_dir)[::-1] if self.run_dir else []

    def shown(self) -> Highlight | None:
        """Returns the newest live match that has a replay, else the newest other highlight."""
        kept = self.replays()
        found = [one for one in self.highlights() if one.match_id in kept]
        return next((one for one in found if one.kind == "live"), next(iter(found), None))

    def is_served(self) -> bool:
        """Returns whether a matchmaker serves the run's own log, so that the run can go on."""
        folder = self.run_dir
        return bool(self.kept("live address", 5.0, lambda: folder and live_address(folder)))

    def met(self, player: str) -> list[dict[str, Any]]:
        """Counts a learner's opponents by quarter of its steps, as `bin/league mix --json` does."""
        return self.kept(("met", player), MIX_SECONDS, lambda: self._count_met(player))

    def _count_met(self, player: str) -> list[dict[str, Any]]:
        """Runs the command in a process, because `league` doesn't import the matchmaker's package.
        The process doesn't block the pages, and is killed after `MIX_SECONDS`.
        """
        command = [sys.executable, "-m", "league", "mix", "--json", "--player", player]
        try:
            done = subprocess.run(
                [*command, "--run-dir", str(self.run_dir)],
                capture_output=True,
                text=True,
                timeout=MIX_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"The log is too long to be counted within {MIX_SECONDS:.0f} s: use bin/league mix."
            ) from None
        except subprocess.CalledProcessError as error:
            raise NotFound(error.stderr.strip().rpartition("\n")[2] or "it failed") from None
        return list(json.loads(done.stdout)["parts"])

    def scalars(self, folder: Path) -> Mapping[str, Series]:
        """Returns the scalars of a folder with TensorBoard's files. While pages ask for them, only
        those that were added are read.
        """
        from league.runs.records import ScalarReader

        reader = self.kept(("scalars", folder), SCALARS_SECONDS, lambda: ScalarReader(folder))
        with self._lock:
            self._kept["scalars", folder].until = time.monotonic() + SCALARS_SECONDS
        return reader.read()

    def reports(self) -> list[Report]:
        """Returns the requested evaluations in the order of the requests."""
        return self.kept("reports", 2.0, self._reading.reports)

    def scores(self, report: Report) -> tuple[OpponentScore, ...]:
        """Returns an evaluation's scores by opponent. They are read again after new matches."""
        number = report.evaluation.number
        key = ("report", number, report.matches_done)
        return self.kept(key, SCORES_SECONDS, lambda: self._reading.report(number)).scores
