"""What the log must show about its gates: a part of `fsck`, which counts them again."""

from __future__ import annotations

import math

from league.errors import DataCorrupt
from league.exploiters import GateState, VictimGate
from league.players import PlayerState
from league.stats.gates import Certificate, Verdict
from matchmaker.acts.gate import played, tallied
from matchmaker.state.exploiters import EVENTS, ExploiterState, GateRules
from matchmaker.store.transaction import Reader

TOLERANCE = 1e-6
"""By how much ratios may differ, relative above 1: another machine may round otherwise."""
_STATES = {
    GateState.OPEN: PlayerState.CANDIDATE,
    GateState.ACCEPTED: PlayerState.ACTIVE,
    GateState.REJECTED: PlayerState.RETIRED,
    GateState.UNDECIDED: PlayerState.RETIRED,
}
"""The state of a candidate by that of its gate; accepted ones may retire later."""


def wrong_gates(reader: Reader) -> list[str]:
    """A sentence for each gate that the log contradicts, and one for draws of candidates."""
    state = ExploiterState(reader.events_of(*EVENTS))
    players = {player.name: player.state for player in reader.players()}
    findings = []
    for name, gate in state.gates.items():
        known, wanted = players[name], _STATES[gate.state]
        retired = gate.state is GateState.ACCEPTED and known is PlayerState.RETIRED
        if known not in (wanted, PlayerState.QUARANTINED) and not retired:
            findings.append(f"{name} is {known.value}, but its gate is {gate.state.value}")
        passed = all(test.state is GateState.ACCEPTED for test in gate.victims)
        if (gate.state is GateState.ACCEPTED) != passed:
            findings.append(f"the gate of {name} is {gate.state.value}, its tests say otherwise")
        for test in gate.victims:
            if test.certificate_json and not _follows(reader, name, test, state.rules[name]):
                findings.append(
                    f"the certificate of {name} against {test.victim} is not what the matches of "
                    "its gate give"
                )
    drawn = [
        match_id
        for ordinal, match_id, opponent in reader.drawn_against(state.gates)
        if ordinal <= state.admitted_at.get(opponent, math.inf)
    ]
    if drawn:
        findings.append(f"candidates were drawn before they passed: {', '.join(drawn[:5])}")
    return findings


def _follows(reader: Reader, candidate: str, test: VictimGate, rules: GateRules) -> bool:
    """Whether a decided test is what its matches give, counted again from the first one."""
    gate, seeds, again = tallied(
        played(reader, candidate, test.victim, rules)[0], test.victim, rules
    )
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
