"""How gates are written down: events that memory follows, and candidates that retire with a
decision.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from league.exploiters import CandidateGate
from league.players import Event, Player, PlayerState
from matchmaker.acts.judging import Decision
from matchmaker.state.league import League
from matchmaker.store.base import Transaction


def record(league: League, tx: Transaction, event: Event) -> None:
    """Adds an event of a gate; memory takes it in behind the commit."""
    league.log_all(tx, [event])
    tx.after_commit(lambda: league.view.add_exploiter_event(event))


def record_decision(
    league: League, tx: Transaction, gate: CandidateGate, decision: Decision
) -> CandidateGate:
    """The gate as it is decided; what becomes of its candidate is the caller's to write."""
    decided = replace(gate, state=decision.state, victims=decision.tests, reason=decision.reason)
    event = league.event(
        "gate_decided",
        decided.outcome,
        {
            "candidate": gate.candidate,
            "state": decision.state.value,
            "reason": decision.reason,
            "tests": [{**asdict(test), "state": test.state.value} for test in decision.tests],
        },
    )
    record(league, tx, event)
    return replace(decided, decided_at=event.at)


def retire_candidate(league: League, tx: Transaction, candidate: str) -> Player:
    """Of a gate that was not passed: it stays on record, and is nobody's opponent."""
    retired = replace(league.view.players[candidate], state=PlayerState.RETIRED)
    tx.update_player(retired)
    tx.after_commit(lambda: league.view.set_players([retired]))
    return retired
