"""Certificates of gates, as commands show them and write them down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from league.cli.output import say
from league.errors import NotFound
from league.exploiters import CandidateGate, VictimGate
from league.runs.files import write_whole
from league.stats.gates import Certificate


def gate_of(gates: Sequence[CandidateGate], candidate: str, command: str) -> CandidateGate:
    """The gate of a candidate; raises `NotFound`, which names the command that lists them."""
    found = next((gate for gate in gates if gate.candidate == candidate), None)
    if found is None:
        raise NotFound(f"there is no candidate {candidate!r}: {command} lists them")
    return found


def lines(test: VictimGate) -> list[tuple[str, str]]:
    """A test with its certificate, once it has one."""
    counts = f"{test.wins} wins, {test.draws} draws, {test.losses} losses"
    if test.pairs:
        counts += f"; pairs {of_pairs(test)}"
    found = [("victim", test.victim), ("test", test.state.value), ("counted", counts)]
    if not test.certificate_json:
        return found
    certificate = Certificate.from_json(test.certificate_json)
    estimate = certificate.estimate
    return [
        *found,
        ("hypotheses", str(certificate.gate.test)),
        (
            "llr",
            f"{certificate.llr:.3f} ({certificate.lower:.3f} rejects, {certificate.upper:.3f} accepts)",
        ),
        (
            "score",
            f"{estimate.score:.3f} (95 % interval {estimate.low:.3f} to {estimate.high:.3f})",
        ),
        ("candidate's digest", certificate.subject.candidate_digest or "none, it is a bot"),
        ("victim's digest", certificate.subject.opponent_digest or "none, it is a bot"),
        ("seeds", f"{len(certificate.seeds)}, the first {certificate.seeds[0]}"),
    ]


def of_pairs(test: VictimGate) -> str:
    """«3,12,30,10,2»: pairs that scored 0, ½, 1, 1½ and 2, as `league sprt --pentanomial` takes
    them.
    """
    return ",".join(map(str, test.pairs))


def write(gate: CandidateGate, tests: Sequence[VictimGate], path: Path) -> None:
    """The certificate that `league sprt --certificate` reads."""
    made = [test for test in tests if test.certificate_json]
    if not made:
        raise NotFound(
            f"the gate of {gate.candidate} has no certificate yet: it is {gate.state.value}"
        )
    if len(made) > 1:
        names = ", ".join(test.victim for test in made)
        raise NotFound(
            f"{gate.candidate} has a certificate for each of {names}: name one with --victim"
        )
    write_whole(path, made[0].certificate_json + "\n")
    say(f"{path}: the certificate of {gate.candidate} against {made[0].victim}")
