"""Reads the league for the terminal: a thread that asks the services about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import grpc

from league.errors import LeagueError, Unavailable
from league.exploiters import CandidateGate, GateState, is_mains_snapshot
from league.players import Book, LeagueStatus, PlayerKind, PlayerState
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.client import MatchmakerClient
from league.runs.alarms import Alarm
from league.runs.alarms import of_metrics as alarms_of
from league.security.credentials import Credentials, from_environment
from league.v1 import evaluator_pb2, evaluator_pb2_grpc
from league.views.terminal import marks
from league.views.terminal.facts import BotEvaluation, LeagueFacts

_DEADLINE_SECONDS = 1.0  # a service that restarts is asked again at the next look
_MOST_FITTED = 500  # a fit of more players takes longer than a look at the league may
_FIT_EVERY = 30  # the fit may take 1/30 of the time: learners need the cores


class LeagueReader:
    """Keeps the newest `LeagueFacts`, read by a thread.

    `say` receives changes of the league, as one sentence each, alarms with `is_trouble`; `leading`
    is the worker name of the first main. It reads ratings and payoffs every `table_seconds`.
    """

    def __init__(
        self,
        matchmaker: str,
        evaluator: str | None,
        say: Callable[..., None],
        credentials: Credentials | None = None,
        *,
        leading: str = "",
        refresh_seconds: float = 1.0,
        table_seconds: float = 3.0,
    ) -> None:
        self._matchmaker, self._say = matchmaker, say
        self._credentials = from_environment() if credentials is None else credentials
        self._evaluator = None
        if evaluator:
            channel = self._credentials.channel(evaluator, CHANNEL_OPTIONS)
            self._evaluator = evaluator_pb2_grpc.EvaluatorServiceStub(channel)
        self._refresh_seconds, self._table_seconds = refresh_seconds, table_seconds
        self._facts = LeagueFacts(leading=leading)
        self._began_at = time.time()
        self._table_read_at = float("-inf")
        self._table_wanted = threading.Event()
        self._fitted_matches, self._fit_due = 0, 0.0
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

    def look_again(self, seconds: float) -> None:
        """Waits up to `seconds` for a look, with ratings, that began after this call."""
        wanted = self._looks + 2
        self._table_wanted.set()
        deadline = time.monotonic() + seconds
        while self._looks < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        self._table_wanted.clear()

    def _run(self) -> None:
        with MatchmakerClient(
            self._matchmaker, wait_seconds=_DEADLINE_SECONDS, credentials=self._credentials
        ) as client:
            while not self._stop.is_set():
                facts = replace(self._facts, evaluator=self._read_evaluator())
                self._facts = self._look(client, facts)
                self._looks += 1
                self._stop.wait(0.05 if self._table_wanted.is_set() else self._refresh_seconds)

    def _read_evaluator(self) -> evaluator_pb2.GetEvaluatorStatusResponse | None:
        """None without one, and while it can't be reached: it may be restarting."""
        if self._evaluator is None:
            return None
        try:
            return self._evaluator.GetEvaluatorStatus(
                evaluator_pb2.GetEvaluatorStatusRequest(),
                timeout=_DEADLINE_SECONDS,
                metadata=self._credentials.metadata,
            )
        except grpc.RpcError:
            return None

    def _look(self, client: MatchmakerClient, facts: LeagueFacts) -> LeagueFacts:
        before = self._facts
        try:
            facts = replace(self._with_status(facts, client.status()), trouble="")
            is_wanted = self._table_wanted.is_set()
            if is_wanted or time.monotonic() - self._table_read_at >= self._table_seconds:
                self._table_read_at = time.monotonic()
                facts = self._with_tables(facts, client, now=is_wanted)
        except Unavailable:
            return replace(facts, trouble="The matchmaker does not answer yet.")
        except LeagueError as error:
            return replace(facts, trouble=str(error))
        self._report_changes(before, facts)
        return facts

    def _with_status(self, facts: LeagueFacts, status: LeagueStatus) -> LeagueFacts:
        """Takes steps from the last status, and everything else from workers since our start."""
        workers = tuple(one for one in status.workers if one.last_beat_at >= self._began_at)
        trained = replace(facts, status=status).metrics
        return replace(
            facts,
            status=replace(status, workers=workers),
            steps=int(trained.get("progress/steps", facts.steps)),
            target_steps=int(trained.get("progress/target_steps", facts.target_steps)),
        )

    def _with_tables(
        self, facts: LeagueFacts, client: MatchmakerClient, *, now: bool
    ) -> LeagueFacts:
        """Adds players, ratings and their fit; `now` fits again however long that takes."""
        frozen = client.players(kinds=(PlayerKind.SNAPSHOT,), states=(PlayerState.ACTIVE,))
        active = [player for player in frozen if is_mains_snapshot(player)]
        newest = max(active, key=lambda player: player.step, default=None)
        facts = replace(
            facts,
            ratings=tuple(client.ratings(Book.EVAL)),
            snapshots=len(active),
            newest=newest.name if newest is not None else "",
            gates=tuple(client.gates()),
        )
        if self._newest is None:
            self._newest = facts.newest
        matches, began = sum(rating.games for rating in facts.ratings), time.monotonic()
        if not matches or len(facts.ratings) > _MOST_FITTED:
            facts = replace(facts, fit=None)
        elif matches != self._fitted_matches and (now or began >= self._fit_due):
            from league.stats.ratings.cross_check import cross_check  # loads scipy

            facts = replace(facts, fit=cross_check(facts.ratings, client.payoff(Book.EVAL)))
            self._fitted_matches = matches
            self._fit_due = began + _FIT_EVERY * (time.monotonic() - began)
        return replace(facts, evaluations=_evaluations(client, facts))

    def _report_changes(self, before: LeagueFacts, after: LeagueFacts) -> None:
        if after.newest and after.newest != self._newest:
            self._newest = after.newest
            if after.newest not in {gate.candidate for gate in after.gates or ()}:
                active = marks.counted(after.snapshots, "active snapshot")
                self._say(f"{after.newest} joined the league ({active}).")
        old, new = before.learner, after.learner
        if new is not None and new.mix and (old is None or old.mix != new.mix):
            self._say(f"Opponents now: {new.mix}.")
        if "progress/steps" in after.metrics:  # else the learner restarts and has no metrics yet
            self._report_alarms(after.metrics)
        if after.gates is not None:  # None before the first table
            self._report_gates(after.gates)

    def _report_gates(self, gates: tuple[CandidateGate, ...]) -> None:
        """Reports each gate's decision and each patch once, not those from before the start.

        It leaves out candidates that were passed over: a learner freezes one every few seconds.
        """
        known = self._gates
        self._gates = {
            gate.candidate: (gate.state, {patch.main for patch in gate.patches}) for gate in gates
        }
        for gate in gates if known is not None else ():
            state, mains = (known or {}).get(gate.candidate, (None, set()))
            is_decided = gate.state is not GateState.OPEN and gate.state is not state
            if is_decided and not gate.was_passed_over:
                self._say(f"{gate.outcome}.")
            for patch in gate.patches:
                if patch.main not in mains:
                    scores = f"{patch.snapshot} scores {patch.wins}-{patch.draws}-{patch.losses}"
                    self._say(f"{patch.main} has patched {gate.candidate}: {scores}.")
            for main in mains - {patch.main for patch in gate.patches}:
                self._say(f"{main} loses to {gate.candidate} again.")

    def _report_alarms(self, metrics: Mapping[str, float]) -> None:
        """Reports each alarm of the learner once, and again when it is over."""
        now = {alarm.key: alarm for alarm in alarms_of(metrics)}
        for key in now.keys() - self._alarms.keys():
            self._say(now[key].sentence, is_trouble=True)
        for key in self._alarms.keys() - now.keys():
            self._say(f"No longer: {self._alarms[key].title}.")
        self._alarms = now


def _evaluations(client: MatchmakerClient, facts: LeagueFacts) -> tuple[BotEvaluation, ...]:
    """The newest evaluated snapshot against each bot that it met, strongest bot first."""
    player = facts.newest_rated
    if player is None:
        return ()
    met = {cell.column: cell for cell in client.payoff(Book.EVAL, rows=(player.name,))}
    return tuple(
        BotEvaluation(player=player.name, opponent=bot, cell=met[bot])
        for bot in (one.player.name for one in facts.ratings if one.player.kind is PlayerKind.BOT)
        if bot in met and met[bot].games
    )
