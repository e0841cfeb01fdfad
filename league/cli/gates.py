"""Defines ``league exploiters`` and ``gates``, which show candidates' gates and certificates.

A gate is a series of matches that decides whether a candidate is strong enough for the league. Its
certificate records the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Heading
from league.console.output import print_pairs, print_table, say, when
from league.contest.command import LeagueCommand, LeagueContext
from league.errors import NotFound
from league.exploiters import EXPLOITING, Generation
from league.gates import CandidateGate, GateState, VictimGate
from league.ids import GenerationName
from league.players import PlayerKind, PlayerState
from league.runs.files import write_whole

if TYPE_CHECKING:
    from league.rpc.client import MatchmakerClient

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

SPARED = "decided_at draws role generation pairs"
EXPLOITERS = (
    "candidate generation# role state victim wins# draws# losses# llr# patched_by decided_at"
)
EXPLOITERS_CAPTION = (
    "a candidate is accepted when it passes its gate against every victim; a stopped test is no "
    "rating: name a candidate to see its certificate"
)
GATES = "candidate state member pairs wins# draws# losses# llr# decided_at"
GATES_CAPTION = (
    "a candidate must beat the newest member of its learner; pairs that scored 0, ½, 1, 1½ and 2; "
    "a stopped test is no rating: name a candidate to see its certificate"
)

Candidate = Annotated[
    str | None, typer.Argument(metavar="CANDIDATE", help="Show its certificates.")
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With a candidate: write its certificate.")
]


@app.command(cls=LeagueCommand)
def exploiters(
    context: LeagueContext,
    candidate: Candidate = None,
    victim: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With a candidate: only the gate against this victim."),
    ] = None,
    out: Out = None,
) -> None:
    """Shows the exploiters' candidates: generations, gates, and main agents that now beat them."""
    with context.league.connect() as client:
        gates = [gate for gate in client.gates(certificates=bool(candidate)) if gate.is_exploiters]
        learning = _learning_generations(client)
    if candidate is None:
        rows = [row for gate in gates for row in _exploiter_rows(gate)]
        rows += [_learning_row(generation) for generation in learning]
        if not rows:
            say("(this run has no exploiters: `bin/start-league --preset league3` trains some)")
        print_table("Exploiters", EXPLOITERS, rows, caption=EXPLOITERS_CAPTION, spared=SPARED)
        return
    if candidate in {generation.player for generation in learning}:
        raise NotFound(f"{candidate} still learns: it gets a gate once it is frozen")
    gate = _gate_of(gates, candidate, "bin/league exploiters")
    tests = [test for test in gate.victims if victim in (None, test.victim)]
    if not tests:
        victims = ", ".join(test.victim for test in gate.victims)
        raise NotFound(f"{candidate} has no victim {victim!r}: it has {victims}")
    if out is not None:
        _write_certificate(gate, tests, out)
        return
    print_pairs(_gate_facts(gate))
    for test in tests:
        print_pairs(_test_facts(test))


@app.command(cls=LeagueCommand)
def gates(context: LeagueContext, candidate: Candidate = None, out: Out = None) -> None:
    """Shows the gates of the main agents' snapshots, and which snapshots they admitted."""
    with context.league.connect() as client:
        known = [
            gate for gate in client.gates(certificates=bool(candidate)) if not gate.is_exploiters
        ]
    if candidate is None:
        rows = map(_main_row, known)
        print_table(
            "Gates of the mains' snapshots", GATES, rows, caption=GATES_CAPTION, spared=SPARED
        )
        return
    gate = _gate_of(known, candidate, "bin/league gates")
    if out is not None:
        _write_certificate(gate, gate.victims, out)
        return
    print_pairs([*_gate_facts(gate), *_test_facts(gate.victims[0])])


def _learning_generations(client: MatchmakerClient) -> list[Generation]:
    """Returns the exploiters' generations that are learning, or were when the run ended."""
    live = client.players(kinds=[PlayerKind.LIVE], states=[PlayerState.ACTIVE])
    names = [
        GenerationName.parse(player.name).learner for player in live if player.role in EXPLOITING
    ]
    return [generation for name in names if (generation := client.generation(name)) is not None]


def _learning_row(generation: Generation) -> tuple[str, ...]:
    number, role = str(generation.number), generation.role.value
    return (generation.player, number, role, "learning", ", ".join(generation.victims), *[""] * 6)


