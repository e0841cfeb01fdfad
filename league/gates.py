"""Gates: what a candidate must pass to join the league, an exploiter or a snapshot of a main."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from league.exploiters import Generation, Patch


class GateState(Enum):
    """Of a gate, or of its test against one victim."""

    WAITING = "waiting"
    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class VictimGate:
    """The test of a candidate against one victim: what it has counted, the candidate's wins first.

    `pairs`: where it counts pairs of matches, how many scored 0, ½, 1, 1½ and 2; wins, draws and
    losses are then those of the pairs' matches. () where matches count one by one.
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
    """A candidate and its tests against its victims, one after the other.

    It is accepted when it passes against every victim. `generation` is None for a main's snapshot:
    its one victim is the newest member of its learner. `reason` says why it is not accepted; times
    are Unix seconds, `decided_at` 0 while the gate is open.
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
        """The test that is under way, None once the gate is decided."""
        return next((test for test in self.victims if test.state is GateState.OPEN), None)

    @property
    def is_exploiters(self) -> bool:
        """Whether it is an exploiter's gate; else a main's snapshot wants to be a member."""
        return self.generation is not None

    @property
    def was_passed_over(self) -> bool:
        """Whether a newer snapshot took its place before its gate had begun."""
        unplayed = not any(test.matches for test in self.victims)
        return not self.is_exploiters and self.state is GateState.UNDECIDED and unplayed

    @property
    def outcome(self) -> str:
        """The gate's outcome as a clause without a full stop."""
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
