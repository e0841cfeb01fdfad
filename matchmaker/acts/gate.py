"""The gate of a candidate, from its opening to its decision.

    open ── its matches are leased, victim by victim, and counted in assignment order
     ├── accepted    it passed against every victim: a member from that transaction on
     ├── rejected    it is too weak against one of them: it retires
     └── undecided   the limit, failed matches, a newer snapshot, or it could not be played: it
                     retires

Exploiters' candidates (`players.open_gate`) are tested on shares of the points, in
matches on a seed each, against their generation's victims one after the other. Mains' snapshots
(`players.register_players`, where `admit = "gate"`) are tested on Elo, in pairs of matches on one
seed, against the newest member of their learner. From the opening on both are played and decided
alike. The gate's state follows from the log alone: a match that failed, or whose lease ended
without a result, is left out and stays so when its result comes late, so what was counted once
never changes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from league.errors import InvalidInput, NotFound, Refused
from league.exploiters import Generation
from league.gates import CandidateGate, GateState, VictimGate
from league.ids import SnapshotName
from league.players import Assignment, Book, Player, PlayerKind, PlayerState, Role
from league.stats.gates import (
    Assigned,
    BernoulliTest,
    Gate,
    MultinomialTest,
    Risks,
    Subject,
    Verdict,
    amount,
    certify,
    settled,
)
from matchmaker.acts import checks
from matchmaker.acts.analyse import retire_surplus
from matchmaker.acts.assign import MAX_COUNT, lease_gate_matches
from matchmaker.sampling.draw import derived_seed
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import margin_of
from matchmaker.state.exploiters import to_data
from matchmaker.state.gates import GateRules, opened_gate
from matchmaker.state.league import League
from matchmaker.store.transaction import Reader, Transaction

LIMIT = 2000
"""Matches against a victim, or pairs with a member, after which a gate ends undecided: most take
130 matches or 270 pairs, and hardly any candidate as strong as the alternative takes 2,000. In a
game with payoffs these are the ones that count, of `PLAYED * LIMIT` that may be played.
"""
PLAYED = 5
"""Times the limit that a gate with payoffs may play: a match where little is at stake seldom
counts.
"""
FEWEST_FAILURES = 32
"""Failed matches, more than those that brought a result, after which a gate ends undecided."""


# --- opening


def opponent_of(settings: MatchmakerSettings, player: Player, known: dict[str, Player]) -> str:
    """The newest member of its learner, which a new player must beat; "" when it needs no gate.

    A learner's gates are played in order of opening, so each admitted snapshot has beaten the last.
    """
    if settings.admit == "all" or player.name in known or not is_of_a_main(player):
        return ""
    members = (
        one.name
        for one in reversed(known.values())
        if one.creator == player.creator and one.state is PlayerState.ACTIVE and is_of_a_main(one)
    )
    return next(members, "")


def is_of_a_main(player: Player) -> bool:
    """Whether it is a snapshot of a main of this run; another run's are anchors."""
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.role is Role.MAIN
        and not SnapshotName.parse(player.name).run
    )


def begin_gate(
    league: League,
    tx: Transaction,
    player: Player,
    victims: Sequence[str],
    generation: Generation | None = None,
) -> CandidateGate:
    """Opens the gate of an exploiter's candidate, or without a `generation` a main's snapshot's."""
    if generation is None:
        elo = league.settings.admission
        gate = Gate(test=MultinomialTest(elo0=elo.elo0, elo1=elo.elo1), limit=LIMIT)
    else:
        shares = league.settings.exploiters
        test = BernoulliTest(p0=shares.p0, p1=shares.p1)
        gate = Gate(test=test, risks=Risks().of_each(len(victims)), limit=LIMIT)
    seed = derived_seed(league.seed, int(player.digest[:16], 16))
    data = {
        "candidate": player.name,
        "player": "" if generation is None else generation.player,
        "creator": player.creator,
        "victims": list(victims),
        "rules": to_data(
            GateRules(
                gate=gate,
                after=league.view.ordinal,
                seed=seed,
                stake=league.view.tables[Book.TRAIN].recent.stake,
                most=2.0 * (league.settings.largest_payoff or 0.0),
            )
        ),
    }
    text = f"{player.name} is a candidate against {', '.join(victims)}"
    event = league.log(tx, "gate_opened", text, **data)
    return opened_gate(player.name, generation, victims, event.at)


