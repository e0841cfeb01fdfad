"""The rules of a gate, and a gate before its first match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from league.exploiters import Generation
from league.gates import CandidateGate, GateState, VictimGate
from league.stats.gates import Gate

STAKES = 5.0
"""Where the game names no bound, margins are taken to be this many mean ones at most, until one is
larger.
"""


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """Fixed when a gate opens: its test before the first result, the newest assignment's ordinal,
    which its matches come `after`, and the seed of their seeds. In games with payoffs results count
    by the mean `stake` of training matches (0 in logs of versions that counted wins) and by the
    largest margin that the game allows, `most`: 0 where the game names none, and None in logs of
    versions that took `STAKES` stakes for it.
    """

    gate: Gate
    after: int
    seed: int
    stake: float = 0.0
    most: float | None = None

    def most_of(self, margins: Iterable[float]) -> float:
        """The largest margin by which results count, given those of the gate's matches; 0 where
        results count by wins.
        """
        if self.most is None:
            return STAKES * self.stake
        return self.most or max(STAKES * self.stake, *map(abs, margins), 0.0)


def opened_gate(
    candidate: str, generation: Generation | None, victims: Sequence[str], at: float
) -> CandidateGate:
    """A gate before its first match."""
    return CandidateGate(
        candidate=candidate,
        generation=generation,
        state=GateState.OPEN,
        victims=tuple(VictimGate(victim=name, state=GateState.WAITING) for name in victims),
        opened_at=at,
    )
