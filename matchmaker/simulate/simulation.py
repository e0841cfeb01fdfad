"""Plays a simulated league: workers lease matches, sometimes fail, report, and learn.

Everything is real except for the outcomes and the clock, which the simulation moves. The same plan
gives the same league.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from league.clock import ManualClock
from league.errors import InvalidInput
from league.ids import SnapshotName
from league.players import Assignment, Book, MatchResult, Pairing, Player, PlayerKind, Role
from league.players import SeatResult as Seat
from league.rpc.client import MatchmakerClient
from league.stats.ratings import BETA
from league.stats.ratings.belief import draw_margin
from matchmaker import limits
from matchmaker.api.server import MatchmakerServer
from matchmaker.api.service import MatchmakerService
from matchmaker.sampling import roles
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.sampling.mixes import Candidates, weights_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.scenarios import BOTS, Array, Drift, Forget, scenario_of

MIX = "league"
"""The mix that learners ask for."""
TURN_SECONDS = 120.0
"""Mean seconds that a batch of matches takes."""
SWEEP_SECONDS = 30.0
EVALUATORS = 2
GAMES_A_PAIRING = 4
BOT_SHARE = 0.3
"""Share of the clean matches (both players frozen) that are against a bot. The other clean matches
are between two snapshots.
"""
STEPS_A_MATCH = 460
"""Learner steps per match. A match of brawl takes about as many steps."""
APART_STEPS = 2_000_000
"""Learner steps between two snapshots. Snapshots closer to each other would be too similar."""
GROWN = 3.0
"""A forgotten opponent counts as noticed once its PFSP weight has grown by this factor."""
_REGISTERED_AT_ONCE = 4096


class DirectClient(MatchmakerClient):
    """Works like the matchmaker's client, but calls a servicer in this process without a socket."""

    def __init__(self, service: MatchmakerService) -> None:
        self._service, self._runner = service, asyncio.Runner()

    def close(self) -> None:
        """Closes the event loop in which the calls run."""
        self._runner.close()

    def _call(self, method: str, request: Any) -> Any:
        reply = getattr(self._service, method)(request, None)
        return self._runner.run(reply) if asyncio.iscoroutine(reply) else reply


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Describes a simulation.

    Attributes:
        players: all players, with bots and learners.
        matches: matches to assign.
        clean_share: share of matches that evaluators play.
        faults: share of the workers' turns that fail. In a turn, a worker reports a batch of
            matches and leases the next. If a turn fails, the worker dies, hangs, or reports twice,
            each with probability 1/3.
        batch: number of matches that a learner leases in a turn.
    """

    scenario: str = "elo"
    players: int = 60
    matches: int = 20_000
    learners: int = 3
    seed: int = 0
    clean_share: float = 0.3
    faults: float = 0.01
    batch: int = 256


@dataclass
class Worker:
    """Describes a learner's worker or an evaluator, with the results that it has to report.

    Attributes:
        learner: number of the learner, None for an evaluator.
    """

    name: str
    learner: int | None
    incarnation: int = 0
    position: int = 0
    progress: int = 0
    results: list[MatchResult] = field(default_factory=list)
    is_late: bool = False


@dataclass
class Forgotten:
    """Describes an opponent to which a learner begins to lose.

    Attributes:
        weight: the opponent's PFSP weight before the learner began to lose to it.
        meetings: number of matches between learner and opponent since then.
        noticed_after: number of these matches after which the weight was `GROWN` times as large,
            None until then.
    """

    opponent: str
    weight: float
    meetings: int = 0
    noticed_after: int | None = None


class Simulation:
    """Plays a league in `folder`, which holds its log afterwards. Use it as a context manager.

    A player has the same number here and in the scenario.

    Attributes:
        predicted: for each book (kind of match), the scores that the ratings predicted when matches
            were assigned. A score belongs to the learner, or in a clean match to the first player.
            Self-play is left out.
        scored: the actual scores of the same matches.
        expected: for each assigned match of a learner, the score that the sampler expected.
        true: the true expected scores of the same matches.
    """

    def __init__(self, folder: Path, settings: MatchmakerSettings, plan: Plan) -> None:
        if settings.admit == "gate":
            raise InvalidInput(
                'matchmaker.admit = "gate" can\'t be simulated, for nothing plays the gates: '
                "leave it out"
            )
        self.plan = plan
        rng = np.random.default_rng([plan.seed, 0])
        self.scenario = scenario_of(plan.scenario, rng, plan.players, plan.learners)
        self.learners = _learners(plan.learners, settings)
        learners = [player.name for player in self.learners]
        self.names = [*BOTS, *learners]
        self.number = {name: number for number, name in enumerate(self.names)}
        settings = _fitted(settings, self.scenario.players)
        self.clock = ManualClock()
        self.server = MatchmakerServer(
            folder / "league.db", settings=settings, clock=self.clock, seed=plan.seed
        )
        self.league = self.server.league
        self.client = DirectClient(self.server.service)
        self.assigned = self.snapshots = 0
        self.seconds = 0.0
        self.verdicts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.predicted: dict[Book, list[Array]] = defaultdict(list)
        self.scored: dict[Book, list[Array]] = defaultdict(list)
        self.expected: list[Array] = []
        self.true: list[Array] = []
        self.forgotten: dict[str, Forgotten] = {}
        self._rng = np.random.default_rng([plan.seed, 1])
        self._matches: Counter[str] = Counter()
        self._since_snapshot: Counter[int] = Counter()
        self._queue: list[tuple[float, int, Worker | None]] = []
        self._queued = 0

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.server.stop()

    def run(self) -> None:
        """Plays all matches of the plan."""
        started = time.perf_counter()
        self._start()
        while self._queue:
            at, _, worker = heapq.heappop(self._queue)
            self.clock.advance(max(0.0, at - self.clock.now()))
            if worker is None:
                self._sweep()
            else:
                self._turn(worker)
        self.seconds = time.perf_counter() - started

    def _start(self) -> None:
        """Registers players and opens the workers' incarnations. A scenario that drifts has no
        snapshots yet.
        """
        game = self.league.settings.game
        players = [Player(name=name, game=game, kind=PlayerKind.BOT) for name in BOTS]
        players += self.learners
        workers = [
            Worker(f"learner-{learner.name}", self.number[learner.name])
            for learner in self.learners
        ]
        workers += [Worker(f"evaluator-{number}", None) for number in range(EVALUATORS)]
        if not isinstance(self.scenario, Drift):
            for number in range(self.scenario.players - len(players)):
                turn, learner = divmod(number, len(self.learners))
                parent = self.learners[learner]
                name = str(SnapshotName(parent.name, APART_STEPS * (1 + turn)))
                players.append(self._frozen(name, parent.name, parent.role))
        for start in range(0, len(players), _REGISTERED_AT_ONCE):
            self.client.register_players(players[start : start + _REGISTERED_AT_ONCE])
        for worker in workers:
            self._open(worker)
            self._wait(worker, self._rng.uniform(0.0, TURN_SECONDS))
        self._wait(None, SWEEP_SECONDS)

    def _frozen(self, name: str, parent: str, role: Role) -> Player:
        """Returns a snapshot with the next number."""
        self.number[name] = len(self.names)
        self.names.append(name)
        return Player(
            name=name,
            game=self.league.settings.game,
            kind=PlayerKind.SNAPSHOT,
            role=role,
            parent=parent,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            step=SnapshotName.parse(name).step,
        )

    def _wait(self, worker: Worker | None, seconds: float) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (self.clock.now() + seconds, self._queued, worker))

    def _open(self, worker: Worker) -> None:
        player = "" if worker.learner is None else self.names[worker.learner]
        opened = self.client.open_incarnation(worker.name, player, 0, worker.position)
        worker.incarnation, worker.results, worker.progress = opened.number, [], 0

    def _sweep(self) -> None:
        self.server.sweep()
        self.server.analyse()
        if self._queue:
            self._wait(None, SWEEP_SECONDS)

    def _turn(self, worker: Worker) -> None:
        """Lets a worker report its batch of matches and lease the next batch, or makes the worker
        fail.
        """
        fault = self._fault() if worker.results and not worker.is_late else ""
        if fault:
            self.faults[fault] += 1
        if fault == "died":  # it returns as a new incarnation after its leases have expired
            worker = Worker(worker.name, worker.learner, position=worker.position)
        if fault in ("died", "hung"):
            worker.is_late = fault == "hung"
            self._wait(worker, 2.0 * limits.LEASE_SECONDS)
            return
        for _ in range(2 if fault == "reported twice" else 1):
            self._report(worker)
        worker.is_late, worker.results = False, []
        if self.assigned < self.plan.matches:
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
        verdicts, worker.position = self.client.report_results(worker.incarnation, worker.results)
        kinds = Counter(
            "duplicate" if verdict.duplicate else "accepted" if verdict.accepted else "refused"
            for verdict in verdicts
        )
        self.verdicts += kinds
        if worker.learner is not None and kinds["accepted"]:
            self._learn(worker, worker.learner, kinds["accepted"])

    def _acquire(self, worker: Worker) -> None:
        if not worker.incarnation:
            self._open(worker)
        left = self.plan.matches - self.assigned
        worker.progress += 1
        if worker.learner is None:
            # the evaluators together play the plan's share of all matches
            clean = self.plan.clean_share / (1.0 - self.plan.clean_share)
            count = round(self.plan.batch * len(self.learners) * clean / EVALUATORS)
            pairings = self._pairings(min(max(GAMES_A_PAIRING, count), left))
            matches = self.client.acquire_pairings(worker.incarnation, pairings)
        else:
            self.client.heartbeat(worker.incarnation, worker.progress, 0, MIX)
            count = min(self.plan.batch, left)
            matches = self.client.acquire_matches(worker.incarnation, count, MIX)
            self._compare(self.names[worker.learner], worker.learner, matches)
        self.assigned += len(matches)
        worker.results = self._results(matches)

    def _candidates(self, learner: str, opponents: Sequence[str]) -> Candidates:
        view = self.league.view
        with view.lock:
            pool = Pool(self.league.settings, view.players[learner], view.players, view.tables)
            return candidates_of([view.players[name] for name in opponents], pool)

    def _compare(self, learner: str, number: int, matches: Sequence[Assignment]) -> None:
        """Records, for each assigned match of a learner, the score that the sampler expects and the
        true expected score.
        """
        names = [match.opponent.name for match in matches if match.opponent.name != learner]
        if not names:
            return
        self.expected.append(self._candidates(learner, names).chances())
        others_G = np.array([self.number[name] for name in names])
        self.true.append(self.scenario.chances(np.full(len(names), number), others_G).score_G)
        lost = self.forgotten.get(learner)
        if lost is not None and lost.noticed_after is None:
            if self._pfsp_weight(learner, lost.opponent) >= GROWN * lost.weight:
                lost.noticed_after = lost.meetings
            lost.meetings += names.count(lost.opponent)

    def _pfsp_weight(self, learner: str, opponent: str) -> float:
        return float(weights_of("pfsp_hard", self._candidates(learner, [opponent]))[0])

    def _pairings(self, count: int) -> list[Pairing]:
        """Pairs snapshots at random with bots and with each other."""
        bots, first = len(BOTS), len(BOTS) + len(self.learners)
        frozen = len(self.names) - first
        pairings = []
        for _ in range(max(1, count // GAMES_A_PAIRING)):
            player = first + int(self._rng.integers(frozen)) if frozen else 0
            if frozen < 2 or self._rng.random() < BOT_SHARE:
                other = int(self._rng.integers(0 if frozen else 1, bots))
            else:
                other = first + (player - first + int(self._rng.integers(1, frozen))) % frozen
            pairings.append(
                Pairing(
                    player=self.names[player],
                    opponent=self.names[other],
                    pairs=GAMES_A_PAIRING // 2,
                    book=Book.EVAL,
                    seed=int(self._rng.integers(1 << 62)),
                )
            )
        return pairings

    def _results(self, matches: Sequence[Assignment]) -> list[MatchResult]:
        seats_G2 = np.array([[self.number[seat.name] for seat in m.seats] for m in matches])
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
        """Records the predicted and the actual scores of matches, which must all be of the same
        kind (book).
        """
        score_G = np.where([m.learner_seat == 1 for m in matches], 1.0 - outcome_G, outcome_G)
        is_rated_G = np.array([match.seats[0].name != match.seats[1].name for match in matches])
        matches = [match for match, is_rated in zip(matches, is_rated_G, strict=True) if is_rated]
        if not matches:
            return
        book, view = matches[0].book, self.league.view
        seats = [max(0, match.learner_seat) for match in matches]  # -1 in a clean match
        players = [match.seats[seat].name for match, seat in zip(matches, seats, strict=True)]
        opponents = [match.seats[1 - seat].name for match, seat in zip(matches, seats, strict=True)]
        with view.lock:
            table = view.tables[book]
            own, other = table.columns(players), table.columns(opponents)
            epoch = table.epoch
        c_G = np.sqrt(2 * BETA**2 + own.variance_N + other.variance_N)
        t_G, e_G = (own.mu_N - other.mu_N) / c_G, draw_margin(epoch.draw_probability) / c_G
        self.predicted[book].append(epoch.link.score(t_G, e_G))
        self.scored[book].append(score_G[is_rated_G])

    def _learn(self, worker: Worker, number: int, matches: int) -> None:
        """Lets a learner improve, and occasionally saves a snapshot of it. In a scenario without
        drift, learners do not change.
        """
        scenario, learner = self.scenario, self.learners[number - len(BOTS)]
        if not isinstance(scenario, Drift):
            return
        scenario.advance(number, matches)
        self._matches[learner.name] += matches
        if isinstance(scenario, Forget) and number not in scenario.forgotten:
            share = (1.0 - self.plan.clean_share) / len(self.learners)
            if self._matches[learner.name] >= self.plan.matches * share / 2.0:
                opponents = [n for n in self.names if n in BOTS or n.startswith(f"{learner.name}@")]
                lost = scenario.forget(number, np.array([self.number[name] for name in opponents]))
                if lost is not None:
                    weight = self._pfsp_weight(learner.name, self.names[lost])
                    self.forgotten[learner.name] = Forgotten(self.names[lost], weight)
        self._since_snapshot[number] += matches
        # matches between two snapshots, chosen so that the scenario gets all its players
        spare = scenario.players - len(BOTS) - len(self.learners)
        interval = max(1, int(self.plan.matches * (1.0 - self.plan.clean_share) / spare))
        if self._since_snapshot[number] < interval or len(self.names) == scenario.players:
            return
        name = str(SnapshotName(learner.name, STEPS_A_MATCH * self._matches[learner.name]))
        player = self._frozen(name, learner.name, learner.role)
        scenario.strength_N[self.number[name]] = scenario.strength_N[number]
        scenario.group_N[self.number[name]] = learner.name
        self.client.register_players([player], worker.incarnation)
        self._since_snapshot[number] = 0
        self.snapshots += 1


def _learners(count: int, settings: MatchmakerSettings) -> list[Player]:
    by_turn = roles.LEARNING if settings.roles != "mix" else (Role.MAIN,)
    learners = []
    for number in range(count):
        turn, role = number // len(by_turn), by_turn[number % len(by_turn)]
        name = role.value.replace("_", "-") + (f"-{turn + 1}" if turn else "")
        learners.append(Player(name=name, game=settings.game, kind=PlayerKind.LIVE, role=role))
    return learners


def _fitted(settings: MatchmakerSettings, players: int) -> MatchmakerSettings:
    """Returns settings with room for all players. A mix that names no bots gets `BOTS`."""
    changes: dict[str, Any] = {"max_saved": max(settings.max_saved, players)}
    if not set(settings.mixes.get(MIX, {})) & set(BOTS):
        mix = {"snapshots": 7.0} | dict.fromkeys(BOTS, 3.0 / len(BOTS))
        changes["mixes"] = settings.mixes | {MIX: mix}
    return settings.model_copy(update=changes)
