"""The evaluator's work: look for snapshots, play their gauntlets one after the other, report."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from evaluator.gatekeeping import Gatekeeper, GateProgress
from evaluator.gauntlet import GauntletRun, Office
from evaluator.journal import Gauntlet, Journal
from evaluator.pace import Pace
from evaluator.play import Arena
from evaluator.queue import Counts, Queue, count_matches
from evaluator.recording import Recorder
from evaluator.report import Report, make_row
from evaluator.settings import EvaluatorSettings
from evaluator.strategy import exploiters_to_meet, next_gate
from evaluator.weights import Weights
from league.errors import (
    DataCorrupt,
    Fenced,
    InvalidInput,
    LeagueError,
    NotFound,
    Refused,
    Unavailable,
)
from league.exploiters import CandidateGate
from league.games.base import BatchedGame
from league.players import Book, Player, PlayerKind, PlayerState, Role
from league.replay import Recipe
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder

BOOKS = (Book.EVAL, Book.GREEDY)
UNPLAYABLE = (DataCorrupt, NotFound, InvalidInput)
"""What loading a snapshot raises when its file, card or digest is no good; others must go on."""
_log = logging.getLogger("evaluator")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is being played just now, for heartbeats and the service."""

    current: str = ""
    matches_done: int = 0
    matches_total: int = 0
    waiting: int = 0
    matches_per_second: float = 0.0

    gate: str = ""  # the opponent of the gate's test that is under way

    @property
    def activity(self) -> str:
        if not self.current:
            return "waiting for snapshots"
        if self.gate:
            return f"gate {self.current} {self.matches_done} against {self.gate}"
        return f"gauntlet {self.current} {self.matches_done}/{self.matches_total}"


