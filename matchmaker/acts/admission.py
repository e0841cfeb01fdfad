"""Mains' snapshots enter by a gate: whom they meet in it, and how it opens.

A snapshot is measured against the newest member of its learner. Gates of one learner are played in
the order of opening, so each admitted one has beaten the last and is the best of them; whoever
waits meanwhile must beat that one from then on. The newest waits alone: those before it whose gates
have not begun are passed over. A learner's first snapshot has nobody to beat, and is a member at
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from league.exploiters import CandidateGate, GateState
from league.ids import SnapshotName
from league.players import Player, PlayerKind, PlayerState, Role
from matchmaker.acts.gate_log import record, record_decision, retire_candidate
from matchmaker.acts.gate_rules import PairRules
from matchmaker.acts.judging import Decision, played_of
from matchmaker.sampling.mixes import derived_seed
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.exploiters import ExploiterState
from matchmaker.state.league import League
from matchmaker.store.base import Reader, Transaction


def opponent_of(settings: MatchmakerSettings, player: Player, known: dict[str, Player]) -> str:
    """Whom a player must beat to be a member, "" when it is one at once or is in the league
    already.

    `known` are the league's players in order of registration.
    """
    if settings.admit == "all" or player.name in known or not _is_gated(player):
        return ""
    members = (
        one.name
        for one in reversed(known.values())
        if one.creator == player.creator and one.state is PlayerState.ACTIVE and _is_gated(one)
    )
    return next(members, "")


def _is_gated(player: Player) -> bool:
    """Whether it is a snapshot of a main of this run; another run's are anchors, brought by an
    operator.
    """
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.role is Role.MAIN
        and not SnapshotName.parse(player.name).run
    )


def open_admission(league: League, tx: Transaction, player: Player, opponent: str) -> None:
    """Opens the gate of a main's snapshot that has just become a candidate."""
    settings = league.settings.admission
    rules = PairRules(
        elo0=settings.elo0,
        elo1=settings.elo1,
        alpha=settings.alpha,
        beta=settings.beta,
        limit=settings.limit,
        after=league.view.ordinal,
        seed=derived_seed(league.seed, int(player.digest[:16], 16)),
    )
    event = league.event(
        "gate_opened",
        f"{player.name} is a candidate against {opponent}",
        {
            "candidate": player.name,
            "opponent": opponent,
            "creator": player.creator,
            "rules": asdict(rules),
        },
    )
    record(league, tx, event)


def pass_over(
    league: League, tx: Transaction, newer: Player, known: Mapping[str, Player]
) -> list[Player]:
    """Ends the gates that wait behind a learner's newer candidate and have not begun; returns who
    retired.

    `known` are the league's players as this transaction has them: memory learns of it behind the
    commit. A learner freezes faster than gates are played: in order of opening they would fall ever
    further behind, and each be of a main that is long past. So one is played, and the newest waits.
    """
    state, retired = league.view.exploiters, []
    for name, creator in state.creators.items():
        gate = state.gates[name]
        waits = creator == newer.creator and known[name].state is PlayerState.CANDIDATE
        if waits and not _has_begun(tx, state, gate):
            reason = f"{newer.name} was frozen before its gate had begun"
            decision = Decision(state=GateState.UNDECIDED, tests=gate.victims, reason=reason)
            record_decision(league, tx, gate, decision)
            retired.append(retire_candidate(league, tx, name))
    return retired


def _has_begun(reader: Reader, state: ExploiterState, gate: CandidateGate) -> bool:
    rules = state.rules[gate.candidate]
    return any(played_of(reader, gate.candidate, test.victim, rules) for test in gate.victims)


def ahead_of(state: ExploiterState, gate: CandidateGate) -> str:
    """The candidate of the same learner whose gate comes first, "" when it is this one's turn."""
    creator = state.creators.get(gate.candidate)
    if creator is None:
        return ""
    waiting = (
        name
        for name, other in state.creators.items()
        if other == creator and state.gates[name].state is GateState.OPEN
    )
    first = next(waiting, gate.candidate)
    return "" if first == gate.candidate else first
