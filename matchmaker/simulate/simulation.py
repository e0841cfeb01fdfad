"""Plays a simulated league: workers lease matches, sometimes die, hang or repeat themselves, and
report.

The servicer, the store and the log are the real ones; only the clock is moved by hand, and outcomes
come from a scenario. The same plan gives the same league.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from league.clock import ManualClock
from league.players import Assignment, Book, MatchResult, Pairing, PlayerKind, SeatResult
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.cast import Cast
from matchmaker.simulate.direct import DirectClient
from matchmaker.simulate.learning import Learning
from matchmaker.simulate.predictions import Predictions
from matchmaker.simulate.scenarios import Scenario

TURN_SECONDS = 120.0
"""That a batch of matches takes, on average."""
SWEEP_SECONDS = 30.0
EVALUATORS = 2
GAMES_A_PAIRING = 4
BOT_SHARE = 0.3
"""Of the clean matches, those against a bot; the rest are between two snapshots."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a league is simulated.

    Attributes:
        matches: to be assigned, in both books.
        clean_share: of them, evaluators' matches.
        faults: share of a worker's turns that go wrong: a third each dies, hangs, reports twice.
        batch: matches a turn.
        mix: that learners ask for.
    """

    matches: int
    seed: int
    mix: str = "league"
    clean_share: float = 0.3
    faults: float = 0.01
    batch: int = 256


@dataclass
class Worker:
    """A learner or an evaluator, and the matches that it holds."""

    name: str
    learner: int | None
    incarnation: int = 0
    position: int = 0
    progress: int = 0
    held: list[Assignment] = field(default_factory=list)
    results: list[MatchResult] = field(default_factory=list)
    is_late: bool = False


@dataclass
class Played:
    """What a simulation leaves beside its log."""

    assigned: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    predictions: dict[Book, Predictions] = field(
        default_factory=lambda: {Book.TRAIN: Predictions(), Book.EVAL: Predictions()}
    )
    acquire_seconds: float = 0.0
    report_seconds: float = 0.0
    seconds: float = 0.0
    simulated_seconds: float = 0.0


class Simulation:
    """One league in `folder`, which holds its log afterwards. A context manager."""

    def __init__(
        self, folder: Path, settings: MatchmakerSettings, scenario: Scenario, cast: Cast, plan: Plan
    ) -> None:
        self.scenario, self.cast, self.plan = scenario, cast, plan
        self.clock = ManualClock()
        self.server = MatchmakerServer(
            folder / "league.db", settings=settings, clock=self.clock, seed=plan.seed
        )
        self.client = DirectClient(self.server.service)
        self.played = Played()
        self._rng = np.random.default_rng([plan.seed, 1])
        self.learning = Learning(self)
        self._queue: list[tuple[float, int, Worker | None]] = []
        self._queued = 0

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def run(self, on_progress: Callable[[int], None] = lambda assigned: None) -> Played:
        """Plays all matches of the plan; `on_progress` is told how many are assigned."""
        started, began = time.perf_counter(), self.clock.now()
        self._enter()
        while self._queue:
            at, _, worker = heapq.heappop(self._queue)
            self.clock.advance(max(0.0, at - self.clock.now()))
            if worker is None:
                self._sweep()
            else:
                self._turn(worker)
                on_progress(self.played.assigned)
        self.played.seconds = time.perf_counter() - started
        self.played.simulated_seconds = self.clock.now() - began
        return self.played

    def _enter(self) -> None:
        """Players and workers begin."""
        players = self.cast.first(self.scenario)
        for start in range(0, len(players), 4096):
            self.client.register_players(players[start : start + 4096])
        workers = [
            Worker(f"learner-{player.name}", self.cast.number[player.name])
            for player in self.cast.learners
        ]
        workers += [Worker(f"evaluator-{place}", None) for place in range(EVALUATORS)]
        for worker in workers:
            self.open(worker)
            self._wait(worker, self._rng.uniform(0.0, TURN_SECONDS))
        self._wait(None, SWEEP_SECONDS)

    def _wait(self, worker: Worker | None, seconds: float) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (self.clock.now() + seconds, self._queued, worker))

    def open(self, worker: Worker) -> None:
        """A worker begins, or begins anew with another player."""
        player = "" if worker.learner is None else self.cast.names[worker.learner]
        opened = self.client.open_incarnation(worker.name, player, 0, worker.position)
        worker.incarnation, worker.held, worker.results, worker.progress = opened.number, [], [], 0

    def _sweep(self) -> None:
        self.server.sweep()
        self.server.find_copies()
        if self._queue:
            self._wait(None, SWEEP_SECONDS)

    def _turn(self, worker: Worker) -> None:
        """A worker's batch is over: it reports, or something goes wrong, and it takes the next
        one.
        """
        fault = self._fault() if worker.results and not worker.is_late else ""
        lease = self.server.league.settings.lease_seconds
        if fault:
            self.played.faults[fault] += 1
        if fault == "died":
            self._open_after(worker, 2.0 * lease)
            return
        if fault == "hung":
            worker.is_late = True
            self._wait(worker, 2.0 * lease)
            return
        for _ in range(2 if fault == "reported twice" else 1):
            self._report(worker)
        worker.is_late = False
        worker.held, worker.results = [], []
        if self.played.assigned < self.plan.matches:
            self._acquire(worker)
            self._wait(worker, TURN_SECONDS * self._rng.lognormal(0.0, 0.3))

    def _fault(self) -> str:
        dice = self._rng.random()
        if dice >= self.plan.faults:
            return ""
        return ("died", "hung", "reported twice")[int(3.0 * dice / self.plan.faults)]

    def _open_after(self, worker: Worker, seconds: float) -> None:
        """Gone with its matches until their leases have run out; it comes back as another
        incarnation.
        """
        self._wait(Worker(worker.name, worker.learner, position=worker.position), seconds)

    def _report(self, worker: Worker) -> None:
        if not worker.results:
            return
        began = time.perf_counter()
        verdicts, worker.position = self.client.report_results(worker.incarnation, worker.results)
        self.played.report_seconds += time.perf_counter() - began
        kinds = Counter(
            "duplicate" if verdict.duplicate else "accepted" if verdict.accepted else "refused"
            for verdict in verdicts
        )
        self.played.verdicts += kinds
        if worker.learner is not None and kinds["accepted"]:
            self.learning.played(worker, kinds["accepted"])

    def _acquire(self, worker: Worker) -> None:
        if not worker.incarnation:
            self.open(worker)
        count = min(self._batch(worker), self.plan.matches - self.played.assigned)
        worker.progress += 1
        began = time.perf_counter()
        if worker.learner is None:
            matches = self.client.acquire_pairings(worker.incarnation, self._pairings(count))
        else:
            self.client.heartbeat(worker.incarnation, worker.progress, 0, self.plan.mix)
            matches = self.client.acquire_matches(worker.incarnation, count, self.plan.mix)
        self.played.acquire_seconds += time.perf_counter() - began
        self.played.assigned += len(matches)
        worker.held = matches
        worker.results = self._outcomes(matches)

    def _batch(self, worker: Worker) -> int:
        """Matches a turn: the evaluators' such that their share of all is the plan's."""
        if worker.learner is not None:
            return self.plan.batch
        clean = self.plan.clean_share / (1.0 - self.plan.clean_share)
        return max(
            GAMES_A_PAIRING, round(self.plan.batch * len(self.cast.learners) * clean / EVALUATORS)
        )

    def _pairings(self, count: int) -> list[Pairing]:
        """Snapshots at random against bots and each other."""
        bots, first = self.scenario.bots, self.scenario.bots + len(self.cast.learners)
        frozen = len(self.cast.names) - first
        found = []
        for _ in range(max(1, count // GAMES_A_PAIRING)):
            player = (
                first + int(self._rng.integers(frozen)) if frozen else int(self._rng.integers(bots))
            )
            to_bot = bots > 0 and (frozen < 2 or self._rng.random() < BOT_SHARE)
            choice = self._rng.integers(bots if to_bot else frozen - 1)
            if to_bot:
                other = int(choice) if frozen else (player + 1) % bots
            else:
                other = first + (player - first + 1 + int(choice)) % frozen
            found.append(
                Pairing(
                    player=self.cast.names[player],
                    opponent=self.cast.names[other],
                    pairs=GAMES_A_PAIRING // 2,
                    book=Book.EVAL,
                    seed=int(self._rng.integers(1 << 62)),
                )
            )
        return found

    def _outcomes(self, matches: list[Assignment]) -> list[MatchResult]:
        seats_G2 = np.array(
            [[self.cast.number[seat.name] for seat in match.seats] for match in matches]
        )
        chances = self.scenario.chances(seats_G2[:, 0], seats_G2[:, 1])
        dice_G = self._rng.random(len(matches))
        drawn_G = dice_G < chances.win_G + chances.draw_G
        outcome_G = np.where(dice_G < chances.win_G, 1.0, np.where(drawn_G, 0.5, 0.0))
        self.played.predictions[matches[0].book].add(self.server.league.view, matches, outcome_G)
        return [
            self._result(match, float(outcome))
            for match, outcome in zip(matches, outcome_G, strict=True)
        ]

    def _result(self, match: Assignment, outcome: float) -> MatchResult:
        first, second = (
            SeatResult(player=seat.name, digest=seat.digest, step_start=step, step_end=step)
            for seat in match.seats
            for step in [
                self.learning.steps(seat.name) if seat.kind is PlayerKind.LIVE else seat.step
            ]
        )
        return MatchResult(
            match_id=match.match_id,
            lease_token=match.lease_token,
            outcome=outcome,
            frames=900,
            seats=(first, second),
            finished_at=self.clock.now(),
        )
