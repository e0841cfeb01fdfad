"""The evaluator's work: gates and gauntlets, one after the other, through one loop of matches."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluator.arena import Arena, Weights
from evaluator.queue import Counts, Entry, Queue, exploiters_to_meet, missing_pairs, next_gate
from evaluator.reports.replays import Recorder
from evaluator.reports.table import Report, make_row
from evaluator.settings import EvaluatorSettings
from league.errors import (
    DataCorrupt,
    Fenced,
    InvalidInput,
    LeagueError,
    NotFound,
    Refused,
    Unavailable,
)
from league.exploiters import CandidateGate, GateState
from league.games.base import BatchedGame
from league.players import (
    Assignment,
    Book,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    PlayerState,
    Role,
    Verdict,
)
from league.replay import Recipe
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder

UNPLAYABLE = (DataCorrupt, NotFound, InvalidInput)
"""What loading a snapshot raises when its file, card or digest is damaged; others continue."""
REPORT_SECONDS = 1.0
"""Finished matches are reported at most this long after they end."""
HEARTBEAT_SECONDS = 2.0
"""Well below the matchmaker's lease time."""
POLL_SECONDS = 1.0
"""Between looks for new snapshots while there is nothing to play."""
GATE_MATCHES = 32
"""Matches of a gate in play: most gates are decided by some 130."""
REFUSALS_IN_A_ROW = 3
"""Reports of which every result was refused, one after the other, before the evaluator gives up."""
REPLAYS_KEPT = 2000
"""Replays (a few kB each) that stay in the run's folder, the newest."""
Played = dict[tuple[str, Book], list[MatchResult]]
"""Results of one player's gauntlet by opponent and book."""
_log = logging.getLogger("evaluator")


# --- the matches of one gauntlet or gate


