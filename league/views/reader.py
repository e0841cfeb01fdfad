"""Reads the league for the terminal, in a thread that asks the services about once a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import grpc

from league.errors import LeagueError, Unavailable
from league.exploiters import is_mains_snapshot
from league.gates import GateState
from league.players import Book, PayoffCell, PlayerKind, PlayerState
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.client import MatchmakerClient
from league.runs.alarms import of_metrics as alarms_of
from league.security.credentials import Credentials, of_run
from league.status import LeagueStatus
from league.v1 import evaluator_pb2, evaluator_pb2_grpc
from league.views.facts import LeagueFacts

_DEADLINE_SECONDS = 1.0  # a service that doesn't answer in time is asked again a second later
_NEWEST, _ENOUGH = 16, 20
"""The matches of rated snapshots against a bot are added up, newest snapshot first. The sum ends at
`_ENOUGH` matches, or after `_NEWEST` snapshots.
"""


class LeagueReader:
    """Holds the newest `LeagueFacts`, which a thread reads.

    Args:
        matchmaker: the matchmaker's address.
        evaluator: the evaluator's address, or None without an evaluator.
        say: called with a sentence for each change of the league. For alarms `is_trouble` is true.
        refresh_seconds: seconds between two requests to the services.
        table_seconds: seconds between two readings of ratings and payoffs.
        since: a Unix time. Only workers that have been heard from since then are shown. None means
            the time at which this reader was made.
        credentials: token and certificates.
        leading: the worker name of the first main agent's learner.
        steps: that learner's steps before this start.
    """

    def __init__(
        self,
        matchmaker: str,
        evaluator: str | None,
        say: Callable[..., None],
        credentials: Credentials | None = None,
        *,
        leading: str = "",
        steps: int = 0,
        refresh_seconds: float = 1.0,
        table_seconds: float = 3.0,
        since: float | None = None,
    ) -> None:
        self._matchmaker, self._say = matchmaker, say
        self._credentials = of_run() if credentials is None else credentials
        self._evaluator = None
        if evaluator:
            channel = self._credentials.channel(evaluator, CHANNEL_OPTIONS)
            self._evaluator = evaluator_pb2_grpc.EvaluatorServiceStub(channel)
        self._refresh_seconds, self._table_seconds = refresh_seconds, table_seconds
        self.facts = LeagueFacts(leading=leading, steps=steps)
        self.looks = 0
        """Number of completed readings of the league. If two readings complete after some moment,
        the second of them also began after that moment, so it has seen all changes until then.
        """
        self._began_at = time.time() if since is None else since
        self._table_read_at = float("-inf")
        self._table_wanted = threading.Event()
        self._told: set[Hashable] | None = None  # None until the first table, which is not reported
        self._alarms: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="league-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, and keeps the last facts. It is safe to call again."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=0.3)  # it may wait for a service that hangs

    def look_again(self, seconds: float, hurried: Callable[[], bool] = lambda: False) -> None:
        """Waits until the reader has read everything again, including ratings. If it has read
        nothing since its start, it waits for the matchmaker's first answer.

        Args:
            seconds: the longest wait.
            hurried: called repeatedly. True ends the wait.
        """
        wanted = self.looks + 2
        self._table_wanted.set()
        deadline = time.monotonic() + seconds
        while self.looks < wanted or self.facts.status is None:
            if time.monotonic() >= deadline or hurried():
                break
            time.sleep(0.02)
        self._table_wanted.clear()

    def _run(self) -> None:
        with MatchmakerClient(
            self._matchmaker, wait_seconds=_DEADLINE_SECONDS, credentials=self._credentials
        ) as client:
            while not self._stop.is_set():
                facts = replace(self.facts, evaluator=self._read_evaluator())
                try:
                    facts = replace(self._with_status(facts, client.status()), trouble="")
                    is_due = time.monotonic() - self._table_read_at >= self._table_seconds
                    if is_due or self._table_wanted.is_set():
                        self._table_read_at = time.monotonic()
                        facts = _with_tables(facts, client)
                        self._report_members(facts)
                    self._report_learner(facts)
                except Unavailable:
                    facts = replace(facts, trouble="The matchmaker does not answer yet.")
                except LeagueError as error:
                    facts = replace(facts, trouble=str(error))
                except Exception as error:  # a log of an earlier version may hold any number
                    trouble = f"The league can't be shown ({type(error).__name__}: {error})."
                    facts = replace(facts, trouble=trouble)
                self.facts = facts
                self.looks += 1
                self._stop.wait(0.05 if self._table_wanted.is_set() else self._refresh_seconds)

    def _read_evaluator(self) -> evaluator_pb2.GetEvaluatorStatusResponse | None:
        """Returns the evaluator's status, or None without an evaluator or while it restarts."""
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

    def _with_status(self, facts: LeagueFacts, status: LeagueStatus) -> LeagueFacts:
        """Returns facts with a new status. Only workers that were heard from since the reader's
        start are shown, but steps are taken from all workers.
        """
        workers = tuple(
            worker for worker in status.workers if worker.last_beat_at >= self._began_at
        )
        trained = replace(facts, status=status).metrics
        now = replace(facts, status=replace(status, workers=workers))
        return replace(
            now,
            steps=int(trained.get("progress/steps", facts.steps)),
            target_steps=int(now.metrics.get("progress/target_steps", facts.target_steps)),
        )

    def _report_members(self, facts: LeagueFacts) -> None:
        """Reports changes since the first table: new members, decisions of gates, and patches.

        A gate tests a candidate. A patch is a main agent's snapshot that beats an exploiter. The
        report leaves out candidates that a newer snapshot replaced before their first match,
        because there is a new candidate every few seconds.
        """
        news: dict[Hashable, str] = {}
        if facts.newest and facts.newest not in {gate.candidate for gate in facts.gates}:
            news[facts.newest] = f"{facts.newest} joined the league ({facts.active})."
        for gate in facts.gates:
            if gate.state is not GateState.OPEN and not gate.was_passed_over:
                news[gate.candidate] = f"{gate.outcome}."
            for patch in gate.patches:
                scores = f"{patch.snapshot} scores {patch.wins}-{patch.draws}-{patch.losses}"
                patched = f"{patch.main} has patched {gate.candidate}: {scores}."
                news[gate.candidate, patch.main] = patched
        if self._told is not None:
            for key in news.keys() - self._told:
                self._say(news[key])
        self._told = set(news)

    def _report_learner(self, facts: LeagueFacts) -> None:
        """Reports pauses, a new mix of opponents, and the beginning and end of each alarm of the
        learner.
        """
        before, now = self.facts.learner, facts.learner
        told, pause = (one.status.pause if one.status else None for one in (self.facts, facts))
        if pause != told:
            words = pause and f"{pause.by} has paused the learners: `bin/league resume` ends this."
            self._say(words or "The learners go on.")
        if now is not None and now.mix and (before is None or before.mix != now.mix):
            self._say(f"Opponents now: {now.mix}.")
        if "progress/steps" not in facts.metrics:  # the learner restarts and has no metrics yet
            return
        alarms = {alarm.key: alarm for alarm in alarms_of(facts.metrics)}
        for key in alarms.keys() - self._alarms.keys():
            self._say(alarms[key].sentence, is_trouble=True)
        for key in self._alarms.keys() - alarms.keys():
            self._say(f"No longer: {self._alarms[key]}.")
        self._alarms = {key: alarm.title for key, alarm in alarms.items()}


