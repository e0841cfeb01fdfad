"""Runs the evaluator: chooses its next work, plays it, and sends heartbeats."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from evaluator.clean.arena import Arena, Weights
from evaluator.clean.plan import ALLOCATED, Batch, Entry, Facts, Plan, next_work
from evaluator.clean.replays import Recorder
from evaluator.clean.table import write_table
from evaluator.clean.uploads import ReplayUploads
from evaluator.clean.work import BatchWork, GateWork, Work
from evaluator.settings import EvaluatorSettings
from league.agent.rivals import RivalSeats
from league.errors import (
    DataCorrupt,
    Fenced,
    InvalidInput,
    LeagueError,
    NotFound,
    Refused,
    Unavailable,
)
from league.evaluations import targets
from league.games.base import BatchedGame
from league.games.hosted import WORKER_WAIT_SECONDS, HostedGame
from league.gates import CandidateGate
from league.players import Book, Player, PlayerKind, PlayerState
from league.replay import Recipe
from league.rpc.blobs import blobs_of
from league.rpc.channel import Reminders
from league.rpc.client import MatchmakerClient
from league.runs.store import store_of
from league.service.pace import Pace
from league.service.priority import seconds_without_core, step_back
from league.status import CORE_WAIT, MOST_CORE_WAIT

UNPLAYABLE = (DataCorrupt, NotFound, InvalidInput)
"""Errors that loading a damaged snapshot may raise. Other snapshots still play."""
HEARTBEAT_SECONDS = 2.0
"""Time between heartbeats, well below the matchmaker's lease time."""
POLL_SECONDS = 1.0
"""Time between checks for new snapshots while there is nothing to play."""
FAILURES = 4
"""After this many reports with broken matches between two players, the evaluator leaves out further
matches between them until a restart. It counts reports, not matches, because a process that dies
breaks all of its matches at once.
"""
FITTED = 300
"""Matches are allocated among this many of the newest snapshots. Fitting their ratings takes a
second.
"""
TABLE_SECONDS = 30.0
"""Time between two writes of the table of results while matches are played."""
REPLAYS_KEPT = 2000
"""Number of the newest replays (a few kB each) that stay in the run's folder. Live matches,
highlights and matches of people are kept in addition.
"""
CORE_SECONDS = 2.0
"""Time between two measurements of how long the matches waited for a core."""
STARVED = 0.98
"""If the matches spend more than this share of the time waiting for a core, the evaluator leaves
the scheduling policy SCHED_IDLE, and competes for cores by its nice value.
"""
T = TypeVar("T")
_log = logging.getLogger("evaluator")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The evaluator's progress, for heartbeats and the service.

    Attributes:
        current: the player whose matches are played. "" while nothing is played, and for matches
            that don't evaluate a certain player.
        matches_done: of the matches that this evaluator has leased, how many it has played.
        matches_total: number of matches that this evaluator has leased.
        waiting: the players whose matches come next. "" stands for matches that don't evaluate a
            certain player.
        matches_per_second: number of matches that the evaluator plays per second.
        gate: the opponent in a gate's matches. "" if no gate is played.
        core_wait: share of the last seconds in which the evaluator was ready to play but had no
            core.
        is_idle: whether there was nothing to play at the last check.
    """

    current: str = ""
    matches_done: int = 0
    matches_total: int = 0
    waiting: tuple[str, ...] = ()
    matches_per_second: float = 0.0
    gate: str = ""
    core_wait: float = 0.0
    is_idle: bool = True

    @property
    def activity(self) -> str:
        """The current work, as heartbeats report it."""
        if self.is_idle:
            return "waiting for snapshots"
        waits = ", waiting for a free core" if self.core_wait > MOST_CORE_WAIT else ""
        if self.gate:
            return f"gate {self.current} {self.matches_done} against {self.gate}{waits}"
        count = f" {self.matches_done}/{self.matches_total}" if self.matches_total else ""
        return f"matches of {self.current or 'the league'}{count}{waits}"


class Evaluator:
    """Plays gates and batches of clean matches on `game` for all players of the league.

    Call `open` once, then `run`, which works until `stop` is set. Other threads may read `progress`
    and call `plan`.

    Args:
        worker: the evaluator's name. If another evaluator starts with this name, it takes over.
        recipe: describes `game`, for replays and for a second game, in which rivals (other people's
            agents) play.

    Attributes:
        progress: the matches in progress.
        snapshots_done: number of snapshots that have played their first matches.
        fenced: whether another evaluator took over, so that this evaluator has to stop.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        game: BatchedGame,
        run_dir: Path,
        settings: EvaluatorSettings,
        *,
        recipe: Recipe,
        worker: str = "evaluator-0",
        stop: threading.Event | None = None,
    ) -> None:
        self._client, self._game, self._worker = client, game, worker
        self._settings, self._bots = settings, [bot.name for bot in game.spec.bots]
        self._replays, self._recipe = run_dir / "replays", recipe
        blobs = blobs_of(run_dir, client)
        self._weights, self._rivals = Weights(blobs, game.spec), RivalSeats(blobs)
        store = store_of(run_dir)
        self._uploads = ReplayUploads(self._replays, store).running() if store else nullcontext()
        self._table = run_dir / "evaluator" / "evaluation_results.csv"
        self._table_written_at, self._unwritten = time.monotonic(), True
        self._remind = Reminders(_log.error)
        self._paces: dict[str, int | str] = {}  # by digest
        self._reading = threading.Lock()  # two threads may plan
        self._failures: Counter[frozenset[str]] = Counter()
        self._rng, self._turn, self._reports_refused = np.random.default_rng(), 0, 0
        self.progress = Progress()
        self.snapshots_done = 0
        self._stall, self._learners_train = Pace(), True
        self._lane, self._lane_priority = ThreadPoolExecutor(1), (0, False)
        self._is_starved = self._has_rivals = False
        # Frames that this process has played. Its leases are extended while this number grows.
        self._frames = self._rival_frames = 0
        self._rival_game: BatchedGame | None = None
        self._rival_play: tuple[BatchWork, Mapping[str, Player], Future[None]] | None = None
        self._incarnation = 0
        self.stop = stop or threading.Event()
        self.fenced = False
        self._game_trouble = ""
        if isinstance(game, HostedGame):
            game.host.should_stop, game.host.on_wait = self.stop.is_set, self._wait_for_game
            game.host.wait_seconds = WORKER_WAIT_SECONDS

    def _wait_for_game(self, reason: str) -> None:
        self._game_trouble = reason
        self._stall.rests()

    def open(self) -> None:
        """Warms the game up, and tells the matchmaker that this evaluator has started (it opens an
        incarnation).
        """
        self._game.reset(np.arange(self._game.num_matches, dtype=np.uint64))
        self._game.step(self._game.idle_actions())
        name, version = self._game.spec.name, self._game.spec.version
        opened = self._client.open_incarnation(self._worker, game_version=version)
        self._incarnation = opened.number
        self._client.register_players(
            Player(name=bot.name, game=name, kind=PlayerKind.BOT, held_out=bot.held_out)
            for bot in self._game.spec.bots
        )

    def run(self) -> None:
        """Works until `stop` is set.

        Raises:
            Fenced: another evaluator of this name has started later and taken over.
        """
        with self._heartbeats(), closing(self._rivals), self._uploads:
            try:
                while not self.stop.is_set():
                    self._stall.rests()  # a round without matches says nothing about the pace
                    if not self._work():
                        self.progress = self._rival_progress
                        self._write_table()
                        self.stop.wait(POLL_SECONDS)
            finally:
                self.stop.set()
                if self._rival_play is not None:
                    wait([self._rival_play[2]])
            self._end_rivals()
        if self.fenced:
            raise Fenced(f"a newer evaluator named {self._worker} took over, so this one stops")
        self._write_table()

    def plan(self, client: MatchmakerClient | None = None) -> Plan:
        """Plans all matches that are due now, as `client` sees the league."""
        client = client or self._client
        gates, requests = client.gates(), client.evaluations(open_only=True)
        # read after gates and requests, so that `players` has all players of both
        players = {player.name: player for player in client.players()}
        self._has_rivals = any(player.kind is PlayerKind.RIVAL for player in players.values())
        counts = {
            (cell.row, cell.column, book): cell.games
            for book in (Book.EVAL, Book.GREEDY)
            for cell in client.payoff(book)
        }
        facts = Facts(
            players=players,
            counts=counts,
            ratings=client.ratings(Book.EVAL),
            gates=gates,
            requests=requests,
            curricula=client.curricula(),
            can_meet=lambda player, opponent: not self._problem(players, player, opponent),
            rivals_wait=self._rival_play is not None,
        )
        return Plan(facts, self._settings, self._bots)

    # --- what is played next

    def _work(self) -> bool:
        """Plays a gate or batches. Returns whether this evaluator could lease matches for them."""
        self._end_rivals()
        plan = self.plan()
        self.snapshots_done = len(plan.evaluated)
        self._refuse_requests(plan)
        work = next_work(plan, self._turn)
        self._turn = work.turn
        if work.subject or work.has_room:
            self.progress = Progress(current=work.subject, waiting=work.waiting, is_idle=False)
        if work.gate is not None:
            return self._play_gate(work.gate, plan.facts.players)
        if work.awaited is not None and self._play_batches([work.awaited], plan):
            return True
        batches = list(work.batches)
        if work.has_room and (allocated := self._aside(lambda: self._allocated(plan))):
            batches.append(allocated)
        return bool(batches) and self._play_batches(batches, plan)

    def _allocated(self, plan: Plan) -> Batch | None:
        """Fits the ratings, and returns the matches that would reduce their uncertainty most."""
        from evaluator.clean.allocation import allocate  # scipy takes half a second to load
        from league.stats.ratings.lineage import fit_league

        near = {player.name for player in plan.snapshots[-FITTED:]} | set(plan.bots)
        fit = fit_league(
            [c for c in self._client.payoff(Book.EVAL) if c.row in near and c.column in near],
            list(plan.facts.players.values()),
            [c for c in self._client.payoff(Book.TRAIN, climb=True) if c.column in near],
        )
        return plan.most_telling(allocate(plan, fit, ALLOCATED, self._rng))

    def _play_gate(self, gate: CandidateGate, players: Mapping[str, Player]) -> bool:
        """Plays a candidate's gate until it is decided, or gives the gate up if a player can't play
        in it.
        """
        work: GateWork | None = None
        try:
            for name in (gate.candidate, *(test.victim for test in gate.victims)):
                if problem := self._problem(players, gate.candidate, name):
                    raise InvalidInput(problem)
                self._load(players[name])
            arena = self._arena(int(self._pace(players[gate.candidate])))
            work = GateWork(self._client, self._incarnation, arena, gate)
            if self._play(work, arena):
                _log.info("the gate of %s", work.gate.outcome)
        except (*UNPLAYABLE, Refused) as error:
            if isinstance(error, Fenced):
                raise
            _log.error("the gate of %s is given up: %s", gate.candidate, error)
            if work is not None:
                work.release("the gate is given up")
            self._client.give_up_gate(self._incarnation, gate.candidate, str(error)[:400])
        return True

    def _play_batches(self, batches: Sequence[Batch], plan: Plan) -> bool:
        """Plays all matches of the batches that no other evaluator has leased. Returns whether
        there were any.

        Matches of rivals only begin here. They continue in another thread.
        """
        players = plan.facts.players
        try:
            entries, pace = self._playable(batches, players)
        except UNPLAYABLE:
            return True  # the next plan leaves the player out
        of_rivals = [entry for entry in entries if plan.facts.have_rival(*entry[:2])]
        others = [entry for entry in entries if not plan.facts.have_rival(*entry[:2])]
        have_begun = False
        if of_rivals:
            if self._rival_game is None:
                self._rival_game = self._recipe.make(self._game.num_matches)
            work, arena = self._work_of(batches, of_rivals, pace, players, self._rival_game)
            have_begun = self._begin_rivals(work, arena, players)
        if not others:
            return have_begun
        work, arena = self._work_of(batches, others, pace, players)
        with self._planned_again(work, players):
            whole = self._play(work, arena)
            self._note(work)
            for batch in batches:
                if whole and batch.of_exploiters:
                    self._client.review_exploiters(self._incarnation, batch.subject)
            if time.monotonic() - self._table_written_at >= TABLE_SECONDS:
                self._write_table()
            return have_begun or work.leased > 0
        return True

    def _work_of(
        self,
        batches: Sequence[Batch],
        entries: Sequence[Entry],
        pace: int,
        players: Mapping[str, Player],
        rival_game: BatchedGame | None = None,
    ) -> tuple[BatchWork, Arena]:
        """Returns the work for `entries`, with a new arena."""
        subject = ", ".join(batch.subject for batch in batches if batch.subject)
        subjects = {batch.subject for batch in batches if batch.subject in players}
        subjects = {name for name in subjects if players[name].digest}
        milestones = frozenset(name for name in subjects if players[name].milestone)
        recorder = Recorder(
            self._replays,
            self._recipe,
            frozenset(subjects),
            REPLAYS_KEPT,
            milestones,
            should_stop=self.stop.is_set,
        )
        arena, refused = self._arena(pace, recorder, rival_game), self._reports_refused
        work = BatchWork(self._client, self._incarnation, arena, subject, entries, refused)
        return work, arena

    @contextmanager
    def _planned_again(self, work: BatchWork, players: Mapping[str, Player]) -> Iterator[None]:
        """Gives up the matches of `work` if the block fails because a player left the league. The
        next plan then leaves this player out.
        """
        try:
            yield
        except (Refused, NotFound, InvalidInput) as error:
            now = {player.name: player.state for player in self._client.players()}
            left = any(
                name in players and now.get(name) is not players[name].state for name in work.met
            )
            if isinstance(error, Fenced) or not left:
                raise
            _log.warning("matches of %s are planned again: %s", work.subject, error)
            work.release("they are planned again")

    def _note(self, work: BatchWork) -> None:
        """Remembers failed and refused matches, and that there are new results to write."""
        self._failures += work.failures
        self._reports_refused = work.reports_refused
        self._unwritten = self._unwritten or work.leased > 0

    # --- matches of rivals

    def _begin_rivals(self, work: BatchWork, arena: Arena, players: Mapping[str, Player]) -> bool:
        """Begins matches of rivals in another thread, so that no other match waits for the rivals'
        decisions. Returns whether this evaluator could lease any matches.
        """
        with self._planned_again(work, players):
            work.fill()
        if not arena.busy:
            return False
        step = functools.partial(step_back, self._settings.nice if self._learners_train else 0)
        thread = ThreadPoolExecutor(1, "rivals", step)
        self._rival_play = work, players, thread.submit(self._play_rivals, work, arena)
        thread.shutdown(wait=False)
        return True

    def _play_rivals(self, work: BatchWork, arena: Arena) -> None:
        """Plays matches of rivals to their end, or until `stop` is set."""
        frames_before = self._rival_frames
        while not work.finished and not self.stop.is_set():
            work.step()
            self._rival_frames = frames_before + arena.frames_played
        if not work.finished and not self.fenced:
            work.hand_back()

    @property
    def _rival_progress(self) -> Progress:
        """Returns the progress of the rivals' matches, for an evaluator without other work."""
        if self._rival_play is None:
            return Progress()
        work = self._rival_play[0]
        return Progress(current=work.subject, is_idle=False, **work.progress)

    def _end_rivals(self) -> None:
        """Notes the outcome of the matches of rivals, once they have ended."""
        if self._rival_play is not None and self._rival_play[2].done():
            (work, players, played), self._rival_play = self._rival_play, None
            with self._planned_again(work, players):
                played.result()
                self._note(work)

    # --- who can play

    def _pace(self, player: Player) -> int | str:
        """Returns for how many frames a snapshot holds its keys (0 for bots and rivals). For a
        player that can't play, returns the reason.
        """
        if not player.digest:
            return 0
        with self._reading:
            if player.digest not in self._paces:
                try:
                    if player.kind is PlayerKind.RIVAL:
                        self._weights.check_bundle(player)
                        self._paces[player.digest] = 0
                    else:
                        self._paces[player.digest] = self._weights.card(player).frame_skip
                except UNPLAYABLE as error:
                    _log.error("%s can't play: %s", player.name, error)
                    self._paces[player.digest] = str(error)
            return self._paces[player.digest]

    def _problem(self, players: Mapping[str, Player], *names: str) -> str:
        """Returns why this evaluator can't play matches of two players, "" if it can."""
        paces = dict[str, int]()
        for name in names:
            player = players.get(name)
            if player is None or player.state is PlayerState.QUARANTINED:
                return f"{name} is not in the league or in quarantine"
            pace = self._pace(player)
            if isinstance(pace, str):
                return f"{name} can't play: {pace}"
            paces[name] = pace
        if len({pace for pace in paces.values() if pace}) > 1:
            return "; ".join(f"{name} decides every {pace} frames" for name, pace in paces.items())
        broken = self._failures[frozenset(names)]
        return (
            f"matches of {' and '.join(names)} broke {broken} times" if broken >= FAILURES else ""
        )

    def _playable(
        self, batches: Sequence[Batch], players: Mapping[str, Player]
    ) -> tuple[list[Entry], int]:
        """Returns the entries whose snapshots decide as often as the first entry's snapshots, so
        that all of them can be played together. Also returns the number of frames between
        decisions.

        If a player can't be loaded, the error is raised, and later plans leave the player out.
        """
        entries, pace = list[Entry](), 0
        for entry in (entry for batch in batches for entry in batch.entries):
            both = [players[name] for name in (entry.player, entry.opponent)]
            pair_pace = max(int(self._pace(player)) for player in both)
            pace = pace or pair_pace
            if pair_pace == pace:
                entries.append(entry)
                for player in both:
                    self._load(player)
        return entries, pace or 1

    def _load(self, player: Player) -> None:
        """Loads a snapshot's weights before its matches are leased."""
        try:
            if player.digest and player.kind is not PlayerKind.RIVAL:
                self._weights.network(player.digest)
        except UNPLAYABLE as error:
            _log.error("%s can't play: %s", player.name, error)
            self._paces[player.digest] = str(error)
            raise

    def _refuse_requests(self, plan: Plan) -> None:
        """Cancels requests whose players can't meet on this evaluator."""
        for request in plan.facts.requests:
            for player, opponent, *_ in targets(request):
                if problem := self._problem(plan.facts.players, player, opponent):
                    self._client.cancel_evaluation(request.number, by=self._worker, reason=problem)
                    break

    def _arena(
        self,
        frame_skip: int,
        recorder: Recorder | None = None,
        rival_game: BatchedGame | None = None,
    ) -> Arena:
        return Arena(
            self._game if rival_game is None else rival_game,
            self._weights.network,
            frame_skip=frame_skip,
            seed=int(self._rng.integers(1 << 62)),
            recorder=recorder,
            device=self._settings.device,
            rivals=None if rival_game is None else self._rivals,
        )

    def _write_table(self) -> None:
        """Writes `evaluation_results.csv` if a match was played since the last time."""
        if not self._unwritten:
            return
        self._unwritten, self._table_written_at = False, time.monotonic()
        players = {player.name: player for player in self._client.players()}
        cells = [
            (book, cell)
            for book in (Book.EVAL, Book.GREEDY)
            for cell in self._client.payoff(book, with_stats=True)
        ]
        if not cells:
            return
        try:
            write_table(self._table, players, cells, self._game.spec.frames_per_second)
        except (LeagueError, OSError) as error:
            self._unwritten = True
            self._remind(f"the table of results is written later: {error}")

    def _play(self, work: Work, arena: Arena) -> bool:
        """Plays matches to their end, or until `stop` is set. Returns whether all matches ended."""
        frames_before, looked_at = self._frames, time.monotonic()
        waited_before, core_wait = self._aside(seconds_without_core), 0.0

        def step() -> float:
            work.step()
            return seconds_without_core()

        while not work.finished and not self.stop.is_set():
            waited = self._aside(step)
            self._stall.moved()
            if (passed := time.monotonic() - looked_at) >= CORE_SECONDS:
                core_wait = (waited - waited_before) / passed
                waited_before, looked_at = waited, time.monotonic()
                self._is_starved = self._is_starved or core_wait > STARVED
            self._frames = frames_before + arena.frames_played
            self.progress = replace(self.progress, core_wait=core_wait, **work.progress)
        if not work.finished and not self.fenced:
            work.hand_back()
        return work.finished

    def _aside(self, work: Callable[[], T]) -> T:
        """Calls `work` in a thread that runs at a lower priority while learners train.

        The ranks of a learner wait for each other at every minibatch, so a rank that waits for a
        core leaves the cores of all other ranks idle. Therefore this thread runs under the policy
        SCHED_IDLE, with which it gives way to learners at once. There are two cases in which the
        thread keeps the normal policy. In the first, it gets too little time under SCHED_IDLE. In
        the second, there are rivals, which play in another thread. Under SCHED_IDLE this thread may
        wait long for a core while it holds the interpreter's lock, and the rivals' thread would
        have to wait for the lock.

        A thread can't raise its priority again. So when the priority changes, a new thread takes
        over.
        """
        nice = self._settings.nice if self._learners_train else 0
        priority = nice, nice > 0 and not (self._is_starved or self._has_rivals)
        if priority != self._lane_priority:
            self._lane.shutdown()
            step = functools.partial(step_back, nice, is_idle=priority[1])
            self._lane = ThreadPoolExecutor(1, initializer=step)
            self._lane_priority = priority

        return self._lane.submit(work).result()

    # --- heartbeats

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        """Sends heartbeats from a thread while the block runs."""
        ended = threading.Event()
        self._heartbeat()  # finds out whether learners train, which the first work has to know

        def beat() -> None:
            while not ended.wait(HEARTBEAT_SECONDS):
                self._heartbeat()

        thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            # If a gRPC call is still running when the interpreter ends, the process aborts.
            thread.join(1.0)

    def _heartbeat(self) -> None:
        progress = self.progress
        metrics = {
            "evaluator/matches_done": float(progress.matches_done),
            "evaluator/matches_total": float(progress.matches_total),
            "evaluator/players_waiting": float(len(progress.waiting)),
            "rate/matches_per_second": progress.matches_per_second,
            CORE_WAIT: progress.core_wait,
        }
        try:
            status = self._client.status()
            training = (
                worker for worker in status.workers if worker.player and status.is_running(worker)
            )
            self._learners_train = any(training)
            fenced, *_ = self._client.heartbeat(
                self._incarnation,
                self._frames + self._rival_frames,
                activity=self._game_trouble or progress.activity,
                metrics=self._stall.judged(metrics),
            )
        except Unavailable:
            return  # the main thread decides how long to wait
        except LeagueError as error:
            fenced = isinstance(error, Fenced)
            if not fenced:
                _log.error("a heartbeat failed: %s", error)
        if fenced:
            self.fenced = True
            self.stop.set()
