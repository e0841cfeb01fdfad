"""Gates of exploiters: a candidate is frozen, meets its victims in turn, and is judged by the log.

A gate counts its own matches in assignment order up to the oldest open lease. A match that failed, or whose
lease ended without a result, is passed over, and stays so when its result comes late after all: what was
counted once never changes, so a decision that was made holds for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from league.errors import InvalidInput, NotFound
from league.exploiters import CandidateGate, GateState, VictimGate
from league.gates import Assigned, Gate, Subject, Verdict, certified, settled
from league.players import Assignment, Book, Event, Player, PlayerKind, PlayerState
from matchmaker import bygone, checks
from matchmaker.assigning import lease_gate_matches
from matchmaker.exploiters import Rules, opened_gate
from matchmaker.history import Moment
from matchmaker.league import League
from matchmaker.registration import register_candidate
from matchmaker.sampling import derived_seed
from matchmaker.store.base import Reader, Transaction

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


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A gate's state by the log; `tests` as far as they are decided, the last one perhaps under way."""

    state: GateState
    tests: tuple[VictimGate, ...]
    reason: str = ""


@dataclass(frozen=True)
class _Played:
    """A gate's match, and the seed that it is played on."""

    assigned: Assigned
    seed: int
    failed: bool


def open_gate(league: League, tx: Transaction, number: int, player: Player) -> CandidateGate:
    """Registers what an exploiter's learner has frozen as a candidate, and opens its gate; again is fine.

    Raises:
        InvalidInput: the worker's player is no generation's, or the snapshot is not of its kind.
        AlreadyExists: the name is taken by something else.
    """
    incarnation = league.current_incarnation(tx, number)
    generation = league.view.exploiters.by_player.get(incarnation.player)
    if generation is None:
        raise InvalidInput(f"incarnation {number} of {incarnation.worker} trains no exploiter's generation")
    if player.kind is not PlayerKind.SNAPSHOT or player.role is not generation.role:
        raise InvalidInput(
            f"{player.name[: checks.MAX_NAME]} is no snapshot of a {generation.role.value}: "
            f"{generation.learner} freezes those"
        )
    register_candidate(league, tx, player)
    known = league.view.exploiters.gates.get(player.name)
    if known is not None:
        return known
    gates = league.settings.exploiters
    rules = Rules(
        p0=gates.p0,
        p1=gates.p1,
        alpha=gates.alpha,
        beta=gates.beta,
        limit=gates.limit,
        after=league.view.ordinal,
        seed=derived_seed(league.seed, int(player.digest[:16], 16)),
    )
    event = league.event(
        "gate_opened",
        f"{player.name} is a candidate against {', '.join(generation.victims)}",
        {"candidate": player.name, "player": generation.player, "rules": asdict(rules)},
    )
    _record(league, tx, event)
    return opened_gate(player.name, generation, event.at)


def _record(league: League, tx: Transaction, event: Event) -> None:
    league.log_all(tx, [event])
    tx.after_commit(lambda: league.view.add_exploiter_event(event))


def gate_of(league: League, candidate: str) -> CandidateGate:
    """Raises `NotFound` when there is no such candidate."""
    gate = league.view.exploiters.gates.get(candidate)
    if gate is None:
        raise NotFound(f"there is no candidate {candidate[: checks.MAX_NAME]!r}: `league exploiters` has all")
    return gate


def progress(league: League, reader: Reader, gate: CandidateGate) -> CandidateGate:
    """A gate with what its tests have counted so far."""
    if gate.state is not GateState.OPEN:
        return gate
    decision = judged(league, reader, gate)
    return replace(gate, victims=decision.tests)


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
    league: League, reader: Reader, candidate: str, victim: str, rules: Rules
) -> tuple[VictimGate, str]:
    """The test against one victim, and why it ended when that was not acceptance."""
    played = _played(reader, candidate, victim, rules, league.view.moment)
    results = settled(one.assigned for one in played)
    gate = rules.gate().take(results)
    losses, draws, wins = gate.counts
    test = VictimGate(
        victim=victim, state=GateState.OPEN, wins=wins, draws=draws, losses=losses, llr=gate.llr
    )
    if gate.verdict is not Verdict.GO_ON:
        seeds = {one.assigned.ordinal: one.seed for one in played}
        counted = tuple(seeds[result.ordinal] for result in results[: gate.results])
        text = _certificate(gate, _subject(league, candidate, victim), counted)
        state, reason = _verdict(gate, victim)
        return replace(test, state=state, certificate_json=text), reason
    failures = sum(one.failed for one in played)
    if failures >= FEWEST_FAILURES and failures > gate.results:
        return replace(test, state=GateState.UNDECIDED), f"{failures} matches with {victim} failed"
    return test, ""