def _exploiter_rows(gate: CandidateGate) -> list[tuple[str, ...]]:
    """Returns a row for each victim that the candidate has met. If it hasn't met any victim, the
    only row is for the first victim.
    """
    generation = gate.generation
    assert generation is not None
    met = [test for test in gate.victims if test.matches] or list(gate.victims[:1])
    return [
        (
            gate.candidate,
            str(generation.number),
            generation.role.value,
            gate.state.value,
            test.victim,
            *_counts(test),
            ", ".join(patch.main for patch in gate.patches),
            when(gate.decided_at),
        )
        for test in met
    ]


def _main_row(gate: CandidateGate) -> tuple[str, ...]:
    (test,) = gate.victims
    names = gate.candidate, gate.state.value, test.victim, _pairs(test)
    return (*names, *_counts(test), when(gate.decided_at))


def _counts(test: VictimGate) -> tuple[str, ...]:
    return str(test.wins), str(test.draws), str(test.losses), f"{test.llr:.3f}"


def _pairs(test: VictimGate) -> str:
    """Returns how many pairs scored 0, ½, 1, 1½ and 2, for `league sprt --pentanomial`:
    «3,12,30,10,2».
    """
    return ",".join(map(str, test.pairs))


def _gate_of(gates: Sequence[CandidateGate], candidate: str, command: str) -> CandidateGate:
    chosen = next((gate for gate in gates if gate.candidate == candidate), None)
    if chosen is None:
        raise NotFound(f"there is no candidate {candidate!r}: {command} lists them")
    return chosen


def _gate_facts(gate: CandidateGate) -> list[tuple[str, str]]:
    lines = [("candidate", gate.candidate)]
    generation = gate.generation
    if generation is not None:
        since = f"{generation.number} of {generation.learner}, since step {generation.since_step:,}"
        lines += [("generation", since), ("role", generation.role.value)]
    lines += [
        ("gate", gate.state.value + (f": {gate.reason}" if gate.reason else "")),
        ("opened", when(gate.opened_at)),
        ("decided", when(gate.decided_at) or "not yet"),
    ]
    for patch in gate.patches:
        counts = f"{patch.wins}-{patch.draws}-{patch.losses}"
        text = (
            f"{patch.main}: {patch.snapshot} scores {counts}, probability {patch.posterior:.3f} "
            "that it wins more than it loses"
        )
        lines.append(("patched by", text))
    if generation is not None and gate.state is GateState.ACCEPTED and not gate.patches:
        lines.append(("patched by", "no main yet: mains meet it with its whole share"))
    return lines


def _test_facts(test: VictimGate) -> list[tuple[str, str]]:
    """Returns the facts of a test, including its certificate if it has one."""
    counts = f"{test.wins} wins, {test.draws} draws, {test.losses} losses"
    if test.pairs:
        counts += f"; pairs {_pairs(test)}"
    facts = [("victim", test.victim), ("test", test.state.value), ("counted", counts)]
    if not test.certificate_json:
        return facts
    from league.stats.gates import Certificate

    certificate = Certificate.from_json(test.certificate_json)
    estimate, seeds = certificate.estimate, certificate.seeds
    bounds = f"{certificate.lower:.3f} rejects, {certificate.upper:.3f} accepts"
    interval = f"95 % interval {estimate.low:.3f} to {estimate.high:.3f}"
    return [
        *facts,
        ("hypotheses", str(certificate.gate.test)),
        ("llr", f"{certificate.llr:.3f} ({bounds})"),
        ("score", f"{estimate.score:.3f} ({interval})"),
        ("candidate's digest", certificate.subject.candidate_digest or "none, it is a bot"),
        ("victim's digest", certificate.subject.opponent_digest or "none, it is a bot"),
        ("seeds", f"{len(seeds)}, the first {seeds[0]}"),
    ]


def _write_certificate(gate: CandidateGate, tests: Sequence[VictimGate], path: Path) -> None:
    """Writes the certificate that `league sprt --certificate` reads."""
    made = [test for test in tests if test.certificate_json]
    if not made:
        state = gate.state.value
        raise NotFound(f"the gate of {gate.candidate} has no certificate yet: it is {state}")
    if len(made) > 1:
        names = ", ".join(test.victim for test in made)
        raise NotFound(
            f"{gate.candidate} has a certificate for each of {names}: name one with --victim"
        )
    write_whole(path, made[0].certificate_json + "\n")
    say(f"{path}: the certificate of {gate.candidate} against {made[0].victim}")