class Work:
    """Plays the matches of `player` in `arena`. Call `step` until `finished`, or `hand_back`."""

    def __init__(
        self, client: MatchmakerClient, incarnation: int, arena: Arena, player: str, at_once: int
    ) -> None:
        self._client, self._incarnation, self._arena = client, incarnation, arena
        self._player, self._at_once = player, min(at_once, arena.rows)
        self._in_play: set[str] = set()
        self._unreported: list[MatchResult] = []
        self._reported_at = time.monotonic()
        self.accepted = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left to be leased."""
        raise NotImplementedError

    @property
    def progress(self) -> dict[str, Any]:
        """What `Progress` shows of it."""
        raise NotImplementedError

    def _lease(self, room: int) -> list[Assignment]:
        """The next matches, at most `room`."""
        raise NotImplementedError

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Reports what has ended, perhaps nothing; returns how many results were accepted."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether all is played and reported."""
        return self.done and not self._in_play

    def step(self) -> None:
        """Fills free rows, plays one decision of every match, reports what is due."""
        room = min(self._at_once - len(self._in_play), self._arena.free)
        if not self.done and room >= max(2, self._at_once // 8):
            assignments = self._lease(room)
            self._in_play |= {assignment.match_id for assignment in assignments}
            self._arena.seat(assignments)
        if self._arena.busy:
            self._unreported += self._arena.step()
        is_due = self._unreported and time.monotonic() - self._reported_at >= REPORT_SECONDS
        if is_due or not self._arena.busy:
            self._report()

    def _report(self) -> None:
        results, self._unreported = self._unreported, []
        self._reported_at = time.monotonic()
        self._in_play -= {result.match_id for result in results}
        self.accepted += self._settle(results)

    def hand_back(self) -> int:
        """Reports what has ended and releases the rest; returns the number of leases released."""
        if self._unreported:
            self._report()
        return self._release("the evaluator stops")

    def _release(self, reason: str) -> int:
        match_ids, self._in_play = sorted(self._in_play), set()
        if not match_ids:
            return 0
        return self._client.release_matches(self._incarnation, match_ids, reason)

    def _reported(self, results: Sequence[MatchResult]) -> tuple[set[str], list[Verdict]]:
        """Reports results; returns the matches that were accepted, and the refusals."""
        verdicts, _ = self._client.report_results(self._incarnation, results)
        accepted = {v.match_id for v in verdicts if v.accepted or v.duplicate}
        refused = [v for v in verdicts if not (v.accepted or v.duplicate)]
        if refused:
            count, reason = len(refused), refused[0].reason
            _log.warning("the matchmaker refused %d results of %s: %s", count, self._player, reason)
        return accepted, refused


class GauntletWork(Work):
    """The missing pairs of a gauntlet. Accepted results are appended to `played` by opponent and
    book; after a refused one the gauntlet has to be planned again.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        incarnation: int,
        arena: Arena,
        player: str,
        pairs: Sequence[tuple[Entry, int]],
        total: int,
        played: Played,
    ) -> None:
        super().__init__(client, incarnation, arena, player, arena.rows)
        self._open, self._played = deque(pairs), played
        self._total, self._before = total, total - 2 * len(pairs)
        self._leased: dict[str, Entry] = {}
        self._refusals_in_a_row = 0
        self.refused = 0

    @property
    def done(self) -> bool:
        return not self._open

    @property
    def progress(self) -> dict[str, Any]:
        return {"matches_done": self._before + self.accepted, "matches_total": self._total}

    def _lease(self, room: int) -> list[Assignment]:
        pairs = [self._open.popleft() for _ in range(min(room // 2, len(self._open)))]
        pairings = [
            Pairing(
                player=self._player,
                opponent=entry.opponent,
                pairs=1,
                book=entry.book,
                seed=pair,  # common to all opponents and snapshots
            )
            for entry, pair in pairs
        ]
        leased = self._client.acquire_pairings(self._incarnation, pairings)
        for index, assignment in enumerate(leased):
            self._leased[assignment.match_id] = pairs[index // 2][0]
        return leased

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Raises `Refused` where every result of several reports in a row was refused."""
        if not results:
            return 0
        accepted, refused = self._reported(results)
        for result in results:
            entry = self._leased.pop(result.match_id)
            if result.match_id in accepted and not result.failed:
                self._played[entry.opponent, entry.book].append(result)
        self.refused += len(refused)
        self._refusals_in_a_row = 0 if accepted else self._refusals_in_a_row + 1
        if self._refusals_in_a_row >= REFUSALS_IN_A_ROW:
            raise Refused(
                f"the matchmaker refused every result of {self._refusals_in_a_row} reports in a "
                f"row, the last because {refused[-1].reason!r}: see its log"
            )
        return len(accepted)


class GateWork(Work):
    """The matches of a candidate's gate, which the log holds, until the matchmaker has decided."""

    def __init__(
        self, client: MatchmakerClient, incarnation: int, arena: Arena, gate: CandidateGate
    ) -> None:
        super().__init__(client, incarnation, arena, gate.candidate, GATE_MATCHES)
        self.gate = gate

    @property
    def done(self) -> bool:
        return self.gate.state is not GateState.OPEN

    @property
    def progress(self) -> dict[str, Any]:
        test = self.gate.playing
        if test is None:
            return {"gate": "its victims", "matches_done": 0}
        return {"gate": test.victim, "matches_done": test.matches}

    def _lease(self, room: int) -> list[Assignment]:
        return self._client.acquire_gate_matches(self._incarnation, self._player, room)

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Reports results and asks for the verdict."""
        accepted, _ = self._reported(results) if results else (set(), [])
        self.gate = self._client.decide_gate(self._incarnation, self._player)
        if self.done:
            self._release("the gate is decided")
        return len(accepted)


# --- the evaluator


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is being played now, for heartbeats and the service; `gate` is a gate's opponent."""

    current: str = ""
    matches_done: int = 0
    matches_total: int = 0
    waiting: int = 0
    matches_per_second: float = 0.0
    gate: str = ""

    @property
    def activity(self) -> str:
        """As heartbeats report it."""
        if not self.current:
            return "waiting for snapshots"
        if self.gate:
            return f"gate {self.current} {self.matches_done} against {self.gate}"
        return f"gauntlet {self.current} {self.matches_done}/{self.matches_total}"


class Evaluator:
    """Plays gates and gauntlets on `game` for all snapshots that the matchmaker knows.

    Call `open` once, then `run` until `stop` is set. Other threads may read `progress` and use
    `queue`. `recipe` names the game for replays; None keeps none.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        game: BatchedGame,
        run_dir: Path,
        settings: EvaluatorSettings,
        *,
        worker: str = "evaluator-0",
        stop: threading.Event | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self._client, self._game, self._worker = client, game, worker
        self._replays, self._recipe = run_dir / "replays", recipe
        self._weights = Weights(BlobFolder(run_dir / "blobs"), game.spec)
        self._report = Report(run_dir / "evaluator" / "evaluation_results.csv")
        self.queue = Queue(settings, [bot.name for bot in game.spec.bots])
        self._played: defaultdict[str, Played] = defaultdict(lambda: defaultdict(list))
        self.progress = Progress()
        self._frames = 0  # played by this process: the progress that keeps leases alive
        self._incarnation = 0
        self.stop = stop or threading.Event()
        self.fenced = False

    def open(self) -> None:
        """Warms the game up, begins a new incarnation, and resumes from the report."""
        self._game.reset(np.arange(self._game.num_matches, dtype=np.uint64))
        self._game.step(self._game.idle_actions())
        rows = self._report.rows()  # a report that can't be continued is an error now
        name, version = self._game.spec.name, self._game.spec.version
        opened = self._client.open_incarnation(self._worker, game_version=version)
        self._incarnation = opened.number
        self._client.register_players(
            Player(name=bot.name, game=name, kind=PlayerKind.BOT, held_out=bot.held_out)
            for bot in self._game.spec.bots
        )
        for name in self.queue.resume(rows, self._client.players(), self._counts()):
            _log.info("the matchmaker lacks matches of %s: it is evaluated again", name)

    def _cells(self, *rows: str) -> dict[tuple[str, str, Book], PayoffCell]:
        """What the log counts of these players, by default of all."""
        return {
            (cell.row, cell.column, book): cell
            for book in (Book.EVAL, Book.GREEDY)
            for cell in self._client.payoff(book, rows=rows)
        }

    def _counts(self, *rows: str) -> Counts:
        return {key: cell.games for key, cell in self._cells(*rows).items()}

    def run(self) -> None:
        """Works until `stop`. Raises `Fenced` when a newer evaluator of this name took over."""
        gauntlet_is_due = False
        with self._heartbeats():
            while not self.stop.is_set():
                gates = self._client.gates(open_only=True)
                players = {player.name: player for player in self._client.players()}
                waiting = self.queue.waiting(list(players.values()))
                gate = next_gate(gates, gauntlet_is_due and bool(waiting))
                gauntlet_is_due = gate is not None and not gate.is_exploiters
                left = len(gates) + len(waiting) - 1
                if gate is not None:
                    self.progress = Progress(current=gate.candidate, waiting=left)
                    self._play_gate(gate, players)
                elif waiting:
                    self.progress = Progress(current=waiting[0].name, waiting=left)
                    self._play_gauntlet(waiting[0], players)
                else:
                    self.progress = Progress()
                    self.stop.wait(POLL_SECONDS)
        if self.fenced:
            raise Fenced(f"a newer {self._worker} works for this league: this one stops")

    def _play_gate(self, gate: CandidateGate, players: Mapping[str, Player]) -> None:
        """Plays a gate to its end; gives it up when its candidate or a victim can't play."""
        candidate = players[gate.candidate]
        try:
            frame_skip = self._weights.card(candidate).frame_skip
            for test in gate.victims:
                problem = self._problem(players.get(test.victim), frame_skip)
                if problem:
                    raise InvalidInput(f"{test.victim} can't be met: {problem}")
            arena = self._arena(candidate, frame_skip)
            work = GateWork(self._client, self._incarnation, arena, gate)
            if self._play(work, arena):
                _log.info("the gate of %s", work.gate.outcome)
        except (*UNPLAYABLE, Refused) as error:
            if isinstance(error, Fenced):
                raise
            _log.error("the gate of %s is given up: %s", gate.candidate, error)
            self._client.release_matches(self._incarnation, reason="the gate is given up")
            self._client.give_up_gate(self._incarnation, gate.candidate, str(error)[:400])

    def _play_gauntlet(self, player: Player, players: Mapping[str, Player]) -> None:
        try:
            frame_skip = self._weights.card(player).frame_skip
        except UNPLAYABLE as error:
            _log.error("%s is skipped: %s", player.name, error)
            self.queue.skip(player)
            return
        counts = self._counts(player.name)
        exploiters: list[str] = []
        if player.role is Role.MAIN:
            exploiters = exploiters_to_meet(self._client.gates(), player)
        ratings = self._client.ratings(Book.EVAL)
        plan = self.queue.plan(player, list(players.values()), ratings, counts, exploiters)
        for name in dict.fromkeys(entry.opponent for entry in plan):
            problem = self._problem(players.get(name), frame_skip)
            if problem:
                _log.error("%s does not meet %s: %s", player.name, name, problem)
                plan = [entry for entry in plan if entry.opponent != name]
        matches = [f"{e.matches} {e.book.value} {e.opponent}" for e in plan]
        _log.info("gauntlet of %s: %s", player.name, ", ".join(matches) or "no opponents")
        recorder = None
        if self._recipe is not None:
            recorder = Recorder(self._replays, self._recipe, player.name, frame_skip, REPLAYS_KEPT)
        arena = self._arena(player, frame_skip, recorder)
        pairs = missing_pairs(player.name, plan, counts)
        total, played = sum(entry.matches for entry in plan), self._played[player.name]
        work = GauntletWork(
            self._client, self._incarnation, arena, player.name, pairs, total, played
        )
        try:
            if not self._play(work, arena) or work.refused:
                if self.stop.is_set() and not self.fenced:
                    self._put(player, plan, is_whole=False)
                return  # the next look plans what is missing
        except (Refused, NotFound, InvalidInput) as error:
            now = {p.name: p.state for p in self._client.players()}
            met = {player.name, *(entry.opponent for entry in plan)}
            left = any(n in players and now.get(n) is not players[n].state for n in met)
            if isinstance(error, Fenced) or not left:
                raise
            _log.warning("gauntlet of %s is planned again: %s", player.name, error)
            self._client.release_matches(self._incarnation, reason="the gauntlet is planned again")
            return
        self._put(player, plan, is_whole=True)
        del self._played[player.name]
        if player.role is Role.MAIN:
            self._client.review_exploiters(self._incarnation, player.name)
        self.queue.finish(player)
        _log.info("gauntlet of %s is complete", player.name)

    def _put(self, player: Player, plan: Sequence[Entry], *, is_whole: bool) -> None:
        """Writes the rows of a gauntlet, as far as it was played."""
        fps, cells = self._game.spec.frames_per_second, self._cells(player.name)
        played = self._played[player.name]
        self._report.put(
            [
                make_row(player, book, cells[player.name, name, book], played[name, book], fps)
                for name, book, _ in plan
                if (player.name, name, book) in cells
            ],
            is_whole=is_whole,
        )

    def _arena(self, player: Player, frame_skip: int, recorder: Recorder | None = None) -> Arena:
        load = self._weights.network
        return Arena(self._game, load, frame_skip=frame_skip, seed=player.step, recorder=recorder)

    def _problem(self, opponent: Player | None, frame_skip: int) -> str:
        """Why an opponent can't be met by a player of this frame skip, "" when it can."""
        if opponent is None or opponent.state is PlayerState.QUARANTINED:
            return "it is not in the league or quarantined"
        if opponent.kind is not PlayerKind.SNAPSHOT:
            return ""
        try:
            others = self._weights.card(opponent).frame_skip
        except UNPLAYABLE as error:
            return str(error)
        if others == frame_skip:
            return ""
        return f"{opponent.name} decides every {others} frames, not every {frame_skip}"

    def _play(self, work: Work, arena: Arena) -> bool:
        """Plays matches to their end, or until `stop`; False then."""
        began, frames_before = time.monotonic(), self._frames
        while not work.finished and not self.stop.is_set():
            work.step()
            self._frames = frames_before + arena.frames_played
            speed = work.accepted / max(1e-9, time.monotonic() - began)
            self.progress = replace(self.progress, matches_per_second=speed, **work.progress)
        if not work.finished and not self.fenced:
            _log.info("%d leases of %s are handed back", work.hand_back(), self.progress.current)
        return work.finished

    # --- heartbeats

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Sends heartbeats from a thread while the body runs."""
        ended = threading.Event()

        def beat() -> None:
            self._heartbeat()
            while not ended.wait(HEARTBEAT_SECONDS):
                self._heartbeat()

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            # A call of gRPC that runs while the interpreter ends aborts the process.
            thread.join(1.0)

    def _heartbeat(self) -> None:
        progress = self.progress
        metrics = {
            "gauntlet/matches_done": float(progress.matches_done),
            "gauntlet/matches_total": float(progress.matches_total),
            "queue/snapshots_waiting": float(progress.waiting),
            "rate/matches_per_second": progress.matches_per_second,
        }
        try:
            fenced, *_ = self._client.heartbeat(
                self._incarnation, self._frames, activity=progress.activity, metrics=metrics
            )
        except Unavailable:
            return  # the main thread's own calls decide how long to wait
        except LeagueError as error:
            fenced = isinstance(error, Fenced)
            if not fenced:
                _log.error("a heartbeat failed: %s", error)
        if fenced:
            self.fenced = True
            self.stop.set()
