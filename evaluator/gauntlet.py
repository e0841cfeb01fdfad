"""One gauntlet while it is played: leases in, matches through the arena, results out in batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from evaluator.journal import Journal, Played
from evaluator.play import Arena
from evaluator.strategy import Slot, pair_seed
from league.errors import Refused
from league.players import Assignment, MatchResult, Pairing, Verdict

REFUSALS_IN_A_ROW = 3
"""Reports of which every result was refused, one after the other, before the evaluator gives up."""


class Matches(Protocol):
    """What a gauntlet needs of the matchmaker (`league.rpc.client.MatchmakerClient` has it)."""

    def acquire_pairings(
        self, incarnation: int, pairings: Sequence[Pairing]
    ) -> list[Assignment]: ...

    def release_matches(self, incarnation: int, match_ids: Sequence[str], reason: str) -> int: ...

    def report_results(
        self, incarnation: int, results: Sequence[MatchResult]
    ) -> tuple[list[Verdict], int]: ...


@dataclass(frozen=True, kw_only=True)
class Office:
    """With whom and under which number results are exchanged, and where they are written down."""

    client: Matches
    incarnation: int
    journal: Journal
    seed: int
    report_seconds: float
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic


class GauntletRun:
    """Plays `slots` for `player` in `arena`. Call `step` until `finished`, or `hand_back` to
    stop early.
    """

    def __init__(self, office: Office, arena: Arena, player: str, slots: Sequence[Slot]) -> None:
        self._office = office
        self._arena = arena
        self._player = player
        self._open: deque[Slot] = deque(slots)
        self._in_play: dict[str, Slot] = {}
        self._unreported: list[MatchResult] = []
        self._reported_at = office.clock()
        self._refusals = 0
        self.accepted = 0  # matches that the matchmaker has taken

    @property
    def finished(self) -> bool:
        return not (self._open or self._in_play or self._unreported)

    def step(self) -> None:
        """Fills free rows, plays one decision of every match, reports what is due."""
        if self._open and self._arena.free >= min(len(self._open), max(2, self._arena.rows // 16)):
            self._fill()
        if self._arena.busy:
            self._unreported += self._arena.step()
        waited = self._office.clock() - self._reported_at
        if self._unreported and (not self._arena.busy or waited >= self._office.report_seconds):
            self._report()

    def _take_pairs(self) -> list[list[Slot]]:
        """Open slots by pair, in order, as many whole pairs as fit in the free rows."""
        pairs: list[list[Slot]] = []
        room = self._arena.free
        while self._open:
            pair = [self._open[0]]
            if len(self._open) > 1 and _same_pair(self._open[1], pair[0]):
                pair.append(self._open[1])
            if len(pair) > room:
                break
            for _ in pair:
                self._open.popleft()
            pairs.append(pair)
            room -= len(pair)
        return pairs

    def _fill(self) -> None:
        pairs = self._take_pairs()
        if not pairs:
            return
        seed = self._office.seed
        pairings = [
            Pairing(
                player=self._player,
                opponent=pair[0].opponent,
                pairs=1,
                book=pair[0].book,
                seed=pair_seed(seed, pair[0].pair),
            )
            for pair in pairs
        ]
        assignments = self._office.client.acquire_pairings(self._office.incarnation, pairings)
        wanted: list[Assignment] = []
        surplus: list[str] = []
        for index, assignment in enumerate(assignments):
            seat = next(s for s, p in enumerate(assignment.seats) if p.name == self._player)
            slot = next((s for s in pairs[index // 2] if s.seat == seat), None)
            if slot is None:  # the other half of this pair had been played before a restart
                surplus.append(assignment.match_id)
            else:
                self._in_play[assignment.match_id] = slot
                wanted.append(assignment)
        if surplus:
            self._office.client.release_matches(self._office.incarnation, surplus, "played before")
        self._arena.seat(wanted)

    def _report(self) -> None:
        results, self._unreported = self._unreported, []
        self._reported_at = self._office.clock()
        self._office.journal.record(self._played(result) for result in results if not result.failed)
        verdicts, _ = self._office.client.report_results(self._office.incarnation, results)
        taken = [v.match_id for v in verdicts if v.accepted or v.duplicate]
        refused = [v for v in verdicts if not (v.accepted or v.duplicate)]
        self._office.journal.settle(taken, [v.match_id for v in refused])
        self.accepted += len(taken)
        for match_id in taken:
            del self._in_play[match_id]
        for verdict in refused:
            self._open.append(self._in_play.pop(verdict.match_id))
        self._count_refusals(refused, all_of_them=not taken)

    def _count_refusals(self, refused: Sequence[Verdict], *, all_of_them: bool) -> None:
        self._refusals = self._refusals + 1 if all_of_them else 0
        if refused:
            self._office.say(
                f"the matchmaker refused {len(refused)} results of {self._player}, they are played again: "
                f"{refused[0].reason}"
            )
        if self._refusals >= REFUSALS_IN_A_ROW:
            raise Refused(
                f"the matchmaker refused every result of {self._refusals} reports in a row, the last because "
                f"{refused[-1].reason!r}: see its log"
            )

    def _played(self, result: MatchResult) -> Played:
        slot = self._in_play[result.match_id]
        return Played(
            match_id=result.match_id,
            player=self._player,
            slot=slot,
            outcome=result.outcome if slot.seat == 0 else 1.0 - result.outcome,
            frames=result.frames,
            finished_at=result.finished_at,
            stats=result.seats[slot.seat].stats,
            opponent_stats=result.seats[1 - slot.seat].stats,
        )

    def hand_back(self) -> int:
        """Reports what has ended and releases the rest; returns the number of leases released."""
        if self._unreported:
            self._report()
        match_ids = list(self._in_play)
        self._in_play.clear()
        if not match_ids:
            return 0
        return self._office.client.release_matches(
            self._office.incarnation, match_ids, "the evaluator stops"
        )


def _same_pair(slot: Slot, other: Slot) -> bool:
    return (slot.opponent, slot.book, slot.pair) == (other.opponent, other.book, other.pair)
