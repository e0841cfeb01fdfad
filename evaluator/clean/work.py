"""Leases, plays and reports the matches of one piece of work: a gate (the test of a candidate), or
some batches.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from evaluator.clean.arena import Arena
from evaluator.clean.plan import Entry
from league.errors import Refused
from league.gates import CandidateGate, GateState
from league.players import Assignment, MatchResult, Pairing, Verdict
from league.rpc.client import MatchmakerClient

REPORT_SECONDS = 1.0
"""Finished matches are reported at most this long after they end."""
GATE_MATCHES = 32
"""Number of matches of a gate (a candidate's test) that are played at once. Most gates are decided
after about 130 matches.
"""
REFUSALS_IN_A_ROW = 3
"""The evaluator gives up after this many consecutive reports whose results were all refused."""
_log = logging.getLogger("evaluator")


class Work:
    """Plays the matches of `player` in `arena`. Call `step` until `finished` is true. To stop
    earlier, call `hand_back`.
    """

    def __init__(
        self, client: MatchmakerClient, incarnation: int, arena: Arena, player: str, at_once: int
    ) -> None:
        self._client, self._incarnation, self._arena = client, incarnation, arena
        self._player, self._at_once = player, min(at_once, arena.rows)
        self._in_play: set[str] = set()
        self._unreported: list[MatchResult] = []
        self._began_at = self._reported_at = time.monotonic()
        self.accepted = 0

    @property
    def done(self) -> bool:
        """Whether no further match can be leased."""
        raise NotImplementedError

    @property
    def progress(self) -> dict[str, Any]:
        """Returns the fields of `Progress` that depend on the work."""
        seconds = max(1e-9, time.monotonic() - self._began_at)
        return {"matches_per_second": self.accepted / seconds}

    def _lease(self, room: int) -> list[Assignment]:
        raise NotImplementedError

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Reports the results, if there are any, and returns how many were accepted."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether all matches have been played and reported."""
        return self.done and not self._in_play

    def step(self) -> None:
        """Fills free rows, plays all matches until the snapshots' next decision, and reports
        results if a report is due.
        """
        self.fill()
        if self._arena.busy:
            self._unreported += self._arena.step()
        is_due = self._unreported and time.monotonic() - self._reported_at >= REPORT_SECONDS
        if is_due or not self._arena.busy:
            self._report()

    def fill(self) -> None:
        """Begins further matches in free rows."""
        room = min(self._at_once - len(self._in_play), self._arena.free)
        if not self.done and room >= max(2, self._at_once // 8):
            assignments = self._lease(room)
            self._in_play |= {assignment.match_id for assignment in assignments}
            self._arena.seat(assignments)

    def _report(self) -> None:
        results, self._unreported = self._unreported, []
        self._reported_at = time.monotonic()
        self._in_play -= {result.match_id for result in results}
        self.accepted += self._settle(results)

    def hand_back(self) -> None:
        """Reports finished matches, and releases the leases of all unfinished matches."""
        if self._unreported:
            self._report()
        released = self.release("the evaluator stops")
        _log.info("%d leases of %s are handed back", released, self._player)

    def release(self, reason: str) -> int:
        """Gives up all matches in progress. Returns how many leases were released."""
        match_ids, self._in_play = sorted(self._in_play), set()
        if not match_ids:
            return 0
        return self._client.release_matches(self._incarnation, match_ids, reason)

    def _reported(self, results: Sequence[MatchResult]) -> tuple[set[str], list[Verdict]]:
        """Reports results. Returns the matches that were accepted, and the refusals."""
        verdicts, _ = self._client.report_results(self._incarnation, results)
        accepted = {v.match_id for v in verdicts if v.accepted or v.duplicate}
        refused = [v for v in verdicts if not (v.accepted or v.duplicate)]
        if refused:
            count, reason = len(refused), refused[0].reason
            _log.warning("the matchmaker refused %d results of %s: %s", count, self._player, reason)
            names = [verdict.match_id for verdict in refused]
            self._client.release_matches(self._incarnation, names, "their results were refused")
        return accepted, refused


class BatchWork(Work):
    """Plays the matches of batches, except matches that other evaluators have leased.

    Attributes:
        met: the names of all players.
        failures: for each pair of players, the number of reports with a failed match between them.
        reports_refused: number of consecutive reports of which the matchmaker accepted no result.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        incarnation: int,
        arena: Arena,
        subject: str,
        entries: Iterable[Entry],
        refused_before: int = 0,
    ) -> None:
        super().__init__(client, incarnation, arena, subject, arena.rows)
        self._open, self.subject = deque(entries), subject
        self.met = {name for entry in self._open for name in entry[:2]}
        self.reports_refused, self.leased = refused_before, 0
        self.failures: Counter[frozenset[str]] = Counter()

    @property
    def done(self) -> bool:
        return not self._open

    @property
    def progress(self) -> dict[str, Any]:
        return super().progress | {"matches_done": self.accepted, "matches_total": self.leased}

    def _lease(self, room: int) -> list[Assignment]:
        pairings = list[Pairing]()
        while self._open and room > 1:
            entry = self._open.popleft()
            pairs = min(entry.pairs, room // 2)
            if pairs < entry.pairs:
                self._open.appendleft(entry._replace(pairs=entry.pairs - pairs))
            pairings.append(
                Pairing(
                    player=entry.player,
                    opponent=entry.opponent,
                    pairs=pairs,
                    book=entry.book,
                    seed=0,  # all players meet the same seeds
                    until=entry.until,
                )
            )
            room -= 2 * pairs
        leased = self._client.acquire_pairings(self._incarnation, pairings)
        self.leased += len(leased)
        return leased

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Reports the results, if there are any, and returns how many were accepted.

        Raises:
            Refused: several consecutive reports were refused as a whole.
        """
        if not results:
            return 0
        accepted, refused = self._reported(results)
        broken = {frozenset(seat.player for seat in res.seats) for res in results if res.failed}
        self.failures.update(broken)
        self.reports_refused = 0 if accepted else self.reports_refused + 1
        if self.reports_refused >= REFUSALS_IN_A_ROW:
            raise Refused(
                f"the matchmaker refused every result of {self.reports_refused} reports in a "
                f"row, the last because {refused[-1].reason!r}: see its log"
            )
        return len(accepted)


class GateWork(Work):
    """Plays the matches of a candidate's gate (a test) until the matchmaker has decided it."""

    def __init__(
        self, client: MatchmakerClient, incarnation: int, arena: Arena, gate: CandidateGate
    ) -> None:
        super().__init__(client, incarnation, arena, gate.candidate, GATE_MATCHES)
        self.gate = gate

    @property
    def done(self) -> bool:
        return self.gate.state is not GateState.OPEN

    @property
    def progress(self) -> dict[str, Any]:
        test = self.gate.playing
        if test is None:
            return super().progress | {"gate": "its victims", "matches_done": 0}
        return super().progress | {"gate": test.victim, "matches_done": test.matches}

    def _lease(self, room: int) -> list[Assignment]:
        return self._client.acquire_gate_matches(self._incarnation, self._player, room)

    def _settle(self, results: Sequence[MatchResult]) -> int:
        """Reports results and asks for the verdict on the candidate."""
        accepted, _ = self._reported(results) if results else (set(), [])
        self.gate = self._client.decide_gate(self._incarnation, self._player)
        if self.done:
            self.release("the gate is decided")
        return len(accepted)
