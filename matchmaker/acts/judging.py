"""What the log says of a gate: its own matches in assignment order, up to the oldest open lease.

A match that failed, or whose lease ended without a result, is passed over, and stays so when its
result comes late after all: what was counted once never changes, so a decision that was made holds
for ever. Where pairs count, half of one is passed over too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from league.exploiters import CandidateGate, GateState, VictimGate
from league.players import Book
from league.stats.gates import (
    Assigned,
    Gate,
    Result,
    Subject,
    Verdict,
    amount,
    certify,
    settled,
    settled_pairs,
)
from matchmaker.acts.gate_rules import PairRules, Rules
from matchmaker.state import bygone
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.history import Moment
from matchmaker.state.league import League
from matchmaker.store.base import Reader

FEWEST_FAILURES = 32
"""Failed matches, more than those that brought a result, after which a gate ends as undecided."""

_MATCHES = """
SELECT a.ordinal, a.lease_state, a.seat0, a.seed, r.outcome, r.failed, r.late, r.position, a.assigned_at,
       a.lease_deadline, a.closed_at
FROM assignments a INDEXED BY gate_matches LEFT JOIN results r USING (ordinal)
WHERE a.category = 'gate' AND a.ordinal > :after
AND ((a.seat0 = :candidate AND a.seat1 = :victim) OR (a.seat1 = :candidate AND a.seat0 = :victim))
ORDER BY a.ordinal
"""
Take = Callable[[tuple[Result, ...]], Gate]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A gate's state by the log; `tests` as far as they are decided, the last one perhaps under
    way.
    """

    state: GateState
    tests: tuple[VictimGate, ...]
    reason: str = ""


@dataclass(frozen=True)
class Played:
    """A gate's match, and the seed that it is played on, which the two of a pair share."""

    assigned: Assigned
    seed: int
    failed: bool


@dataclass(frozen=True)
class Tally:
    """A gate with the results that it took, the seeds of these, and the matches that they are
    of.
    """

    gate: Gate
    seeds: tuple[int, ...]
    wins: int
    draws: int
    losses: int

    def test(self, victim: str) -> VictimGate:
        """As a test that is under way."""
        return VictimGate(
            victim=victim,
            state=GateState.OPEN,
            wins=self.wins,
            draws=self.draws,
            losses=self.losses,
            llr=self.gate.llr,
            pairs=self.gate.counts if self.gate.test.cells == 5 else (),
        )


def judged(league: League, reader: Reader, gate: CandidateGate) -> Decision:
    """What the log says of an open gate now: tests in order, up to the first that is not passed."""
    rules, tests = league.view.exploiters.rules[gate.candidate], []
    state, reason = GateState.ACCEPTED, ""
    for number, test in enumerate(gate.victims):
        found, reason = _test(league, reader, gate.candidate, test.victim, rules)
        tests.append(found)
        if found.state is not GateState.ACCEPTED:
            state = found.state
            tests += gate.victims[number + 1 :]
            break
    return Decision(state=state, tests=tuple(tests), reason=reason)


def _test(
    league: League, reader: Reader, candidate: str, victim: str, rules: Rules | PairRules
) -> tuple[VictimGate, str]:
    """The test against one victim, and why it ended when that was not acceptance."""
    played = played_of(reader, candidate, victim, rules, league.view.moment)
    tally = tallied(played, rules, taken_by(league.view.exploiters, candidate, victim, rules))
    gate, test = tally.gate, tally.test(victim)
    if gate.verdict is not Verdict.CONTINUE:
        text = _certificate(gate, _subject(league, candidate, victim), tally.seeds)
        state, reason = _verdict(gate, victim)
        return replace(test, state=state, certificate_json=text), reason
    failures = sum(one.failed for one in played)
    if failures >= FEWEST_FAILURES and failures > gate.matches:
        return replace(test, state=GateState.UNDECIDED), f"{failures} matches with {victim} failed"
    return test, ""


def taken_by(state: ExploiterState, candidate: str, victim: str, rules: Rules | PairRules) -> Take:
    """Goes on from what was counted at the last look: a ratio of pairs takes most of a millisecond.

    What is kept counts only as far as the log begins with the very same results.
    """

    def take(results: tuple[Result, ...]) -> Gate:
        known, gate = state.counted.get((candidate, victim), ((), rules.gate()))
        if results[: len(known)] != known:
            known, gate = (), rules.gate()
        gate = gate.take(results[len(known) :])
        state.counted[candidate, victim] = results, gate
        return gate

    return take


def tallied(played: Sequence[Played], rules: Rules | PairRules, take: Take | None = None) -> Tally:
    """What a gate counts of its matches, given in order; `take` does so, from the first on
    without it.
    """
    in_order = settled_pairs if rules.paired else settled
    results = tuple(in_order(one.assigned for one in played))
    gate = rules.gate().take(results) if take is None else take(results)
    seed_of = {one.assigned.ordinal: one.seed for one in played}
    seeds = tuple(seed_of[result.ordinal] for result in results[: gate.results])
    if not rules.paired:
        losses, draws, wins = gate.counts
        return Tally(gate, seeds, wins, draws, losses)
    counted = set(seeds)
    scores = Counter(one.assigned.score for one in played if one.seed in counted)
    return Tally(gate, seeds, scores[1.0], scores[0.5], scores[0.0])


@lru_cache(maxsize=64)
def _certificate(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> str:
    """Kept, for a gate with several victims is looked at again and again after it has passed the
    first.
    """
    return certify(gate, subject, seeds).to_json()


def _verdict(gate: Gate, victim: str) -> tuple[GateState, str]:
    if gate.verdict is Verdict.ACCEPT:
        return GateState.ACCEPTED, ""
    if gate.llr > gate.risks.lower:
        return (
            GateState.UNDECIDED,
            f"{amount(gate.results, gate.test.cells)} with {victim} did not decide",
        )
    return GateState.REJECTED, f"it is too weak against {victim}"


def _subject(league: League, candidate: str, victim: str) -> Subject:
    players = league.view.players
    return Subject(
        game=league.settings.game,
        book=Book.EVAL.value,
        candidate=candidate,
        candidate_digest=players[candidate].digest,
        opponent=victim,
        opponent_digest=players[victim].digest,
    )


def played_of(
    reader: Reader,
    candidate: str,
    victim: str,
    rules: Rules | PairRules,
    moment: Moment | None = None,
) -> list[Played]:
    """A gate's matches against a victim, in order of assignment; as they stood at a moment."""
    rows = reader.select(_MATCHES, after=rules.after, candidate=candidate, victim=victim)
    found = (_match(row, candidate, moment) for row in rows)
    return [one for one in found if one is not None]


def _match(row: tuple[Any, ...], candidate: str, moment: Moment | None) -> Played | None:
    """None for one that had not been handed out at the moment."""
    (
        ordinal,
        lease,
        seat0,
        seed,
        outcome,
        failed,
        late,
        position,
        assigned_at,
        deadline,
        closed_at,
    ) = row
    if moment is not None and assigned_at > moment.at:
        return None
    result = None if position is None else (position, bool(late))
    state = bygone.lease_state_at(moment, lease, deadline, closed_at, result)
    score = None
    if state == "reported" and not failed and not late:
        score = outcome if seat0 == candidate else 1.0 - outcome
    assigned = Assigned(ordinal=ordinal, is_open=state == "open", score=score, pair=seed)
    return Played(assigned, seed, state == "reported" and bool(failed))
