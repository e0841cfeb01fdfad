"""Reads the league for the terminal: a thread that asks the services about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from league.cluster.settings import SupervisorSettings
from league.errors import LeagueError, Unavailable
from league.exploiters import CandidateGate, GateState, is_mains_snapshot
from league.players import Book, LeagueStatus, PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.rpc.client import MatchmakerClient
from league.runs.alarms import Alarm
from league.runs.alarms import of_metrics as alarms_of
from league.security.credentials import Credentials
from league.views.terminal import marks
from league.views.terminal.evaluation import EvaluatorReader
from league.views.terminal.facts import Exam, LeagueFacts
from league.views.terminal.lines import gate_line
from league.views.terminal.opinion import OpinionReader

_PATIENCE_SECONDS = 1.0  # a service that restarts is asked again at the next look


class History:
    """A series of bounded length over a whole run: when it is full, neighbours are averaged."""

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


class LeagueReader:
    """Keeps the newest `LeagueFacts`. `say` hears of what changed, `complain` of the learner's
    alarms, as one sentence each.
    """

    def __init__(
        self,
        matchmaker: str,
        evaluator: str | None,
        settings: SupervisorSettings,
        say: Callable[[str], None],
        complain: Callable[[str], None] | None = None,
        credentials: Credentials | None = None,
        *,
        leading: str = "",
    ) -> None:
        self._matchmaker, self._credentials = matchmaker, credentials
        self._evaluator = EvaluatorReader(evaluator, credentials) if evaluator else None
        self._settings = settings
        self._say, self._complain = say, complain or say
        self._alarms_told: dict[str, Alarm] = {}
        self._facts = LeagueFacts(leading=leading)
        self._began_at = time.time()
        self._speeds = History()
        self._win_rates: dict[str, History] = {}
        self._steps_seen = -1
        self._table_read_at = 0.0
        self._table_wanted = threading.Event()
        self._opinion = OpinionReader()
        self._gates_told: dict[str, tuple[GateState, set[str]]] | None = None
        # None before the first table: who is there then has not joined
        self._newest_told: str | None = None
        self._looks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="league-reader", daemon=True)

    @property
    def facts(self) -> LeagueFacts:
        return self._facts

    @property
    def looks(self) -> int:
        """Looks taken so far; what one that began after now sees is there once this has risen by
        two.
        """
        return self._looks

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; the facts last read stay. Twice is fine."""
        self._stop.set()
        if self._thread.is_alive():
            # it may be waiting for a service that hangs, and ends with us
            self._thread.join(timeout=0.3)

    def look_again(self, seconds: float) -> bool:
        """Waits up to `seconds` for one look, ratings too, that began after this call; false if
        none came.
        """
        wanted = self._looks + 2
        self._table_wanted.set()
        deadline = time.monotonic() + seconds
        while self._looks < wanted and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._looks >= wanted

    def _run(self) -> None:
        with MatchmakerClient(
            self._matchmaker, wait_seconds=_PATIENCE_SECONDS, credentials=self._credentials
        ) as client:
            while not self._stop.is_set():
                self._facts = self._look(client)
                self._looks += 1
                wait = 0.05 if self._table_wanted.is_set() else self._settings.refresh_seconds
                self._stop.wait(wait)

    def _look(self, client: MatchmakerClient) -> LeagueFacts:
        facts = self._facts
        evaluator = self._evaluator.status() if self._evaluator is not None else None
        try:
            facts = replace(
                self._with_status(facts, client.status()), evaluator=evaluator, trouble=""
            )
            if self._is_table_due():
                facts = self._with_tables(facts, client)
        except Unavailable:
            return replace(
                facts, evaluator=evaluator, trouble="The matchmaker does not answer yet."
            )
        except LeagueError as error:
            return replace(facts, evaluator=evaluator, trouble=str(error))
        self._remember(facts)
        facts = replace(
            facts,
            speeds=self._speeds.values,
            win_rates={name: history.values for name, history in self._win_rates.items()},
        )
        self._tell_changes(self._facts, facts)
        return facts

    def _with_status(self, facts: LeagueFacts, status: LeagueStatus) -> LeagueFacts:
        """Takes steps from whoever trained last, and all else only from workers heard since our
        start.
        """
        workers = tuple(
            worker for worker in status.workers if worker.last_beat_at >= self._began_at
        )
        trained = replace(facts, status=status).metrics
        return replace(
            facts,
            status=replace(status, workers=workers),
            steps=int(trained.get("progress/steps", facts.steps)),
            target_steps=int(trained.get("progress/target_steps", facts.target_steps)),
        )

    def _is_table_due(self) -> bool:
        now = time.monotonic()
        if (
            not self._table_wanted.is_set()
            and now - self._table_read_at < self._settings.leaderboard_seconds
        ):
            return False
        self._table_read_at = now
        return True

    def _with_tables(self, facts: LeagueFacts, client: MatchmakerClient) -> LeagueFacts:
        frozen = client.players(kinds=(PlayerKind.SNAPSHOT,))
        snapshots = [player for player in frozen if is_mains_snapshot(player)]
        active = [player for player in snapshots if player.state is PlayerState.ACTIVE]
        newest = max(active, key=lambda player: player.step, default=None)
        name = newest.name if newest is not None else ""
        if self._newest_told is None:
            self._newest_told = name
        ratings = tuple(client.ratings(Book.EVAL))
        return replace(
            facts,
            ratings=ratings,
            opinion=self._opinion.read(client, ratings, now=self._table_wanted.is_set()),
            snapshots=len(active),
            newest=name,
            gates=tuple(client.gates()),
            exams=read_exams(client, ratings),
        )

    def _remember(self, facts: LeagueFacts) -> None:
        """Adds to the histories when the learner has moved on."""
        metrics = facts.metrics
        steps = int(metrics.get("progress/steps", 0))
        if steps <= self._steps_seen:
            return
        self._steps_seen = steps
        if "rate/steps_per_second" in metrics:
            self._speeds.add(metrics["rate/steps_per_second"])
        for name, value in win_rates(metrics).items():
            self._win_rates.setdefault(name, History()).add(value)

    def _tell_changes(self, before: LeagueFacts, after: LeagueFacts) -> None:
        if after.newest and after.newest != self._newest_told:
            self._newest_told = after.newest
            if after.newest not in {gate.candidate for gate in after.gates or ()}:  # its gate tells
                self._say(
                    f"{after.newest} joined the league ({marks.counted(after.snapshots, 'active snapshot')})."
                )
        old, new = before.learner, after.learner
        if new is not None and new.mix and (old is None or old.mix != new.mix):
            self._say(f"Opponents now: {new.mix}.")
        self._tell_alarms(after.metrics)
        if after.gates is not None:  # once a table has been read
            self._tell_gates(after.gates)

    def _tell_gates(self, gates: tuple[CandidateGate, ...]) -> None:
        """Says once what came of each gate, and who is patched; not what had come before the start.

        Who was passed over stays unsaid: a learner freezes a candidate every few seconds.
        """
        now = {
            gate.candidate: (gate.state, {patch.main for patch in gate.patches}) for gate in gates
        }
        known, self._gates_told = self._gates_told, now
        if known is None:
            return
        for gate in gates:
            state, mains = known.get(gate.candidate, (None, set()))
            decided = gate.state is not GateState.OPEN and gate.state is not state
            if decided and not gate.was_passed_over:
                self._say(gate_line(gate))
            for patch in gate.patches:
                if patch.main not in mains:
                    counts = f"{patch.wins}-{patch.draws}-{patch.losses}"
                    self._say(
                        f"{patch.main} has patched {gate.candidate}: {patch.snapshot} scores {counts}."
                    )
            for main in mains - now[gate.candidate][1]:
                self._say(f"{main} loses to {gate.candidate} again.")

    def _tell_alarms(self, metrics: Mapping[str, float]) -> None:
        """Says each alarm of the learner once, and when it is over."""
        if "progress/steps" not in metrics:  # it restarts and knows nothing yet
            return
        now = {alarm.key: alarm for alarm in alarms_of(metrics)}
        for key in now.keys() - self._alarms_told.keys():
            self._complain(now[key].sentence)
        for key in self._alarms_told.keys() - now.keys():
            self._say(f"No longer: {self._alarms_told[key].title}.")
        self._alarms_told = now