def _with_tables(facts: LeagueFacts, client: MatchmakerClient) -> LeagueFacts:
    """Returns facts with members, ratings, gates, and the newest snapshots' clean matches."""
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
    bots = [rating.player.name for rating in facts.ratings if rating.player.kind is PlayerKind.BOT]
    snapshots = [rating.player for rating in facts.ratings if is_mains_snapshot(rating.player)]
    snapshots = sorted(snapshots, key=lambda player: -player.step)[:_NEWEST]
    cells = (
        client.payoff(Book.EVAL, [player.name for player in snapshots], bots)
        if snapshots and bots
        else []
    )
    counts = {(cell.row, cell.column): cell for cell in cells}
    met = {bot: [counts.get((player.name, bot)) for player in snapshots] for bot in bots}
    pooled = (_pooled(bot, [cell for cell in row if cell]) for bot, row in met.items())
    return replace(facts, evaluations=tuple(cell for cell in pooled if cell.games))


def _pooled(bot: str, cells: Sequence[PayoffCell]) -> PayoffCell:
    """Adds up the newest snapshots' counts until there are enough matches."""
    wins = draws = losses = 0
    for cell in cells:
        if wins + draws + losses >= _ENOUGH:
            break
        wins, draws, losses = wins + cell.wins, draws + cell.draws, losses + cell.losses
    return PayoffCell(row="", column=bot, wins=wins, draws=draws, losses=losses)
