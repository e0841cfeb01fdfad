"""Plays a simulated league: workers lease matches, sometimes fail, report, and learn.

The servicer, the store and the log are the real ones. Only the clock is moved by hand, and outcomes
come from a scenario. The same plan gives the same league.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from league.clock import ManualClock
from league.players import Assignment, Book, MatchResult, Pairing, Player, PlayerKind, Role
from league.players import SeatResult as Seat
from league.rpc.client import MatchmakerClient
from league.stats.ratings import BETA
from league.stats.ratings.belief import draw_margin
from matchmaker import limits
from matchmaker.api.server import MatchmakerServer
from matchmaker.api.service import MatchmakerService
from matchmaker.sampling import roles
from matchmaker.sampling.candidates import Pool, beliefs_of, situation_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.roster import Roster
from matchmaker.simulate.scenarios import Array, Drift, Scenario

TURN_SECONDS = 120.0
"""Mean time that a batch of matches takes."""
SWEEP_SECONDS = 30.0
EVALUATORS = 2
GAMES_A_PAIRING = 4
BOT_SHARE = 0.3
"""Part of the clean matches that are against a bot; the rest are between two snapshots."""
STEPS_A_MATCH = 460
"""Learner steps of a match, as in matches of brawl."""
_REGISTERED_AT_ONCE = 4096


class DirectClient(MatchmakerClient):
    """The matchmaker's client without a socket: it calls the servicer in this process."""

    def __init__(self, service: MatchmakerService) -> None:
        self._service = service

    def close(self) -> None:
        """Does nothing, as there is no connection."""

    def _call(self, method: str, request: Any) -> Any:
        return getattr(self._service, method)(request, None)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a league is simulated.

    Attributes:
        matches: number of assignments, in both books.
        clean_share: part of them that evaluators play.
        faults: share of a worker's turns that fail: a third each dies, hangs, reports twice.
        batch: matches a turn.
        mix: the mix that learners ask for.
    """

    matches: int
    seed: int
    mix: str = "league"
    clean_share: float = 0.3
    faults: float = 0.01
    batch: int = 256


@dataclass
class Worker:
    """A learner or an evaluator, and the results of the matches that it has leased."""

    name: str
    learner: int | None
    incarnation: int = 0
    position: int = 0
    progress: int = 0
    results: list[MatchResult] = field(default_factory=list)
    is_late: bool = False


@dataclass
class Played:
    """What a simulation counts outside its log.

    Attributes:
        predicted, scored: by book, seat 0's score of each batch as the ratings predicted it when
            the matches were assigned, and as played; without self-play.
        snapshots, resets: taken by learners, and how often learners started again.
    """

    assigned: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    predicted: dict[Book, list[Array]] = field(default_factory=lambda: defaultdict(list))
    scored: dict[Book, list[Array]] = field(default_factory=lambda: defaultdict(list))
    snapshots: int = 0
    resets: int = 0
    acquire_seconds: float = 0.0
    report_seconds: float = 0.0
    seconds: float = 0.0
    simulated_seconds: float = 0.0


class Simulation:
    """One league in `folder`, which holds its log afterwards. A context manager."""

    def __init__(
        self,
        folder: Path,
        settings: MatchmakerSettings,
        scenario: Scenario,
        roster: Roster,
        plan: Plan,
    ) -> None:
        self.scenario, self.roster, self.plan = scenario, roster, plan
        self.clock = ManualClock()
        self.server = MatchmakerServer(
            folder / "league.db", settings=settings, clock=self.clock, seed=plan.seed
        )
        self.client = DirectClient(self.server.service)
        self.played = Played()
        self._rng = np.random.default_rng([plan.seed, 1])
        self._reset_rng = np.random.default_rng([plan.seed, 2])
        self._matches: Counter[str] = Counter()
        self._since_snapshot: Counter[str] = Counter()
        self._generation: dict[int, int] = defaultdict(lambda: 1)
        self._queue: list[tuple[float, int, Worker | None]] = []
        self._queued = 0

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def run(self, on_progress: Callable[[int], None] = lambda assigned: None) -> Played:
        """Plays all matches of the plan; `on_progress` gets the number assigned so far."""
        started, began = time.perf_counter(), self.clock.now()
        self._start()
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

    def _start(self) -> None:
        players = self.roster.first(self.scenario)
        for start in range(0, len(players), _REGISTERED_AT_ONCE):
            self.client.register_players(players[start : start + _REGISTERED_AT_ONCE])
        workers = [
            Worker(f"learner-{player.name}", self.roster.number[player.name])
            for player in self.roster.learners
        ]
        workers += [Worker(f"evaluator-{place}", None) for place in range(EVALUATORS)]
        for worker in workers:
            self._open(worker)
            self._wait(worker, self._rng.uniform(0.0, TURN_SECONDS))
        self._wait(None, SWEEP_SECONDS)

    def _wait(self, worker: Worker | None, seconds: float) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (self.clock.now() + seconds, self._queued, worker))

    def _open(self, worker: Worker) -> None:
        """Opens an incarnation for a worker, or for its new player."""
        player = "" if worker.learner is None else self.roster.names[worker.learner]
        opened = self.client.open_incarnation(worker.name, player, 0, worker.position)
        worker.incarnation, worker.results, worker.progress = opened.number, [], 0

    def _sweep(self) -> None:
        self.server.sweep()
        self.server.analyse()
        if self._queue:
            self._wait(None, SWEEP_SECONDS)

    def _turn(self, worker: Worker) -> None:
        """Lets a worker report its batch, or fail, and lease the next one."""
        fault = self._fault() if worker.results and not worker.is_late else ""
        lease = limits.LEASE_SECONDS
        if fault:
            self.played.faults[fault] += 1
        if fault == "died":  # it comes back as another incarnation once its leases have expired
            again = Worker(worker.name, worker.learner, position=worker.position)
            self._wait(again, 2.0 * lease)
            return
        if fault == "hung":
            worker.is_late = True
            self._wait(worker, 2.0 * lease)
            return
        for _ in range(2 if fault == "reported twice" else 1):
            self._report(worker)
        worker.is_late = False
        worker.results = []
        if self.played.assigned < self.plan.matches:
            self._acquire(worker)
            self._wait(worker, TURN_SECONDS * self._rng.lognormal(0.0, 0.3))

    def _fault(self) -> str:
        dice = self._rng.random()
        if dice >= self.plan.faults:
            return ""
        return ("died", "hung", "reported twice")[int(3.0 * dice / self.plan.faults)]

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
            self._learn(worker, worker.learner, kinds["accepted"])

    def _acquire(self, worker: Worker) -> None:
        if not worker.incarnation:
            self._open(worker)
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
        worker.results = self._results(matches)

    def _batch(self, worker: Worker) -> int:
        """Returns the matches of a turn; evaluators together play the plan's share of all."""
        if worker.learner is not None:
            return self.plan.batch
        clean = self.plan.clean_share / (1.0 - self.plan.clean_share)
        wanted = round(self.plan.batch * len(self.roster.learners) * clean / EVALUATORS)
        return max(GAMES_A_PAIRING, wanted)

    def _pairings(self, count: int) -> list[Pairing]:
        """Pairs snapshots at random with bots and with each other."""
        bots, first = self.scenario.bots, self.scenario.bots + len(self.roster.learners)
        frozen = len(self.roster.names) - first
        found = []
        for _ in range(max(1, count // GAMES_A_PAIRING)):
            number = self._rng.integers(frozen) if frozen else self._rng.integers(bots)
            player = first + int(number) if frozen else int(number)
            to_bot = bots > 0 and (frozen < 2 or self._rng.random() < BOT_SHARE)
            choice = int(self._rng.integers(bots if to_bot else frozen - 1))
            if to_bot:
                other = choice if frozen else (player + 1) % bots
            else:
                other = first + (player - first + 1 + choice) % frozen
            found.append(
                Pairing(
                    player=self.roster.names[player],
                    opponent=self.roster.names[other],
                    pairs=GAMES_A_PAIRING // 2,
                    book=Book.EVAL,
                    seed=int(self._rng.integers(1 << 62)),
                )
            )
        return found

    def _results(self, matches: Sequence[Assignment]) -> list[MatchResult]:
        seats_G2 = np.array([[self.roster.number[s.name] for s in m.seats] for m in matches])
        chances = self.scenario.chances(seats_G2[:, 0], seats_G2[:, 1])
        dice_G = self._rng.random(len(matches))
        drawn_G = dice_G < chances.win_G + chances.draw_G
        outcome_G = np.where(dice_G < chances.win_G, 1.0, np.where(drawn_G, 0.5, 0.0))
        self._predict(matches, outcome_G)
        return [
            MatchResult(
                match_id=match.match_id,
                lease_token=match.lease_token,
                outcome=float(outcome),
                frames=900,
                seats=(self._seat(match.seats[0]), self._seat(match.seats[1])),
                finished_at=self.clock.now(),
            )
            for match, outcome in zip(matches, outcome_G, strict=True)
        ]

    def _seat(self, player: Player) -> Seat:
        is_live = player.kind is PlayerKind.LIVE
        step = STEPS_A_MATCH * self._matches[player.name] if is_live else player.step
        return Seat(player=player.name, digest=player.digest, step_start=step, step_end=step)

    def _predict(self, matches: Sequence[Assignment], outcome_G: Array) -> None:
        """Records what the ratings predict of matches of one book now, and their outcomes."""
        rated = [place for place, match in enumerate(matches) if _is_rated(match)]
        if not rated:
            return
        book, view = matches[0].book, self.server.league.view
        with view.lock:
            table = view.tables[book]
            mu_2G, variance_2G = np.zeros((2, 2, len(rated)))
            for seat in (0, 1):
                players = [matches[place].seats[seat] for place in rated]
                columns = table.columns([player.name for player in players])
                mu_2G[seat], variance_2G[seat] = columns.mu_N, columns.variance_N
            if book is Book.TRAIN:  # the sampler goes by the opponents' clean ratings
                live = matches[0].seats[matches[0].learner_seat]
                pool = Pool(self.server.league.settings, live, view.players, view.tables)
                other_G = np.array([1 - matches[place].learner_seat for place in rated])
                opponents = [matches[place].opponent for place in rated]
                place_G = np.arange(len(rated))
                mu_2G[other_G, place_G], variance_2G[other_G, place_G] = beliefs_of(opponents, pool)
            epoch = table.epoch
        c_G = np.sqrt(2 * BETA**2 + variance_2G.sum(axis=0))
        t_G, e_G = (mu_2G[0] - mu_2G[1]) / c_G, draw_margin(epoch.draw_probability) / c_G
        self.played.predicted[book].append(epoch.link.score(t_G, e_G))
        self.played.scored[book].append(outcome_G[rated])

    @property
    def _interval(self) -> int:
        """Matches of a learner between two snapshots, such that the scenario's players suffice."""
        spare = self.scenario.players - self.scenario.bots - len(self.roster.learners)
        trained = self.plan.matches * (1.0 - self.plan.clean_share)
        return max(1, int(trained / max(1, spare)))

    def _learn(self, worker: Worker, number: int, matches: int) -> None:
        """Lets a learner that drifts climb, and snapshots it when that is due."""
        if not isinstance(self.scenario, Drift):
            return
        name = self.roster.names[number]
        self.scenario.advance(number, matches)
        self._matches[name] += matches
        self._since_snapshot[name] += matches
        if len(self.roster.names) < self.scenario.players and self._is_snapshot_due(name):
            self._snapshot(worker, number, self.scenario)

    def _is_snapshot_due(self, name: str) -> bool:
        settings, view = self.server.league.settings, self.server.league.view
        since = self._since_snapshot[name]
        if settings.roles == "mix":
            return since >= self._interval
        situation = situation_of(Pool(settings, view.players[name], view.players, view.tables))
        return roles.snapshot_due(settings.roles, situation, since, self._interval)

    def _snapshot(self, worker: Worker, number: int, scenario: Drift) -> None:
        """Saves a snapshot; then the learner starts again if its role says so."""
        name, settings = self.roster.names[number], self.server.league.settings
        learner = next(player for player in self.roster.learners if player.name == name)
        player = self.roster.snapshot(learner, STEPS_A_MATCH * self._matches[name])
        base = name.partition("-g")[0]
        scenario.copied(number, self.roster.number[player.name])
        scenario.group_N[self.roster.number[player.name]] = base
        self.client.register_players([player], worker.incarnation)
        self._since_snapshot[name] = 0
        self.played.snapshots += 1
        if settings.roles == "mix" or learner.role is Role.MAIN:
            return
        if roles.resets_after_snapshot(settings.roles, learner.role, self._reset_rng.random()):
            scenario.reset(number)
            self.played.resets += 1
            self._generation[number] += 1
            # a new player starts with empty payoff rows and a new rating
            following = replace(learner, name=f"{base}-g{self._generation[number]}")
            self.roster.replace_learner(number, learner, following)
            self.client.register_players([following])
            self._open(worker)


def _is_rated(match: Assignment) -> bool:
    return match.seats[0].name != match.seats[1].name
