"""A small real league whose main's snapshots must pass gates, and short ways to take one through
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from small_league import SmallLeague, played, small_league, snapshot

from league.exploiters import CandidateGate, GateState
from league.players import Assignment, Player, PlayerState

MIXES = {"league": {"snapshots": 1.0}}
Outcome = Callable[[Assignment, str], float]
"""Of seat 0, in a match of the candidate of this name."""


def wins_always(match: Assignment, who: str) -> float:
    return float(match.seats[0].name == who)


def loses_always(match: Assignment, who: str) -> float:
    return 1.0 - wins_always(match, who)


def draws_always(match: Assignment, who: str) -> float:
    return 0.5


def first_seat_wins(match: Assignment, who: str) -> float:
    """A game that the seat decides: every pair is even."""
    return 1.0


@dataclass
class AdmissionLeague:
    small: SmallLeague
    evaluator: int

    @property
    def client(self):  # type: ignore[no-untyped-def]
        return self.small.client

    def register(self, step: int, lineage: str = "main", **changes: object) -> Player:
        """What the learner freezes at `step`."""
        made = snapshot(step, lineage, **({"creator": f"learner-{lineage}"} | changes))
        registered, _ = self.client.register_players([made])
        return registered[0]

    def begun(self, step: int) -> None:
        """Registers a snapshot of the main and plays one pair of its gate, which is even."""
        self.register(step)
        self.play(f"main@{step}", first_seat_wins, 2)

    def gate(self, name: str) -> CandidateGate:
        return next(gate for gate in self.client.gates(certificates=True) if gate.candidate == name)

    def lease(self, name: str, matches: int = 8) -> list[Assignment]:
        return self.client.acquire_gate_matches(self.evaluator, name, matches)

    def play(self, name: str, outcome: Outcome, matches: int = 8) -> CandidateGate:
        results = [played(one, outcome(one, name)) for one in self.lease(name, matches)]
        self.client.report_results(self.evaluator, results)
        return self.client.decide_gate(self.evaluator, name)

    def to_the_end(self, name: str, outcome: Outcome) -> CandidateGate:
        gate = self.gate(name)
        while gate.state is GateState.OPEN:
            gate = self.play(name, outcome)
        return gate

    def state(self, name: str) -> PlayerState:
        return next(player.state for player in self.client.players() if player.name == name)

    def drawn(self, matches: int = 60) -> set[str]:
        """The main's opponents in training."""
        return {
            one.opponent.name
            for one in self.client.acquire_matches(self.small.open(), matches, "league")
        }

    def events(self, *kinds: str) -> list[str]:
        with self.small.server.store.read() as reader:
            return [event.text for event in reader.events_of(*kinds)]


@contextmanager
def admission_league(folder: Path, **settings: object) -> Iterator[AdmissionLeague]:
    """With the main's first snapshot, main@1000, which needed no gate."""
    chosen = {"mixes": MIXES, "admit": "gate"} | settings
    with small_league(folder, snapshots=(), **chosen) as small:  # type: ignore[arg-type]
        league = AdmissionLeague(small, small.client.open_incarnation("evaluator-0").number)
        if league.client.players()[-1].name == "main":
            league.register(1000)
        yield league
