"""Reads the league for the terminal: a thread that asks the services about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc

from league.errors import LeagueError, Unavailable
from league.exploiters import CandidateGate, GateState, is_mains_snapshot
from league.players import Book, LeagueStatus, PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.client import MatchmakerClient
from league.runs.alarms import Alarm
from league.runs.alarms import of_metrics as alarms_of
from league.security.credentials import Credentials, from_environment
from league.v1 import evaluator_pb2, evaluator_pb2_grpc
from league.views.terminal import marks
from league.views.terminal.facts import BotEvaluation, EvaluatorFacts, LeagueFacts

if TYPE_CHECKING:
    from league.stats.ratings.cross_check import CrossCheck

_DEADLINE_SECONDS = 1.0  # a service that restarts is asked again at the next look
_MOST_FITTED = 500  # a fit of more players takes longer than a look at the league may
_FIT_EVERY = 30  # the fit may take 1/30 of the time: learners need the cores


class History:
    """A series of bounded length over a whole run: when it is full, it averages neighbours."""

    def __init__(self, length: int = 120) -> None:
        self._length = length
        self._stride = 1
        self._pending: list[float] = []
        self._values: list[float] = []

    def add(self, value: float) -> None:
        self._pending.append(value)
        if len(self._pending) == self._stride:
            self._values.append(sum(self._pending) / self._stride)
            self._pending.clear()
        if len(self._values) >= self._length:
            pairs = zip(self._values[::2], self._values[1::2], strict=True)
            self._values = [(first + second) / 2 for first, second in pairs]
            self._stride *= 2

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(self._values)


class EvaluatorReader:
    """Reads an evaluator's state and never raises: the evaluator may be restarting."""

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        used = from_environment() if credentials is None else credentials
        self._metadata = used.metadata
        channel = used.channel(address, CHANNEL_OPTIONS)
        self._stub = evaluator_pb2_grpc.EvaluatorServiceStub(channel)

    def status(self) -> EvaluatorFacts | None:
        """None while it can't be reached."""
        request = evaluator_pb2.GetEvaluatorStatusRequest()
        try:
            reply = self._stub.GetEvaluatorStatus(
                request, timeout=_DEADLINE_SECONDS, metadata=self._metadata
            )
        except grpc.RpcError:
            return None
        return EvaluatorFacts(
            current=reply.current,
            matches_done=reply.matches_done,
            matches_total=reply.matches_total,
            queue=tuple(reply.queue),
            gauntlets_done=reply.gauntlets_done,
            drained=reply.drained,
        )


class FitReader:
    """Computes the fit of all games again when that costs little; keeps the newest one."""

    def __init__(self) -> None:
        self._matches = 0
        self._next_at = 0.0
        self._found: CrossCheck | None = None

    def read(
        self, client: MatchmakerClient, ratings: tuple[Rating, ...], *, now: bool
    ) -> CrossCheck | None:
        """The fit of the clean matches, None before the first ones and in a large league.

        Args:
            client: of the matchmaker.
            ratings: the eval book's.
            now: whether it must be the newest, however long that takes.
        """
        matches = sum(rating.games for rating in ratings)
        if not matches or len(ratings) > _MOST_FITTED:
            return None
        began = time.monotonic()
        if matches != self._matches and (now or began >= self._next_at):
            from league.stats.ratings.cross_check import cross_check  # loads scipy

            self._found = cross_check(ratings, client.payoff(Book.EVAL))
            self._matches = matches
            self._next_at = began + _FIT_EVERY * (time.monotonic() - began)
        return self._found


