"""Describes gates: tests that a new snapshot, the candidate, must pass to join the league.

A candidate plays matches against other players, its victims. Exploiters' snapshots always need to
pass a gate. Snapshots of mains (ordinary learners) need to pass a gate if `admit = "gate"` is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from league.exploiters import Generation, Patch


class GateState(Enum):
    """Names the state of a gate, or of the test against one of its victims."""

    WAITING = "waiting"
    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class VictimGate:
    """Describes the test of a candidate against a victim, from the candidate's point of view.

    Some tests count pairs of matches. Then `pairs` holds five counts: the number of pairs in which
    the candidate scored 0, ½, 1, 1½ and 2 points. `wins`, `draws` and `losses` count the single
    matches of these pairs. In a test that counts single matches, `pairs` is ().
    """

    victim: str
    state: GateState
    wins: int = 0
    draws: int = 0
    losses: int = 0
    llr: float = 0.0
    certificate_json: str = ""
    pairs: tuple[int, ...] = ()

    @property
    def matches(self) -> int:
        return self.wins + self.draws + self.losses


@dataclass(frozen=True, kw_only=True)
class CandidateGate:
    """Describes a candidate's gate: a series of tests. The candidate must pass all of them.

    Attributes:
        generation: the exploiter's generation. It is None for a main's snapshot, whose only victim
            is the newest admitted snapshot of the same main.
        reason: why the candidate is not accepted.
        opened_at, decided_at: Unix seconds. `decided_at` is 0 while the gate is open.
    """

    candidate: str
    generation: Generation | None
    state: GateState
    victims: tuple[VictimGate, ...]
    reason: str = ""
    patches: tuple[Patch, ...] = ()
    opened_at: float = 0.0
    decided_at: float = 0.0

    @property
    def playing(self) -> VictimGate | None:
        """Returns the test that is being played, or None if there is no such test."""
        return next((test for test in self.victims if test.state is GateState.OPEN), None)

    @property
    def is_exploiters(self) -> bool:
        """Returns whether the candidate is an exploiter's snapshot, not a main's."""
        return self.generation is not None

    @property
    def was_passed_over(self) -> bool:
        """Returns whether the gate ended without a match, because a newer snapshot was made."""
        unplayed = not any(test.matches for test in self.victims)
        return not self.is_exploiters and self.state is GateState.UNDECIDED and unplayed

    @property
    def outcome(self) -> str:
        """Returns the gate's outcome as a sentence without a full stop."""
        accepted = (
            "is accepted as an exploiter" if self.is_exploiters else "is admitted to the league"
        )
        said = {
            GateState.ACCEPTED: accepted,
            GateState.REJECTED: "is rejected",
            GateState.UNDECIDED: "is not accepted",
        }.get(self.state, "waits for its gate")
        tests = [test for test in self.victims if test.matches]
        counts = "; ".join(
            f"{test.wins}-{test.draws}-{test.losses} against {test.victim}" for test in tests
        )
        why = f": {self.reason}" if self.reason else ""
        return f"{self.candidate} {said}{why}{f' ({counts})' if counts else ''}"
