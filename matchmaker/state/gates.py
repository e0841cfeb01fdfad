"""Defines the rules of gates, the tests that candidates must pass to become opponents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from league.exploiters import Generation
from league.gates import CandidateGate, GateState, VictimGate
from league.stats.gates import Gate

STAKES = 5.0
"""If the game states no largest payoff margin, a gate (a candidate's test) assumes that the largest
margin is this many times the mean margin. If a match of the gate has a larger margin, the gate uses
that margin instead.
"""


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """Fixes the rules of a gate when it opens.

    Attributes:
        gate: the sequential test, without results.
        after: ordinal (number) of the newest match that was assigned before the gate opened.
        seed: seed from which the matches' seeds are derived.
        stake: mean size of the payoff margins in training matches. In games with payoffs, a draw
            counts like a result with this margin. Logs of older versions, which counted wins
            instead, have the value 0.
        most: largest payoff margin that the game allows, 0 if the game states no bound. Logs of
            older versions, which used `STAKES` times `stake` instead, have the value None.
    """

    gate: Gate
    after: int
    seed: int
    stake: float = 0.0
    most: float | None = None

    def most_of(self, margins: Iterable[float]) -> float:
        """Returns the smallest margin with which a result is certain to count, or 0 if all results
        count. A result with a smaller margin counts with a probability that is proportional to the
        margin (`league.stats.gates.gate.settled`).

        Args:
            margins: the margins of the gate's matches.
        """
        if self.most is None:
            return STAKES * self.stake
        return self.most or max(STAKES * self.stake, *map(abs, margins), 0.0)


def opened_gate(
    candidate: str, generation: Generation | None, victims: Sequence[str], at: float
) -> CandidateGate:
    """Makes the gate (test) of a candidate, which opens now and has no matches yet. `at` is the
    time in Unix seconds. `generation` is None for a main's candidate.
    """
    return CandidateGate(
        candidate=candidate,
        generation=generation,
        state=GateState.OPEN,
        victims=tuple(VictimGate(victim=name, state=GateState.WAITING) for name in victims),
        opened_at=at,
    )
