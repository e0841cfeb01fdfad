"""A small real league whose main's snapshots must pass gates, and short ways through them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exploiter_league import ExploiterLeague, Outcome, loses_always, wins_always
from small_league import small_league, snapshot

from league.gates import CandidateGate
from league.players import Assignment, Player, PlayerState

__all__ = ["AdmissionLeague", "admission_league", "first_seat_wins", "loses_always", "wins_always"]
MIXES = {"league": {"snapshots": 1.0}}


def first_seat_wins(match: Assignment, who: str) -> float:
    """A game that the seat decides: every pair is even."""
    return 1.0


class AdmissionLeague(ExploiterLeague):
    def register(self, step: int, lineage: str = "main", **changes: object) -> Player:
        """What the learner freezes at `step`."""
        made = snapshot(step, lineage, **({"creator": f"learner-{lineage}"} | changes))
        registered, _ = self.client.register_players([made])
        return registered[0]

    def begun(self, step: int) -> None:
        """Registers a snapshot of the main and plays one pair of its gate, which is even."""
        self.register(step)
        self.play(self.gate(f"main@{step}"), first_seat_wins, 2)

    def gate(self, name: str) -> CandidateGate:
        return next(gate for gate in self.client.gates(certificates=True) if gate.candidate == name)

    def lease(self, name: str, matches: int = 8) -> list[Assignment]:
        return self.client.acquire_gate_matches(self.evaluator, name, matches)

    def decide(self, name: str, outcome: Outcome) -> CandidateGate:
        return self.to_the_end(self.gate(name), outcome)

    def state(self, name: str) -> PlayerState:
        return self.player(name).state

    def drawn(self, matches: int = 60) -> set[str]:
        """The main's opponents in training."""
        found = self.client.acquire_matches(self.small.open(), matches, "league")
        return {one.opponent.name for one in found}


@contextmanager
def admission_league(folder: Path, **settings: object) -> Iterator[AdmissionLeague]:
    """With the main's first snapshot, main@1000, which needed no gate."""
    chosen = {"mixes": MIXES, "admit": "gate"} | settings
    with small_league(folder, snapshots=(), **chosen) as small:  # type: ignore[arg-type]
        league = AdmissionLeague(small, small.client.open_incarnation("evaluator-0").number)
        if league.client.players()[-1].name == "main":
            league.register(1000)
        yield league
