"""The matches of one candidate's gate: leased, played and reported until the matchmaker has
decided.

What was played is the matchmaker's to know; nothing of it is remembered here, so an evaluator that
is killed goes on where the log is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.play import Arena
from league.exploiters import CandidateGate, GateState
from league.players import Assignment, MatchResult, Verdict

AT_ONCE = 32
"""Matches of a gate in play: more would mostly be played in vain, some 130 decide one."""


class GateMatches(Protocol):
    """What a gate needs of the matchmaker (`league.rpc.client.MatchmakerClient` has it)."""

    def acquire_gate_matches(
        self, incarnation: int, candidate: str, count: int
    ) -> list[Assignment]: ...

    def decide_gate(self, incarnation: int, candidate: str) -> CandidateGate: ...

    def release_matches(self, incarnation: int, match_ids: Sequence[str], reason: str) -> int: ...

    def report_results(
        self, incarnation: int, results: Sequence[MatchResult]
    ) -> tuple[list[Verdict], int]: ...


@dataclass(frozen=True, kw_only=True)
class Desk:
    """With whom and under which number results are exchanged."""

    client: GateMatches
    incarnation: int
    report_seconds: float
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic


class GateRun:
    """Plays a candidate's gate in `arena`. Call `step` until `finished`, or `hand_back` to stop
    early.
    """

    def __init__(self, desk: Desk, arena: Arena, gate: CandidateGate) -> None:
        self._desk, self._arena = desk, arena
        self.gate = gate
        self._in_play: set[str] = set()
        self._unreported: list[MatchResult] = []
        self._reported_at = desk.clock()
        self.accepted = 0  # matches that the matchmaker has taken

    @property
    def finished(self) -> bool:
        return self.gate.state is not GateState.OPEN and not self._in_play

    def step(self) -> None:
        """Fills free rows, plays one decision of every match, reports what is due, asks for the
        verdict.
        """
        room = min(AT_ONCE - len(self._in_play), self._arena.free)
        if room >= max(2, AT_ONCE // 4):
            self._fill(room)
        if self._arena.busy:
            self._unreported += self._arena.step()
        waited = self._desk.clock() - self._reported_at
        if not self._arena.busy or (self._unreported and waited >= self._desk.report_seconds):
            self._report()

    def _fill(self, room: int) -> None:
        desk, candidate = self._desk, self.gate.candidate
        assignments = desk.client.acquire_gate_matches(desk.incarnation, candidate, room)
        self._in_play |= {assignment.match_id for assignment in assignments}
        self._arena.seat(assignments)

    def _report(self) -> None:
        desk = self._desk
        results, self._unreported = self._unreported, []
        self._reported_at = desk.clock()
        if results:
            verdicts, _ = desk.client.report_results(desk.incarnation, results)
            refused = [
                verdict for verdict in verdicts if not (verdict.accepted or verdict.duplicate)
            ]
            self.accepted += len(results) - len(refused)
            if refused:
                desk.say(
                    f"{len(refused)} results of {self.gate.candidate} were refused: {refused[0].reason}"
                )
        self._in_play -= {result.match_id for result in results}
        self.gate = desk.client.decide_gate(desk.incarnation, self.gate.candidate)
        if self.gate.state is not GateState.OPEN:
            self.hand_back("the gate is decided")

    def hand_back(self, reason: str = "the evaluator stops") -> int:
        """Releases what is not played to its end; returns the number of leases released."""
        names, self._in_play = sorted(self._in_play), set()
        if not names:
            return 0
        return self._desk.client.release_matches(self._desk.incarnation, names, reason)
