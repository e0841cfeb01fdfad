"""``league gates``: which of the mains' snapshots were admitted, which were not, and on what
ground.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import certificates, connect
from league.cli.output import Column, print_pairs, print_table, when
from league.exploiters import CandidateGate

COLUMNS = (
    Column("candidate"),
    Column("state"),
    Column("member"),
    Column("pairs"),
    Column("wins", number=True),
    Column("draws", number=True),
    Column("losses", number=True),
    Column("llr", number=True),
    Column("decided_at"),
)
CAPTION = (
    "a candidate must beat the newest member of its learner; pairs that scored 0, ½, 1, 1½ and 2; a stopped "
    "test is no rating: name a candidate to see its certificate"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "candidate", nargs="?", metavar="CANDIDATE", help="show the certificate of this one"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="with a candidate: write its certificate"
    )
    connect.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with connect.connect(args) as client:
        known = client.gates(certificates=args.candidate is not None)
    gates = [gate for gate in known if not gate.is_exploiters]
    if args.candidate is None:
        print_table("Gates of the mains' snapshots", COLUMNS, map(_row, gates), caption=CAPTION)
        return 0
    gate = certificates.gate_of(gates, args.candidate, "bin/league gates")
    if args.out is not None:
        certificates.write(gate, gate.victims, args.out)
        return 0
    print_pairs([*_about(gate), *certificates.lines(gate.victims[0])])
    return 0


def _row(gate: CandidateGate) -> tuple[str, ...]:
    (test,) = gate.victims
    return (
        gate.candidate,
        gate.state.value,
        test.victim,
        certificates.of_pairs(test),
        str(test.wins),
        str(test.draws),
        str(test.losses),
        f"{test.llr:.3f}",
        when(gate.decided_at) if gate.decided_at else "",
    )


def _about(gate: CandidateGate) -> list[tuple[str, str]]:
    return [
        ("candidate", gate.candidate),
        ("gate", gate.state.value + (f": {gate.reason}" if gate.reason else "")),
        ("opened", when(gate.opened_at)),
        ("decided", when(gate.decided_at) if gate.decided_at else "not yet"),
    ]
