"""Runs the gate of a candidate from its opening to its decision.

A gate is a sequential test of a new snapshot, the candidate, against frozen players, its victims.
Only a candidate that passes against every victim becomes a member of the league: a player that may
be drawn as an opponent.

    open ── its matches are leased, victim by victim, and counted in assignment order
     ├── accepted    passed against every victim: a member from that transaction on
     ├── rejected    too weak against a victim: the candidate retires
     └── undecided   match limit reached, too many failures, superseded, or unplayable: the
                     candidate retires

There are two kinds of gates. An exploiter's candidate (`players.open_gate`) is tested on its share
of the points, against each victim of its generation in turn, and each match has its own seed. A
main's snapshot (`players.register_players`, if `admit = "gate"`) is tested on its lead in Elo,
against the last snapshot of the same learner that was admitted, in pairs of matches on a common
seed. Otherwise, both kinds are played and decided in the same way.

The gate's state follows from the log alone. A match that failed, or whose lease ended without a
result, is left out even if its result comes later. So the counts of a gate never change once
results are counted.
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
"""Number of results against a victim after which a gate (a candidate's test) ends undecided. A
result is a match in the gate of an exploiter's candidate, and a pair of matches in the gate of a
main's candidate.

Most gates take 130 matches or 270 pairs. Hardly any candidate that is as strong as the test's
alternative hypothesis takes 2,000 results. In a game with payoffs only some results count. In such
a game the limit applies to the results that count, and up to `PLAYED * LIMIT` results may be
played.
"""
PLAYED = 5
"""Factor by which the matches of a gate (a candidate's test) may exceed the limit in a game with
payoffs, where matches with small margins seldom count.
"""
FEWEST_FAILURES = 32
"""A gate (a candidate's test) ends undecided if at least this many of its matches failed, and if
the failed matches outnumber the matches with a result.
"""


# --- opening


def opponent_of(settings: MatchmakerSettings, player: Player, players: dict[str, Player]) -> str:
    """Finds the snapshot that a new player must beat in a gate (a sequential test): the last
    snapshot of its learner that was admitted to the league. Returns "" if the player needs no gate.
    `players` are in order of registration.

    A learner's gates are played in order of opening, so each admitted snapshot has beaten the
    snapshot admitted before.
    """
    if settings.admit == "all" or player.name in players or not is_of_a_main(player):
        return ""
    members = (
        other.name
        for other in reversed(players.values())
        if other.creator == player.creator
        and other.state is PlayerState.ACTIVE
        and is_of_a_main(other)
    )
    return next(members, "")


def is_of_a_main(player: Player) -> bool:
    """Returns whether a player is a snapshot of a main (ordinary learner) of this run. Snapshots
    that were imported from other runs need no gate.
    """
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
    """Opens a candidate's gate (a sequential test) against the named victims, which are frozen
    players. `generation` is None for a main's candidate.
    """
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
    league: League, tx: Transaction, newer: Player, players: Mapping[str, Player]
) -> list[Player]:
    """Ends those gates (tests of new snapshots) of a learner that have no matches yet, because the
    learner has a newer snapshot.

    A learner freezes snapshots faster than gates are played. So at most one of its gates is played
    at a time, and only its newest snapshot waits for the next gate.

    Args:
        newer: the newer snapshot.
        players: all players.

    Returns:
        The candidates that retired.
    """
    retired = []
    for gate in league.view.exploiters.open_gates(newer.creator):
        candidate, rules = players[gate.candidate], league.view.exploiters.rules[gate.candidate]
        waits = candidate.state is PlayerState.CANDIDATE
        begun = (tx.gate_match_count(rules.after, candidate.name, x.victim) for x in gate.victims)
        if waits and not any(begun):
            reason = f"{newer.name} was frozen before its gate had begun"
            close_gate(league, tx, replace(gate, state=GateState.UNDECIDED, reason=reason))
            retired.append(replace(candidate, state=PlayerState.RETIRED))
    return retired


# --- playing


def gate_of(league: League, candidate: str) -> CandidateGate:
    """Returns the gate of a candidate, or raises `NotFound`."""
    gate = league.view.exploiters.gates.get(candidate)
    if gate is None:
        name = candidate[: checks.MAX_NAME]
        raise NotFound(f"there is no candidate {name!r}: `league exploiters` or `gates` lists them")
    return gate


def acquire_gate_matches(
    league: League, tx: Transaction, incarnation: int, candidate: str, count: int
) -> list[Assignment]:
    """Leases at most `count` matches of a gate, against the frozen player (victim) whose test is
    being played. If the test counts pairs of matches, only whole pairs are leased. Once the gate is
    decided, no matches are leased.

    Raises:
        NotFound: there is no such candidate.
        Refused: an earlier gate of the learner is still open.
    """
    caller = league.trusted_incarnation(tx, incarnation)
    checks.number(count, "count", 1, MAX_COUNT)
    gate, state = gate_of(league, candidate), league.view.exploiters
    if gate.state is not GateState.OPEN:
        return []
    if not gate.is_exploiters:
        first = state.open_gates(state.creators[candidate])[0].candidate
        if first != candidate:  # `first`, if admitted, becomes the victim of `candidate`
            raise Refused(f"the gate of {candidate} can't begin before that of {first}")
    now = judged(league, tx, gate)
    rules, test = state.rules[candidate], now.playing
    matches_per_seed = 2 if rules.gate.paired else 1
    fitting = count - count % matches_per_seed
    if now.state is not GateState.OPEN or test is None or not fitting:
        return []
    players = (candidate, test.victim)
    begun = tx.gate_match_count(rules.after, *players)
    seed = derived_seed(rules.seed, now.victims.index(test))
    arguments = caller, players, seed, begun, fitting, matches_per_seed
    return lease_gate_matches(league, tx, *arguments)


# --- counting


def judged(league: League, reader: Reader, gate: CandidateGate) -> CandidateGate:
    """Judges an open gate by the results in the log. Its tests against the victims (frozen players)
    are judged in order, up to the first test that has not been passed.

    Args:
        reader: reads the log.
        gate: the gate. A decided gate does not change.

    Returns:
        The gate with its counts and decision.
    """
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
    """Judges a candidate's test against a victim. Returns the test, and why it ended without being
    passed ("" if it was passed or goes on).
    """
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


@lru_cache(maxsize=64)  # a gate is judged often, and the tests that it has passed stay the same
def _certificate(gate: Gate, subject: Subject, seeds: tuple[int, ...]) -> str:
    return certify(gate, subject, seeds).to_json()


def tallied(
    matches: Sequence[Assigned], victim: str, rules: GateRules
) -> tuple[Gate, tuple[int, ...], VictimGate]:
    """Counts the matches of a gate (a candidate's test) against a victim.

    Args:
        matches: the gate's matches against the victim.
        victim: name of the victim.
        rules: the gate's rules.

    Returns:
        The gate with the counted results, the seeds of these results, and the test as it is stored
        in the log.
    """
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
    """Reads the matches of a gate (a candidate's test) against a victim, paired by their seeds.

    Args:
        reader: reads the log.
        candidate, victim: names of the players.
        rules: the gate's rules.
        until: log position of an event. A match whose result came later counts as open.

    Returns:
        The matches, and the number of failed matches.
    """
    matches, failures = [], 0
    for lease, row in reader.gate_matches(rules.after, candidate, victim):
        is_later = row is not None and row.event_position >= until
        row = None if is_later else row
        score = margin = None
        if row is not None and not row.failed and not row.late:
            score, margin = row.outcome, margin_of(row)
            if lease.seat0 != candidate:
                score, margin = 1.0 - score, None if margin is None else -margin
        failures += row is not None and bool(row.failed)
        matches.append(
            Assigned(
                ordinal=lease.ordinal,
                is_open=is_later or lease.lease_state == "open",
                score=score,
                pair=lease.seed,
                margin=margin,
                coin=derived_seed(rules.seed, lease.seed) / 2.0**63,
            )
        )
    return matches, failures


# --- deciding


def decide_gate(league: League, tx: Transaction, incarnation: int, candidate: str) -> CandidateGate:
    """Judges a gate (a candidate's test) by the results in the log. If the results decide the gate,
    records the decision and the candidate's new state.

    Returns:
        The gate.

    Raises:
        NotFound: there is no such candidate.
    """
    league.trusted_incarnation(tx, incarnation)
    gate = gate_of(league, candidate)
    now = judged(league, tx, gate)
    if gate.state is now.state:
        return now
    return close_gate(league, tx, now)


def give_up_gate(
    league: League, tx: Transaction, incarnation: int, candidate: str, reason: str
) -> CandidateGate:
    """Gives up a gate (a candidate's test) that can't be played, and closes the gate as undecided.
    A decided gate does not change.

    Raises:
        InvalidInput: the reason is empty.
        NotFound: there is no such candidate.
    """
    checks.text(reason, "reason")
    if not reason.strip():
        raise InvalidInput(f"the gate of {candidate} is given up without a reason: give one")
    gate = decide_gate(league, tx, incarnation, candidate)
    if gate.state is not GateState.OPEN:
        return gate
    return close_gate(league, tx, replace(gate, state=GateState.UNDECIDED, reason=reason))


def close_gate(league: League, tx: Transaction, gate: CandidateGate) -> CandidateGate:
    """Records the decision of a gate, and admits or retires the gate's candidate. Returns the gate
    with the time of its decision.
    """
    data = {
        "candidate": gate.candidate,
        "state": gate.state.value,
        "reason": gate.reason,
        "ordinal": league.view.ordinal,
        "tests": to_data(gate.victims),
    }
    event = league.log(tx, "gate_decided", gate.outcome, **data)
    players = dict(league.view.players)
    accepted = gate.state is GateState.ACCEPTED
    state = PlayerState.ACTIVE if accepted else PlayerState.RETIRED
    candidate = players[gate.candidate] = replace(players[gate.candidate], state=state)
    tx.update_player(candidate)
    lineage = SnapshotName.parse(gate.candidate).lineage
    retired = retire_surplus(league, tx, players, {lineage}) if accepted else []
    changed = [players[name] for name in (gate.candidate, *retired)]
    tx.after_commit(lambda: league.view.set_players(changed))
    return replace(gate, decided_at=event.at)