def pass_over(
    league: League, tx: Transaction, newer: Player, known: Mapping[str, Player]
) -> list[Player]:
    """Ends the learner's gates that wait for their first match, as a newer snapshot comes; returns
    the candidates that retired.

    A learner freezes faster than gates are played, so one is played and only the newest waits.
    """
    retired = []
    for gate in league.view.exploiters.open_gates(newer.creator):
        candidate, rules = known[gate.candidate], league.view.exploiters.rules[gate.candidate]
        waits = candidate.state is PlayerState.CANDIDATE
        if waits and not any(played(tx, candidate.name, x.victim, rules)[0] for x in gate.victims):
            reason = f"{newer.name} was frozen before its gate had begun"
            close_gate(league, tx, replace(gate, state=GateState.UNDECIDED, reason=reason))
            retired.append(replace(candidate, state=PlayerState.RETIRED))
    return retired


# --- playing


def gate_of(league: League, candidate: str) -> CandidateGate:
    """Raises `NotFound` when there is no such candidate."""
    gate = league.view.exploiters.gates.get(candidate)
    if gate is None:
        name = candidate[: checks.MAX_NAME]
        raise NotFound(f"there is no candidate {name!r}: `league exploiters` or `gates` lists them")
    return gate


def acquire_gate_matches(
    league: League, tx: Transaction, incarnation: int, candidate: str, count: int
) -> list[Assignment]:
    """Leases at most `count` matches with the current victim, whole pairs; none once decided."""
    caller = league.trusted_incarnation(tx, incarnation)
    checks.number(count, "count", 1, MAX_COUNT)
    gate, state = gate_of(league, candidate), league.view.exploiters
    if gate.state is not GateState.OPEN:
        return []
    if not gate.is_exploiters:
        first = state.open_gates(state.creators[candidate])[0].candidate
        if first != candidate:  # which becomes its victim if it is admitted
            raise Refused(f"the gate of {candidate} can't begin before that of {first}")
    found = judged(league, tx, gate)
    rules, test = state.rules[candidate], found.playing
    matches_per_seed = 2 if rules.gate.paired else 1
    fitting = count - count % matches_per_seed
    if found.state is not GateState.OPEN or test is None or not fitting:
        return []
    players = (candidate, test.victim)
    begun = len(played(tx, *players, rules)[0])
    seed = derived_seed(rules.seed, found.victims.index(test))
    given = caller, players, seed, begun, fitting, matches_per_seed
    return lease_gate_matches(league, tx, *given)


# --- counting


def judged(league: League, reader: Reader, gate: CandidateGate) -> CandidateGate:
    """An open gate as the log has it now: tests in order, up to the first that is not passed."""
    if gate.state is not GateState.OPEN:
        return gate
    tests: list[VictimGate] = []
    state, reason = GateState.ACCEPTED, ""
    for number, victim in enumerate(gate.victims):
        test, reason = _judged_test(league, reader, gate.candidate, victim.victim)
        tests.append(test)
        if test.state is not GateState.ACCEPTED:
            state = test.state
            tests += gate.victims[number + 1 :]
            break
    return replace(gate, state=state, victims=tuple(tests), reason=reason)


def _judged_test(
    league: League, reader: Reader, candidate: str, victim: str
) -> tuple[VictimGate, str]:
    """The test against one victim, and the reason why it ended when that was not acceptance."""
    rules = league.view.exploiters.rules[candidate]
    matches, failures = played(reader, candidate, victim, rules)
    gate, seeds, test = tallied(matches, victim, rules)
    if gate.verdict is not Verdict.CONTINUE:
        players = league.view.players
        subject = Subject(
            game=league.settings.game,
            book=Book.EVAL.value,
            candidate=candidate,
            candidate_digest=players[candidate].digest,
            opponent=victim,
            opponent_digest=players[victim].digest,
        )
        certificate = _certificate(gate, subject, seeds)
        state, reason = GateState.ACCEPTED, ""
        if gate.verdict is Verdict.REJECT:
            state, reason = GateState.REJECTED, f"it is too weak against {victim}"
            if gate.llr > gate.risks.lower:
                counted = amount(gate.results, gate.test.cells)
                state, reason = GateState.UNDECIDED, f"{counted} with {victim} did not decide"
        return replace(test, state=state, certificate_json=certificate), reason
    results = len(settled(matches, paired=rules.gate.paired))
    if failures >= FEWEST_FAILURES and failures > results * (2 if rules.gate.paired else 1):
        return replace(test, state=GateState.UNDECIDED), f"{failures} matches with {victim} failed"
    if results >= PLAYED * rules.gate.limit > 0:
        counted = amount(results, gate.test.cells)
        reason = f"{counted} with {victim}, where little was at stake, did not decide"
        return replace(test, state=GateState.UNDECIDED), reason
    return test, ""


