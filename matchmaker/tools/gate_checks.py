"""What the log must bear out of its gates: a part of `fsck`, which counts them anew."""

from __future__ import annotations

from collections.abc import Iterator

from league.errors import DataCorrupt
from league.exploiters import CandidateGate, GateState, VictimGate
from league.players import PlayerState
from league.stats.gates import Certificate, Verdict
from matchmaker.acts.gate_rules import PairRules, Rules
from matchmaker.acts.judging import played_of, tallied
from matchmaker.state.exploiters import EVENTS, ExploiterState
from matchmaker.store.base import Reader

TOLERANCE = 1e-6
"""By how much ratios may differ, of those above 1 relatively: another machine may round
otherwise.
"""
_STATES = {
    GateState.OPEN: (PlayerState.CANDIDATE, PlayerState.QUARANTINED),
    GateState.ACCEPTED: (PlayerState.ACTIVE, PlayerState.RETIRED, PlayerState.QUARANTINED),
    GateState.REJECTED: (PlayerState.RETIRED, PlayerState.QUARANTINED),
    GateState.UNDECIDED: (PlayerState.RETIRED, PlayerState.QUARANTINED),
}
"""States of a candidate that go with those of its gate."""
_DRAWN = """
WITH opened AS MATERIALIZED (
  SELECT json_extract(data_json, '$.candidate') AS name FROM events WHERE kind = 'gate_opened'
), accepted AS MATERIALIZED (
  SELECT json_extract(data_json, '$.candidate') AS name, min(position) AS since FROM events
  WHERE kind = 'gate_decided' AND json_extract(data_json, '$.state') = 'accepted' GROUP BY 1
), drawn AS (
  SELECT a.match_id, d.event_position, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END AS name
  FROM assignments a JOIN draws d ON d.number = a.draw
  WHERE a.mix != '' AND a.replaces = '' AND a.category != 'victims'
)
SELECT drawn.match_id FROM drawn JOIN opened USING (name) LEFT JOIN accepted USING (name)
WHERE ifnull(accepted.since > drawn.event_position, 1) LIMIT 5
"""
"""Matches that were drawn with somebody who had not passed; victims that an operator names may
be anybody.
"""


def wrong_gates(reader: Reader) -> list[str]:
    """A sentence for each gate that the log's matches or players don't bear out, and one for
    early draws.
    """
    state = ExploiterState(reader.events_of(*EVENTS))
    players = {player.name: player.state for player in reader.players()}
    findings = []
    for gate in state.gates.values():
        if players[gate.candidate] not in _STATES[gate.state]:
            findings.append(
                f"{gate.candidate} is {players[gate.candidate].value}, but its gate is {gate.state.value}"
            )
        findings += _decided_wrongly(reader, gate, state.rules[gate.candidate])
    drawn = [row[0] for row in reader.select(_DRAWN)]
    if drawn:
        findings.append(f"nobody is drawn who has not passed a gate, but in {', '.join(drawn)}")
    return findings


def _decided_wrongly(
    reader: Reader, gate: CandidateGate, rules: Rules | PairRules
) -> Iterator[str]:
    passed = all(test.state is GateState.ACCEPTED for test in gate.victims)
    if (gate.state is GateState.ACCEPTED) != passed:
        yield f"the gate of {gate.candidate} is {gate.state.value}, its tests say otherwise"
    for test in gate.victims:
        if test.certificate_json and not _follows(reader, gate.candidate, test, rules):
            yield (
                f"the certificate of {gate.candidate} against {test.victim} is not what the matches of its "
                "gate give"
            )


def _follows(reader: Reader, candidate: str, test: VictimGate, rules: Rules | PairRules) -> bool:
    """Whether a decided test has what its matches give, counted anew from the first one."""
    tally = tallied(played_of(reader, candidate, test.victim, rules), rules)
    again = tally.test(test.victim)
    try:
        certificate = Certificate.from_json(test.certificate_json)
    except DataCorrupt:
        return False
    return (
        (again.wins, again.draws, again.losses, again.pairs)
        == (test.wins, test.draws, test.losses, test.pairs)
        and certificate.gate == tally.gate
        and certificate.seeds == tally.seeds
        and (tally.gate.verdict is Verdict.ACCEPT) == (test.state is GateState.ACCEPTED)
        and abs(again.llr - test.llr) <= TOLERANCE * max(1.0, abs(test.llr))
    )