class Evaluator:
    """Plays gauntlets of every snapshot that the matchmaker knows, on `game`, from `run_dir`'s
    blobs.

    `recipe` says which game that is, for replays of telling matches; without it none are kept.
    `open` once, then `run` until `stop` is set. `standing`, `queue` and `journal` may be read from
    other threads meanwhile.
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
        self._client = client
        self._game = game
        self._settings = settings
        self._worker = worker
        self._replays, self._recipe = run_dir / "replays", recipe
        self._weights = Weights(BlobFolder(run_dir / "blobs"), game.spec)
        self._report = Report(run_dir / "evaluator" / "evaluation_results.csv")
        self.journal = Journal(run_dir / "evaluator" / "journal.db")
        self.queue = Queue(self.journal, settings, [bot.name for bot in game.spec.bots])
        self.standing = Standing()
        self._frames = 0  # played in this life: the progress that keeps leases alive
        self._incarnation = 0
        self.stop = stop or threading.Event()
        self._gatekeeper = Gatekeeper(client, game, self._weights, settings, self.stop)
        self.fenced = False

    def open(self) -> None:
        """Warms the game up, begins a new incarnation and settles what the last one left behind."""
        self._game.reset(np.arange(self._game.num_matches, dtype=np.uint64))
        self._game.step(self._game.idle_actions())
        # a report that can't be continued is an error now, not after a gauntlet
        self._report.rows()
        self._incarnation = self._client.open_incarnation(self._worker).number
        self._client.register_players(
            Player(
                name=bot.name, game=self._game.spec.name, kind=PlayerKind.BOT, held_out=bot.held_out
            )
            for bot in self._game.spec.bots
        )
        self._settle_pending()
        for name in self.queue.reconcile(self._counts(())):
            _log.info(
                "the matchmaker lacks matches of %s that the journal has: its gauntlet is reopened",
                name,
            )

    def _settle_pending(self) -> None:
        """Asks after the matches that were being reported when the last life ended."""
        accepted: list[str] = []
        refused: list[str] = []
        for match_id in self.journal.pending():
            try:
                record = self._client.match(match_id)
            except NotFound:
                refused.append(match_id)
                continue
            (accepted if record.result is not None else refused).append(match_id)
        self.journal.settle(accepted, refused)
        if accepted or refused:
            _log.info(
                "of the last life's reports %d had arrived, %d had not", len(accepted), len(refused)
            )

    def _counts(self, rows: tuple[str, ...]) -> Counts:
        counts: dict[tuple[str, str, Book], int] = {}
        for book in BOOKS:
            counts |= count_matches(self._client.payoff(book, rows=rows), book)
        return counts

    def run(self) -> None:
        """Works until `stop`. Raises `Fenced` when a newer evaluator of this name took over."""
        gauntlet_is_due = False
        with self._beating():
            while not self.stop.is_set():
                gates = self._client.gates(open_only=True)
                players = self._client.players()
                waiting = self.queue.waiting(players)
                gate = next_gate(gates, gauntlet_is_due and bool(waiting))
                gauntlet_is_due = gate is not None and not gate.is_exploiters
                if gate is not None:
                    self._keep_gate(gate, players, len(gates) - 1 + len(waiting))
                elif waiting:
                    self.standing = Standing(current=waiting[0].name, waiting=len(waiting) - 1)
                    self._evaluate(waiting[0], players)
                else:
                    self.standing = Standing()
                    self.stop.wait(self._settings.poll_seconds)
        if self.fenced:
            raise Fenced(f"a newer {self._worker} works for this league: this one stops")

    # --- one gate
    # ----------------------------------------------------------------------------------

    def _keep_gate(self, gate: CandidateGate, players: list[Player], waiting: int) -> None:
        before = self._frames

        def tell(progress: GateProgress) -> None:
            test = progress.gate.playing
            self._frames = before + progress.frames
            self.standing = Standing(
                current=gate.candidate,
                matches_done=test.matches if test else 0,
                waiting=waiting,
                matches_per_second=progress.matches_per_second,
                gate=test.victim if test else "its victims",
            )

        run = self._gatekeeper.play(gate, {p.name: p for p in players}, self._incarnation, tell)
        if run is not None and not run.finished and not self.fenced:
            _log.info("%d leases of %s are handed back", run.hand_back(), gate.candidate)

    # --- one gauntlet
    # ------------------------------------------------------------------------------

    def _evaluate(self, player: Player, players: list[Player]) -> None:
        try:
            frame_skip = self._weights.card(player).frame_skip
        except UNPLAYABLE as error:
            _log.error("%s is skipped: %s", player.name, error)
            self.queue.skip(player, str(error))
            return
        counts = self._counts((player.name,))
        gates = self._client.gates() if player.role is Role.MAIN else []
        exploiters = exploiters_to_meet(gates, player, self._settings.exploiters)
        gauntlet = self.queue.open(
            player, players, self._client.ratings(Book.EVAL), counts, exploiters
        )
        gauntlet = self._without_unplayable(gauntlet, {p.name: p for p in players}, frame_skip)
        _log.info("gauntlet of %s: %s", player.name, _describe(gauntlet))
        try:
            complete = self._play(player, gauntlet, counts, frame_skip)
        except (Refused, NotFound, InvalidInput) as error:
            if isinstance(error, Fenced) or not self._changed_since(player, players, gauntlet):
                raise
            _log.warning("gauntlet of %s is planned anew: %s", player.name, error)
            self._client.release_matches(self._incarnation, reason="the gauntlet is planned anew")
            return
        if complete:
            self._write_report(player, gauntlet)
            # the last word on whom it beats: its matches are all there
            if player.role is Role.MAIN:
                self._client.review_exploiters(self._incarnation, player.name)
            self.queue.finish(gauntlet)
            _log.info("gauntlet of %s is complete", player.name)

    def _without_unplayable(
        self, gauntlet: Gauntlet, players: dict[str, Player], frame_skip: int
    ) -> Gauntlet:
        """Drops opponents that are gone, corrupt, or that decide at another pace than the
        player.
        """
        for name in dict.fromkeys(entry.opponent for entry in gauntlet.plan):
            opponent = players.get(name)
            problem = ""
            if opponent is None or opponent.state is PlayerState.QUARANTINED:
                problem = "it is not in the league or quarantined"
            elif opponent.kind is PlayerKind.SNAPSHOT:
                try:
                    pace = self._weights.card(opponent).frame_skip
                    if pace != frame_skip:
                        problem = (
                            f"it decides every {pace} frames, {gauntlet.player} every {frame_skip}"
                        )
                except UNPLAYABLE as error:
                    problem = str(error)
            if problem:
                _log.error("%s does not meet %s: %s", gauntlet.player, name, problem)
                gauntlet = self.queue.drop_opponent(gauntlet, name)
        return gauntlet

    def _changed_since(self, player: Player, players: list[Player], gauntlet: Gauntlet) -> bool:
        """Whether someone of this gauntlet left the league while it was played."""
        names = {player.name, *(entry.opponent for entry in gauntlet.plan)}
        before = {p.name: p.state for p in players if p.name in names}
        after = {p.name: p.state for p in self._client.players() if p.name in names}
        for name in (n for n in names if after.get(n) is not before.get(n)):
            if name == player.name:
                self.queue.skip(player, "it left the league")
            else:
                self.queue.drop_opponent(gauntlet, name)
        return before != after

    def _play(self, player: Player, gauntlet: Gauntlet, counts: Counts, frame_skip: int) -> bool:
        """Plays what is missing; False when it was stopped before the end."""
        slots = self.queue.missing(gauntlet, counts)
        total = sum(entry.matches for entry in gauntlet.plan)
        arena = Arena(
            self._game,
            self._weights.network,
            frame_skip=frame_skip,
            seed=self._settings.seed + player.step,
            recorder=self._recorder(player, frame_skip),
        )
        office = Office(
            client=self._client,
            incarnation=self._incarnation,
            journal=self.journal,
            seed=self._settings.seed,
            report_seconds=self._settings.report_seconds,
            say=_log.warning,
        )
        run = GauntletRun(office, arena, player.name, slots)
        began, frames_before, pace = time.monotonic(), self._frames, Pace(self._settings.cpu_share)
        while not run.finished and not self.stop.is_set():
            run.step()
            pace.rest(self.stop.wait)
            self._frames = frames_before + arena.frames_played
            self.standing = replace(
                self.standing,
                matches_done=total - len(slots) + run.accepted,
                matches_total=total,
                matches_per_second=run.accepted / max(1e-9, time.monotonic() - began),
            )
        if not run.finished and not self.fenced:
            released = run.hand_back()
            _log.info("%d leases of %s are handed back", released, player.name)
        return run.finished

    def _recorder(self, player: Player, frame_skip: int) -> Recorder | None:
        most = self._settings.replays_kept
        if self._recipe is None or most == 0:
            return None
        return Recorder(self._replays, self._recipe, player.name, frame_skip, most)

    def _write_report(self, player: Player, gauntlet: Gauntlet) -> None:
        rows = []
        for entry in gauntlet.plan:
            matches = self.journal.matches(player.name, entry.opponent, entry.book)
            if matches:
                fps = self._game.spec.frames_per_second
                rows.append(make_row(player, entry.opponent, entry.book, matches, fps))
        self._report.put(rows)

    # --- heartbeats
    # --------------------------------------------------------------------------------

    @contextmanager
    def _beating(self) -> Iterator[None]:
        """Beats from a thread of its own while the body runs."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(self._settings.heartbeat_seconds):
                self._beat()

        self._beat()
        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()

    def _beat(self) -> None:
        standing = self.standing
        metrics = {
            "gauntlet/matches_done": float(standing.matches_done),
            "gauntlet/matches_total": float(standing.matches_total),
            "queue/snapshots_waiting": float(standing.waiting),
            "rate/matches_per_second": standing.matches_per_second,
        }
        try:
            fenced, *_ = self._client.heartbeat(
                self._incarnation, self._frames, activity=standing.activity, metrics=metrics
            )
        except Fenced:
            fenced = True
        except Unavailable:
            return  # the main thread's own calls decide how long to wait
        except LeagueError as error:
            _log.error("a heartbeat failed: %s", error)
            return
        if fenced:
            self.fenced = True
            self.stop.set()


def _describe(gauntlet: Gauntlet) -> str:
    return (
        ", ".join(f"{e.matches} {e.book.value} {e.opponent}" for e in gauntlet.plan)
        or "nobody to meet"
    )