def win_rates(metrics: Mapping[str, float]) -> dict[str, float]:
    """The learner's recent share of wins by opponent category, in [0, 1]."""
    return {
        name.removeprefix("winrate/"): v
        for name, v in metrics.items()
        if name.startswith("winrate/")
    }


def newest_snapshot(ratings: tuple[Rating, ...]) -> Player | None:
    """The mains' youngest snapshot that has played an evaluation."""
    snapshots = [rating.player for rating in ratings if is_mains_snapshot(rating.player)]
    return max(snapshots, key=lambda player: player.step, default=None)


def read_exams(client: MatchmakerClient, ratings: tuple[Rating, ...]) -> tuple[Exam, ...]:
    """The newest evaluated snapshot against each bot that it met, strongest bot first."""
    player = newest_snapshot(ratings)
    if player is None:
        return ()
    sampled = _by_column(client.payoff(Book.EVAL, rows=(player.name,)))
    greedy = _by_column(client.payoff(Book.GREEDY, rows=(player.name,)))
    bots = [rating.player.name for rating in ratings if rating.player.kind is PlayerKind.BOT]
    return tuple(
        Exam(player=player.name, opponent=bot, sampled=sampled.get(bot), greedy=greedy.get(bot))
        for bot in bots
        if bot in sampled or bot in greedy
    )


def _by_column(cells: list[PayoffCell]) -> dict[str, PayoffCell]:
    return {cell.column: cell for cell in cells}
