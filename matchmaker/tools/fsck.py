"""Implements ``bin/league fsck``, which checks the log of a league."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from league.errors import DataCorrupt
from league.gates import GateState, VictimGate
from league.players import PlayerState
from league.security.credentials import Credentials
from league.stats.gates import Certificate, Verdict
from matchmaker.acts.assign import GAUNTLET
from matchmaker.acts.gate import played, tallied
from matchmaker.sampling.draw import DrawTable, Stream, derived_seed, draw_table_of, draws
from matchmaker.state import folding
from matchmaker.state.exploiters import EVENTS, ExploiterState
from matchmaker.state.gates import GateRules
from matchmaker.store import invariants
from matchmaker.store.rows import GATE, DrawRow
from matchmaker.store.sqlite import SqliteStore
from matchmaker.store.transaction import Reader
from matchmaker.tools.recompute import differing_from_shown

TOLERANCE = 1e-6
"""Largest difference between two log-likelihood ratios that count as equal. Different machines may
round differently. For ratios with an absolute value above 1, the difference is relative.
"""
_STATES = {
    GateState.OPEN: PlayerState.CANDIDATE,
    GateState.ACCEPTED: PlayerState.ACTIVE,
    GateState.REJECTED: PlayerState.RETIRED,
    GateState.UNDECIDED: PlayerState.RETIRED,
}
"""State of a candidate by the state of its gate (test). Accepted candidates may retire later."""


def fsck(
    db: Path, address: str = "", credentials: Credentials | None = None
) -> tuple[list[str], str]:
    """Checks a league's file.

    Args:
        db: the file.
        address: address of the league's matchmaker, whose numbers are then compared with the file,
            or "".
        credentials: token and certificates to call the matchmaker.

    Returns:
        A sentence for each fault, and a summary.
    """
    with closing(SqliteStore(db, read_only=True)) as store:
        with store.read() as reader:
            findings, summary = full_scan(reader), _summary(reader)
        if address:
            findings += differing_from_shown(store, address, credentials)
    return findings, summary


def full_scan(reader: Reader) -> list[str]:
    """Returns a sentence for each fault that the file alone shows."""
    reader, findings = reader.unverified(), list[str]()
    for look in (
        invariants.broken_pages,
        invariants.damaged_rows,
        invariants.whole_file,
        wrong_leases,
        wrong_gates,
        folding.differing,
        wrong_draws,
    ):
        try:
            findings += look(reader)
        except Exception as error:
            if not findings:
                raise
            findings.append(f"{look.__name__} can't be looked for in what is damaged ({error!r})")
    return findings


def wrong_leases(reader: Reader) -> Iterator[str]:
    """Yields a sentence if some leases without a result were closed in another way than the events
    say.
    """
    events: dict[str, tuple[str, float, str]] = {}
    for event in reader.events_of("leases_expired", "leases_abandoned", "leases_released"):
        data, state = json.loads(event.data_json), event.kind.removeprefix("leases_")
        events |= dict.fromkeys(data["match_ids"], (state, event.at, data["reason"]))
    closed = reader.closed_without_result()
    if wrong := [match_id for match_id, *how in closed if events.get(match_id) != tuple(how)]:
        yield invariants.finding("a lease without a result was closed as an event says", wrong)


def wrong_draws(reader: Reader) -> Iterator[str]:
    """Checks every assignment against its draw.

    Yields:
        A sentence for each kind of fault: an opponent that does not follow from the seed, a match
        of named players that differs from the request, or a candidate that was drawn before its
        gate (test) admitted it.
    """
    wrong, unasked, early = [], [], []
    named: dict[int | None, Iterator[tuple[Any, ...]]] = {}
    exploiters = ExploiterState(reader.events_of(*EVENTS))
    tables: dict[int | None, DrawTable | None] = {None: None}
    streams: dict[int, Stream] = {}
    for row in reader.all_assignments():
        if row.replaces:
            continue
        if not row.mix:
            if row.draw not in named:
                named[row.draw] = _named(reader.draw(row.draw or 0), exploiters)
            match = row.seat0, row.seat1, row.seed, row.category
            if next(named[row.draw], None) != (*match, row.draw_seed, row.learner_seat):
                unasked.append(row.match_id)
            continue
        opponent = (row.seat1, row.seat0)[row.learner_seat]
        is_gated = (
            opponent in exploiters.gates and row.category != "victims"
        )  # victims may be candidates
        if is_gated and row.ordinal <= exploiters.admitted_at.get(opponent, math.inf):
            early.append(row.match_id)
        if row.draw not in tables:
            draw = reader.draw(row.draw or 0)
            tables[row.draw] = None if draw is None else draw_table_of(draw.body_json)
        table = tables[row.draw]
        drawn = row.category, opponent, row.probability, row.learner_seat, row.seed
        stream, again = streams.setdefault(row.draw_seed, Stream(row.draw_seed)), None
        if table is not None:
            (again,) = draws(
                table.shares, table.within, stream, [row.ordinal], table.matches_per_draw
            )
        if drawn != again:
            wrong.append(row.match_id)
    if wrong:
        says = "a match is what its seed draws from the recorded weights"
        yield invariants.finding(says, wrong)
    if unasked:
        yield invariants.finding("a pairing has the seats and seeds of its draw", unasked)
    if early:
        yield invariants.finding("candidates are drawn only after they passed", early)


def _named(draw: DrawRow | None, exploiters: ExploiterState) -> Iterator[tuple[Any, ...]]:
    """Yields the matches that should follow from a request for named players, in the form that
    `wrong_draws` compares. The sequence has no end.
    """
    if draw is None:
        return
    body = json.loads(draw.body_json)
    players, seed = (body["player"], body["opponent"]), body["seed"]
    category, per_seed = GAUNTLET, 2
    if body["rule"] == GATE:
        category = GATE
        per_seed = 2 if exploiters.rules[body["player"]].gate.paired else 1
    for number in itertools.count(body.get("begun", 0)):
        seats = players[::-1] if number % 2 else players
        drawn = derived_seed(seed, number // per_seed)
        yield *seats, drawn, category, drawn, -1


def wrong_gates(reader: Reader) -> Iterator[str]:
    """Counts the matches of gates (tests of candidates) again, and yields a sentence for each gate
    that the log contradicts.
    """
    events = reader.events_of(*EVENTS)
    exploiters = ExploiterState(events)
    decided = {
        json.loads(event.data_json)["candidate"]: event.position
        for event in events
        if event.kind == "gate_decided"
    }
    players = {player.name: player.state for player in reader.players()}
    for name, gate in exploiters.gates.items():
        state, wanted = players[name], _STATES[gate.state]
        retired = gate.state is GateState.ACCEPTED and state is PlayerState.RETIRED
        if state not in (wanted, PlayerState.QUARANTINED) and not retired:
            yield f"{name} is {state.value}, but its gate is {gate.state.value}"
        passed = all(test.state is GateState.ACCEPTED for test in gate.victims)
        if (gate.state is GateState.ACCEPTED) != passed:
            yield f"the gate of {name} is {gate.state.value}, its tests say otherwise"
        for test in gate.victims:
            rules = exploiters.rules[name]
            if test.certificate_json and not _follows(reader, name, test, rules, decided[name]):
                yield (
                    f"the certificate of {name} against {test.victim} is not what the matches of "
                    "its gate give"
                )


def _follows(
    reader: Reader, candidate: str, test: VictimGate, rules: GateRules, decided: int
) -> bool:
    """Returns whether a test's decision follows from those matches that had a result before the log
    position `decided`.
    """
    matches, _ = played(reader, candidate, test.victim, rules, until=decided)
    gate, seeds, again = tallied(matches, test.victim, rules)
    try:
        certificate = Certificate.from_json(test.certificate_json)
    except DataCorrupt:
        return False
    return (
        (again.wins, again.draws, again.losses, again.pairs)
        == (test.wins, test.draws, test.losses, test.pairs)
        and (certificate.gate, certificate.seeds) == (gate, seeds)
        and (gate.verdict is Verdict.ACCEPT) == (test.state is GateState.ACCEPTED)
        and abs(again.llr - test.llr) <= TOLERANCE * max(1.0, abs(test.llr))
    )


def _summary(reader: Reader) -> str:
    counts, leases = reader.counts(), len(reader.open_assignments())
    lost = counts["lost_results"]
    words = f"; {lost} results don't count: a restart returned to a checkpoint before them"
    return (
        f"{counts['players']} players, {counts['assignments']} matches assigned, "
        f"{leases} leases open, {counts['results']} results, {reader.positions()[1]} events"
        f"{words if lost else ''}"
    )