@lru_cache(maxsize=64)  # a gate with several victims is judged often after it passed the first
def _certificate(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> str:
    return certify(gate, subject, seeds).to_json()


def tallied(
    matches: Sequence[Assigned], victim: str, rules: GateRules
) -> tuple[Gate, tuple[int, ...], VictimGate]:
    """A gate with what it takes of its matches, their seeds, and the test as the log keeps it."""
    most = rules.most_of(match.margin for match in matches if match.margin is not None)
    results = settled(matches, paired=rules.gate.paired, stake=rules.stake, most=most)
    gate = rules.gate.take(results)
    seed_of = {match.ordinal: match.pair for match in matches}
    seeds = tuple(seed_of[result.ordinal] for result in results[: gate.results])
    counted = set(seeds)
    scores = Counter(match.score for match in matches if match.pair in counted)
    test = VictimGate(
        victim=victim,
        state=GateState.OPEN,
        wins=scores[1.0],
        draws=scores[0.5],
        losses=scores[0.0],
        llr=gate.llr,
        pairs=gate.counts if gate.paired else (),
    )
    return gate, seeds, test


def played(
    reader: Reader, candidate: str, victim: str, rules: GateRules, until: float = math.inf
) -> tuple[list[Assigned], int]:
    """Reads a gate's matches against a victim, paired by their seeds, and counts those that failed.

    A match counts as open if its result came after the event at position `until`.
    """
    found, failures = [], 0
    for lease, row in reader.gate_matches(rules.after, candidate, victim):
        is_later = row is not None and row.event_position >= until
        row = None if is_later else row
        score = margin = None
        if row is not None and not row.failed and not row.late:
            score, margin = row.outcome, margin_of(row)
            if lease.seat0 != candidate:
                score, margin = 1.0 - score, None if margin is None else -margin
        failures += row is not None and bool(row.failed)
        found.append(
            Assigned(
                ordinal=lease.ordinal,
                is_open=is_later or lease.lease_state == "open",
                score=score,
                pair=lease.seed,
                margin=margin,
                coin=derived_seed(rules.seed, lease.seed) / 2.0**63,
            )
        )
    return found, failures


# --- deciding


def decide_gate(league: League, tx: Transaction, incarnation: int, candidate: str) -> CandidateGate:
    """Writes a decision down as soon as the log holds one, with the candidate's new state."""
    league.trusted_incarnation(tx, incarnation)
    gate = gate_of(league, candidate)
    found = judged(league, tx, gate)
    if gate.state is found.state:
        return found
    return close_gate(league, tx, found)


def give_up_gate(
    league: League, tx: Transaction, incarnation: int, candidate: str, reason: str
) -> CandidateGate:
    """Closes a gate that can't be played as undecided; a decided one does not change."""
    checks.text(reason, "reason")
    if not reason.strip():
        raise InvalidInput(f"the gate of {candidate} is given up without a reason: give one")
    gate = decide_gate(league, tx, incarnation, candidate)
    if gate.state is not GateState.OPEN:
        return gate
    return close_gate(league, tx, replace(gate, state=GateState.UNDECIDED, reason=reason))


def close_gate(league: League, tx: Transaction, gate: CandidateGate) -> CandidateGate:
    """Records a decision, and admits or retires the candidate."""
    data = {
        "candidate": gate.candidate,
        "state": gate.state.value,
        "reason": gate.reason,
        "ordinal": league.view.ordinal,
        "tests": to_data(gate.victims),
    }
    event = league.log(tx, "gate_decided", gate.outcome, **data)
    known = dict(league.view.players)
    accepted = gate.state is GateState.ACCEPTED
    state = PlayerState.ACTIVE if accepted else PlayerState.RETIRED
    candidate = known[gate.candidate] = replace(known[gate.candidate], state=state)
    tx.update_player(candidate)
    lineage = SnapshotName.parse(gate.candidate).lineage
    retired = retire_surplus(league, tx, known, {lineage}) if accepted else []
    changed = [known[name] for name in (gate.candidate, *retired)]
    tx.after_commit(lambda: league.view.set_players(changed))
    return replace(gate, decided_at=event.at)
