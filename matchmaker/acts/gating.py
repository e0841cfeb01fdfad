"""Gates: a candidate is frozen, meets its victims in turn, and what the log says of it is written
down.

Exploiters' gates open here. Those of mains' snapshots open where these are registered
(`matchmaker.admission`); from then on both are played and decided alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from league.errors import InvalidInput, NotFound, Refused
from league.exploiters import CandidateGate, GateState, VictimGate
from league.players import Assignment, Player, PlayerKind
from matchmaker.acts import checks
from matchmaker.acts.admission import ahead_of
from matchmaker.acts.assign import MAX_COUNT, lease_gate_matches
from matchmaker.acts.gate_log import record, record_decision, retire_candidate
from matchmaker.acts.gate_rules import Rules
from matchmaker.acts.judging import Decision, judged, played_of
from matchmaker.acts.register import admit_candidate, register_candidate
from matchmaker.sampling.mixes import derived_seed
from matchmaker.state.exploiters import opened_gate
from matchmaker.state.league import League
from matchmaker.store.base import Reader, Transaction


def open_gate(league: League, tx: Transaction, number: int, player: Player) -> CandidateGate:
    """Registers what an exploiter's learner has frozen as a candidate, and opens its gate; again is
    fine.

    Raises:
        InvalidInput: the worker's player is no generation's, or the snapshot is not of its kind.
        AlreadyExists: the name is taken by something else.
    """
    incarnation = league.current_incarnation(tx, number)
    generation = league.view.exploiters.by_player.get(incarnation.player)
    if generation is None:
        raise InvalidInput(
            f"incarnation {number} of {incarnation.worker} trains no exploiter's generation"
        )
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
    record(league, tx, event)
    return opened_gate(player.name, generation, generation.victims, event.at)


def gate_of(league: League, candidate: str) -> CandidateGate:
    """Raises `NotFound` when there is no such candidate."""
    gate = league.view.exploiters.gates.get(candidate)
    if gate is None:
        raise NotFound(
            f"there is no candidate {candidate[: checks.MAX_NAME]!r}: `league exploiters` or `gates` has all"
        )
    return gate


def progress(league: League, reader: Reader, gate: CandidateGate) -> CandidateGate:
    """A gate with what its tests have counted so far."""
    if gate.state is not GateState.OPEN:
        return gate
    decision = judged(league, reader, gate)
    return replace(gate, victims=decision.tests)


def acquire_gate_matches(
    league: League, tx: Transaction, number: int, candidate: str, count: int
) -> list[Assignment]:
    """Leases matches of a candidate with the victim whose turn it is, in the order of its places.

    Each has a seed of its own; where pairs count, two have, and as many whole pairs are leased as
    fit in `count`. None once the gate is decided, or the results that are there decide it.

    Raises:
        Refused: another candidate of the learner waited before it, and becomes its victim if it is
        admitted.
    """
    league.current_incarnation(tx, number)
    checks.number(count, "count", 1, MAX_COUNT)
    gate = gate_of(league, candidate)
    if gate.state is not GateState.OPEN:
        return []
    first = ahead_of(league.view.exploiters, gate)
    if first:
        raise Refused(
            f"the gate of {candidate} can't begin before that of {first}: play that one first"
        )
    decision = judged(league, tx, gate)
    if decision.state is not GateState.OPEN:
        return []
    place, test = next((i, t) for i, t in enumerate(decision.tests) if t.state is GateState.OPEN)
    rules = league.view.exploiters.rules[candidate]
    begun = len(played_of(tx, candidate, test.victim, rules))
    seed, step = derived_seed(rules.seed, place), 2 if rules.paired else 1
    fitting = count - count % step
    if not fitting:
        return []
    return lease_gate_matches(
        league, tx, number, (candidate, test.victim), seed, begun, fitting, step
    )


def decide(
    league: League, tx: Transaction, number: int, candidate: str, decision: Decision
) -> CandidateGate:
    """Writes a decision down, once: the candidate becomes an opponent, or retires, with its
    certificates.

    `decision` may have been made on an earlier look at the log: what was counted never changes. One
    whose victims changed since is none; the gate stays open then.
    """
    league.current_incarnation(tx, number)
    gate = gate_of(league, candidate)
    if gate.state is not GateState.OPEN or _victims(gate.victims) != _victims(decision.tests):
        return gate
    decided = record_decision(league, tx, gate, decision)
    if decided.state is GateState.ACCEPTED:
        admit_candidate(league, tx, league.view.players[candidate])
    else:
        retire_candidate(league, tx, candidate)
    return decided


def _victims(tests: Sequence[VictimGate]) -> list[str]:
    return [test.victim for test in tests]


def give_up(
    league: League, tx: Transaction, number: int, candidate: str, reason: str
) -> CandidateGate:
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
        Decision(
            state=GateState.UNDECIDED, tests=progress(league, tx, gate).victims, reason=reason
        ),
    )


def open_of(gates: Mapping[str, CandidateGate]) -> list[CandidateGate]:
    """Gates that have not decided, in the order of opening."""
    return [gate for gate in gates.values() if gate.state is GateState.OPEN]