class LeagueReader:
    """Keeps the newest `LeagueFacts`, read by a thread.

    Args:
        matchmaker, evaluator: addresses.
        say: receives changes of the league, as one sentence each.
        complain: receives the learner's alarms.
        credentials: for the services, by default those of the environment.
        leading: the worker name of the first main.
        refresh_seconds: between two looks at the league.
        table_seconds: between two readings of ratings and payoffs.
    """

    def __init__(
        self,
        matchmaker: str,
        evaluator: str | None,
        say: Callable[[str], None],
        complain: Callable[[str], None] | None = None,
        credentials: Credentials | None = None,
        *,
        leading: str = "",
        refresh_seconds: float = 1.0,
        table_seconds: float = 3.0,
    ) -> None:
        self._matchmaker, self._credentials = matchmaker, credentials
        self._evaluator = EvaluatorReader(evaluator, credentials) if evaluator else None
        self._refresh_seconds, self._table_seconds = refresh_seconds, table_seconds
        self._say, self._complain = say, complain or say
        self._facts = LeagueFacts(leading=leading)
        self._began_at = time.time()
        self._speeds = History()
        self._win_rates: dict[str, History] = {}
        self._steps_seen = -1
        self._table_read_at = float("-inf")
        self._table_wanted = threading.Event()
        self._fit = FitReader()
        self._alarms: dict[str, Alarm] = {}
        self._gates: dict[str, tuple[GateState, set[str]]] | None = None
        self._newest: str | None = None  # None before the first table: its players are not new
        self._looks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="league-reader", daemon=True)

    @property
    def facts(self) -> LeagueFacts:
        return self._facts

    @property
    def looks(self) -> int:
        """Looks so far; a look that began after now is complete once this has risen by two."""
        return self._looks

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; the last facts stay. Repeating it is safe."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=0.3)  # it may wait for a service that hangs

    def look_again(self, seconds: float) -> bool:
        """Waits up to `seconds` for a look, with ratings, that began after this call."""
        wanted = self._looks + 2
        self._table_wanted.set()
        deadline = time.monotonic() + seconds
        while self._looks < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        self._table_wanted.clear()
        return self._looks >= wanted

    def _run(self) -> None:
        with MatchmakerClient(
            self._matchmaker, wait_seconds=_DEADLINE_SECONDS, credentials=self._credentials
        ) as client:
            while not self._stop.is_set():
                self._facts = self._look(client)
                self._looks += 1
                self._stop.wait(0.05 if self._table_wanted.is_set() else self._refresh_seconds)

    def _look(self, client: MatchmakerClient) -> LeagueFacts:
        facts = self._facts
        evaluator = self._evaluator.status() if self._evaluator is not None else None
        try:
            facts = self._with_status(facts, client.status())
            facts = replace(facts, evaluator=evaluator, trouble="")
            now = time.monotonic()
            is_due = now - self._table_read_at >= self._table_seconds
            if is_due or self._table_wanted.is_set():
                self._table_read_at = now
                facts = self._with_tables(facts, client)
        except Unavailable:
            trouble = "The matchmaker does not answer yet."
            return replace(facts, evaluator=evaluator, trouble=trouble)
        except LeagueError as error:
            return replace(facts, evaluator=evaluator, trouble=str(error))
        self._remember(facts)
        facts = replace(
            facts,
            speeds=self._speeds.values,
            win_rates={name: history.values for name, history in self._win_rates.items()},
        )
        self._report_changes(self._facts, facts)
        return facts

    def _with_status(self, facts: LeagueFacts, status: LeagueStatus) -> LeagueFacts:
        """Takes steps from the last status, and everything else from workers since our start."""
        since = self._began_at
        workers = tuple(worker for worker in status.workers if worker.last_beat_at >= since)
        trained = replace(facts, status=status).metrics
        return replace(
            facts,
            status=replace(status, workers=workers),
            steps=int(trained.get("progress/steps", facts.steps)),
            target_steps=int(trained.get("progress/target_steps", facts.target_steps)),
        )

    def _with_tables(self, facts: LeagueFacts, client: MatchmakerClient) -> LeagueFacts:
        frozen = client.players(kinds=(PlayerKind.SNAPSHOT,))
        snapshots = [player for player in frozen if is_mains_snapshot(player)]
        active = [player for player in snapshots if player.state is PlayerState.ACTIVE]
        newest = max(active, key=lambda player: player.step, default=None)
        name = newest.name if newest is not None else ""
        if self._newest is None:
            self._newest = name
        ratings = tuple(client.ratings(Book.EVAL))
        return replace(
            facts,
            ratings=ratings,
            fit=self._fit.read(client, ratings, now=self._table_wanted.is_set()),
            snapshots=len(active),
            newest=name,
            gates=tuple(client.gates()),
            evaluations=read_evaluations(client, ratings),
        )

    def _remember(self, facts: LeagueFacts) -> None:
        """Extends the histories when the learner has done more steps."""
        metrics = facts.metrics
        steps = int(metrics.get("progress/steps", 0))
        if steps <= self._steps_seen:
            return
        self._steps_seen = steps
        if "rate/steps_per_second" in metrics:
            self._speeds.add(metrics["rate/steps_per_second"])
        for name, value in metrics.items():
            if name.startswith("winrate/"):
                self._win_rates.setdefault(name.removeprefix("winrate/"), History()).add(value)

    def _report_changes(self, before: LeagueFacts, after: LeagueFacts) -> None:
        if after.newest and after.newest != self._newest:
            self._newest = after.newest
            if after.newest not in {gate.candidate for gate in after.gates or ()}:
                active = marks.counted(after.snapshots, "active snapshot")
                self._say(f"{after.newest} joined the league ({active}).")
        old, new = before.learner, after.learner
        if new is not None and new.mix and (old is None or old.mix != new.mix):
            self._say(f"Opponents now: {new.mix}.")
        self._report_alarms(after.metrics)
        if after.gates is not None:  # None before the first table
            self._report_gates(after.gates)

    def _report_gates(self, gates: tuple[CandidateGate, ...]) -> None:
        """Reports each gate's decision and each patch once, not those from before the start.

        It leaves out candidates that were passed over: a learner freezes one every few seconds.
        """
        now = {
            gate.candidate: (gate.state, {patch.main for patch in gate.patches}) for gate in gates
        }
        known, self._gates = self._gates, now
        if known is None:
            return
        for gate in gates:
            state, mains = known.get(gate.candidate, (None, set()))
            is_decided = gate.state is not GateState.OPEN and gate.state is not state
            if is_decided and not gate.was_passed_over:
                self._say(f"{gate.outcome}.")
            for patch in gate.patches:
                if patch.main not in mains:
                    counts = f"{patch.wins}-{patch.draws}-{patch.losses}"
                    scores = f"{patch.snapshot} scores {counts}"
                    self._say(f"{patch.main} has patched {gate.candidate}: {scores}.")
            for main in mains - now[gate.candidate][1]:
                self._say(f"{main} loses to {gate.candidate} again.")

    def _report_alarms(self, metrics: Mapping[str, float]) -> None:
        """Reports each alarm of the learner once, and again when it is over."""
        if "progress/steps" not in metrics:  # the learner restarts and has no metrics yet
            return
        now = {alarm.key: alarm for alarm in alarms_of(metrics)}
        for key in now.keys() - self._alarms.keys():
            self._complain(now[key].sentence)
        for key in self._alarms.keys() - now.keys():
            self._say(f"No longer: {self._alarms[key].title}.")
        self._alarms = now


def newest_snapshot(ratings: tuple[Rating, ...]) -> Player | None:
    """The mains' youngest snapshot that has played an evaluation."""
    snapshots = [rating.player for rating in ratings if is_mains_snapshot(rating.player)]
    return max(snapshots, key=lambda player: player.step, default=None)


def read_evaluations(
    client: MatchmakerClient, ratings: tuple[Rating, ...]
) -> tuple[BotEvaluation, ...]:
    """The newest evaluated snapshot against each bot that it met, strongest bot first."""
    player = newest_snapshot(ratings)
    if player is None:
        return ()
    sampled = _by_column(client.payoff(Book.EVAL, rows=(player.name,)))
    greedy = _by_column(client.payoff(Book.GREEDY, rows=(player.name,)))
    bots = [rating.player.name for rating in ratings if rating.player.kind is PlayerKind.BOT]
    return tuple(
        BotEvaluation(
            player=player.name, opponent=bot, sampled=sampled.get(bot), greedy=greedy.get(bot)
        )
        for bot in bots
        if bot in sampled or bot in greedy
    )


def _by_column(cells: list[PayoffCell]) -> dict[str, PayoffCell]:
    return {cell.column: cell for cell in cells}
