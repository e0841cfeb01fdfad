"""What ``league sprt`` is asked: hypotheses, counts or a file of results, and true values to
foresee.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from league.errors import DataCorrupt, InvalidInput, NotFound
from league.stats.gates import (
    BernoulliTest,
    Certificate,
    Counts,
    EloModel,
    Gate,
    MultinomialTest,
    Result,
    Risks,
    Test,
    amount,
    checked_counts,
)

WORDS = {"1": 1.0, "w": 1.0, "0.5": 0.5, "1/2": 0.5, "½": 0.5, "d": 0.5, "0": 0.0, "l": 0.0}
"""What a result may be called in a file."""


@dataclass(frozen=True)
class Asked:
    """The test with all that was counted; `notes` say how it was read, `truths` are in the
    test's unit.
    """

    gate: Gate
    truths: list[float]
    notes: list[str] = field(default_factory=list)
    certificate: Certificate | None = None


def add_input(parser: argparse.ArgumentParser) -> None:
    tests = parser.add_argument_group("hypotheses: shares of the points, or Elo")
    tests.add_argument(
        "--p0", type=float, metavar="P", help="share of the points to reject, as 0.55"
    )
    tests.add_argument(
        "--p1", type=float, metavar="P", help="share of the points to accept, as 0.65"
    )
    tests.add_argument("--elo0", type=float, metavar="ELO", help="Elo to reject")
    tests.add_argument("--elo1", type=float, metavar="ELO", help="Elo to accept")
    tests.add_argument(
        "--model",
        choices=[model.value for model in EloModel],
        default=None,
        help="of Elo (logistic)",
    )
    tests.add_argument(
        "--alpha", type=float, default=0.05, help="how often the weak may pass (0.05)"
    )
    tests.add_argument(
        "--beta", type=float, default=0.05, help="how often the strong may fail (0.05)"
    )
    counts = parser.add_argument_group(
        "results: counts, or a file; none to foresee how many it takes"
    )
    counts.add_argument(
        "--pentanomial", metavar="A,B,C,D,E", help="pairs that scored 0, ½, 1, 1½ and 2 points"
    )
    counts.add_argument("--wins", type=int, metavar="N")
    counts.add_argument("--draws", type=int, metavar="N")
    counts.add_argument("--losses", type=int, metavar="N")
    counts.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="one match a word, w, d or l, as assigned (- reads them); with Elo, two in turn are a pair",
    )
    counts.add_argument(
        "--certificate", type=Path, metavar="FILE", help="check what a gate has decided"
    )
    parser.add_argument(
        "--truth", type=float, action="append", default=[], metavar="X",
        help="foresee the test at this share or Elo too; repeatable",
    )  # fmt: skip


def asked_of(args: argparse.Namespace) -> Asked:
    """Raises `InvalidInput` on flags that don't go together, `NotFound` and `DataCorrupt` on
    files.
    """
    counted = [args.losses, args.draws, args.wins]
    by_match = any(count is not None for count in counted)
    given = [
        args.pentanomial is not None,
        by_match,
        args.results is not None,
        args.certificate is not None,
    ]
    if sum(given) > 1:
        raise InvalidInput(
            "results were given twice: choose one of --pentanomial, --wins --draws --losses, --results, "
            "--certificate"
        )
    if args.certificate is not None:
        return _certified(args)
    test = _test(args, 3 if by_match else 5)
    gate = Gate(test=test, risks=Risks(alpha=args.alpha, beta=args.beta))
    low, high = test.values
    truths = [low, (low + high) / 2, high, *args.truth]
    if args.results is not None:
        return _played(gate, args.results, truths)
    counts: Counts = ()
    if by_match:
        counts = checked_counts([count or 0 for count in counted], 3)
    elif args.pentanomial is not None:
        counts = _pentanomial(args.pentanomial, test)
    return Asked(replace(gate, counts=counts), truths)


def _test(args: argparse.Namespace, elo_cells: Literal[3, 5]) -> Test:
    shares, elos = (args.p0, args.p1), (args.elo0, args.elo1)
    if all(value is None for value in (*shares, *elos)):
        raise InvalidInput("there is nothing to test: give --p0 and --p1, or --elo0 and --elo1")
    if any(value is not None for value in shares) and any(value is not None for value in elos):
        raise InvalidInput(
            "hypotheses were given twice: choose --p0 and --p1, or --elo0 and --elo1"
        )
    if None in shares and None in elos:
        there, missing = _half(
            (("p0", shares[0]), ("p1", shares[1]), ("elo0", elos[0]), ("elo1", elos[1]))
        )
        raise InvalidInput(
            f"--{there} needs --{missing}: a test is of one hypothesis against the other"
        )
    if None not in shares:
        if args.model is not None:
            raise InvalidInput(
                "--model is for --elo0 and --elo1: shares of the points have no model"
            )
        return BernoulliTest(p0=args.p0, p1=args.p1)
    return MultinomialTest(
        elo0=args.elo0, elo1=args.elo1, model=EloModel(args.model or "logistic"), cells=elo_cells
    )


def _half(named: Sequence[tuple[str, float | None]]) -> tuple[str, str]:
    """The hypothesis that is there, and the one that it lacks."""
    there = next(name for name, value in named if value is not None)
    return there, there[:-1] + ("1" if there.endswith("0") else "0")


def _pentanomial(text: str, test: Test) -> Counts:
    if test.cells != 5:
        raise InvalidInput(
            "--pentanomial counts pairs, --p0 and --p1 test matches: give --wins, --draws and --losses, "
            "or --elo0 and --elo1"
        )
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--pentanomial {text} is no list of counts: give five whole numbers, as 10,20,40,20,10"
        ) from None
    return checked_counts(counts, 5)


def _played(gate: Gate, path: Path, truths: list[float]) -> Asked:
    """The gate after the matches of a file, as far as it took them."""
    words = _read(path).split()
    unknown = next((word for word in words if word.lower() not in WORDS), None)
    if unknown is not None:
        raise InvalidInput(f"{path} holds {unknown!r}: name each match w, d or l (or 1, 0.5, 0)")
    scores = [WORDS[word.lower()] for word in words]
    notes = []
    if gate.test.cells == 5:
        if len(scores) % 2:
            notes.append(
                f"the last of {len(scores):,} matches has no second of its pair: it is left out"
            )
        scores = [sum(pair) / 2 for pair in zip(scores[::2], scores[1::2], strict=False)]
    after = gate.take(Result(place, score) for place, score in enumerate(scores))
    left = len(scores) - after.results
    if left:
        decided = amount(after.results, gate.test.cells)
        notes.append(f"decided after {decided}: the other {left:,} are not counted")
    return Asked(after, truths, notes)


def _certified(args: argparse.Namespace) -> Asked:
    if any(value is not None for value in (args.p0, args.p1, args.elo0, args.elo1, args.model)):
        raise InvalidInput(
            "a certificate holds its own hypotheses: leave --p0, --p1, --elo0, --elo1 away"
        )
    try:
        found = Certificate.from_json(_read(args.certificate))
    except DataCorrupt as error:
        raise DataCorrupt(f"{args.certificate}: {error}") from None
    return Asked(found.gate, list(args.truth), certificate=found)


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotFound(f"{path} can't be read ({reason}): name another file") from None