@lru_cache(maxsize=64)
def _certificate(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> str:
    """Kept, for a gate with several victims is looked at again and again after it has passed the first."""
    return certified(gate, subject, seeds).to_json()


def _verdict(gate: Gate, victim: str) -> tuple[GateState, str]:
    if gate.verdict is Verdict.ACCEPT:
        return GateState.ACCEPTED, ""
    if gate.llr > gate.risks.lower:
        return GateState.UNDECIDED, f"{gate.results} matches with {victim} did not decide"
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


def _played(
    reader: Reader, candidate: str, victim: str, rules: Rules, moment: Moment | None = None
) -> list[_Played]:
    rows = reader.select(_MATCHES, after=rules.after, candidate=candidate, victim=victim)
    found = (_match(row, candidate, moment) for row in rows)
    return [one for one in found if one is not None]


def _match(row: tuple[Any, ...], candidate: str, moment: Moment | None) -> _Played | None:
    """None for one that had not been handed out at the moment."""
    ordinal, lease, seat0, seed, outcome, failed, late, position, assigned_at, deadline, closed_at = row
    if moment is not None and assigned_at > moment.at:
        return None
    result = None if position is None else (position, bool(late))
    state = bygone.lease_state_at(moment, lease, deadline, closed_at, result)
    score = None
    if state == "reported" and not failed and not late:
        score = outcome if seat0 == candidate else 1.0 - outcome
    assigned = Assigned(ordinal=ordinal, is_open=state == "open", score=score)
    return _Played(assigned, seed, state == "reported" and bool(failed))


def acquire_gate_matches(
    league: League, tx: Transaction, number: int, candidate: str, count: int
) -> list[Assignment]:
    """Leases matches of a candidate with the victim whose turn it is; each has a seed of its own.

    None once the gate is decided, or the results that are there decide it.
    """
    gate = gate_of(league, candidate)
    if gate.state is not GateState.OPEN:
        return []
    decision = judged(league, tx, gate)
    if decision.state is not GateState.OPEN:
        return []
    place, test = next((i, t) for i, t in enumerate(decision.tests) if t.state is GateState.OPEN)
    rules = league.view.exploiters.rules[candidate]
    begun = len(_played(tx, candidate, test.victim, rules))
    seed = derived_seed(rules.seed, place)
    return lease_gate_matches(league, tx, number, (candidate, test.victim), seed, begun, count)


def decide(league: League, tx: Transaction, number: int, candidate: str, decision: Decision) -> CandidateGate:
    """Writes a decision down, once: the candidate becomes an opponent, or retires, with its certificates.

    `decision` may have been made on an earlier look at the log: what was counted never changes.
    """
    league.current_incarnation(tx, number)
    gate = gate_of(league, candidate)
    if gate.state is not GateState.OPEN:
        return gate
    accepted = decision.state is GateState.ACCEPTED
    state = PlayerState.ACTIVE if accepted else PlayerState.RETIRED
    player = replace(league.view.players[candidate], state=state)
    tx.update_player(player)
    tx.after_commit(lambda: league.view.set_players([player]))
    event = league.event(
        "gate_decided",
        _words(gate, decision),
        {
            "candidate": candidate,
            "state": decision.state.value,
            "reason": decision.reason,
            "tests": [{**asdict(test), "state": test.state.value} for test in decision.tests],
        },
    )
    _record(league, tx, event)
    return replace(
        gate,
        state=decision.state,
        victims=decision.tests,
        reason=decision.reason,
        decided_at=event.at,
    )


def _words(gate: CandidateGate, decision: Decision) -> str:
    tests = [test for test in decision.tests if test.matches]
    counts = "; ".join(f"{test.wins}-{test.draws}-{test.losses} against {test.victim}" for test in tests)
    said = {
        GateState.ACCEPTED: "is accepted as an exploiter",
        GateState.REJECTED: "is rejected",
        GateState.UNDECIDED: "is not accepted",
    }[decision.state]
    why = f": {decision.reason}" if decision.reason else ""
    return f"{gate.candidate} {said}{why}" + (f" ({counts})" if counts else "")


def give_up(league: League, tx: Transaction, number: int, candidate: str, reason: str) -> CandidateGate:
    """Closes a gate that can't be played as undecided; a decided one stays as it is."""
    checks.text(reason, "reason")
    gate = gate_of(league, candidate)
    if not reason.strip():
        raise InvalidInput(f"the gate of {candidate} is given up without a reason: say why")
    return decide(
        league,
        tx,
        number,
        candidate,
        Decision(state=GateState.UNDECIDED, tests=progress(league, tx, gate).victims, reason=reason),
    )


def open_of(gates: Mapping[str, CandidateGate]) -> list[CandidateGate]:
    """Gates that have not decided, in the order of opening."""
    return [gate for gate in gates.values() if gate.state is GateState.OPEN]
