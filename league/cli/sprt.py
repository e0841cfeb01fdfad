"""Defines ``league sprt``: a sequential test of two hypotheses, and forecasts of its length."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league.console.options import AsJson, Heading
from league.console.output import print_pairs, say
from league.errors import DataCorrupt, InvalidInput, NotFound

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.gates import Gate, Test

app = typer.Typer(rich_help_panel=Heading.MEASURE, add_completion=False)

RESULTS = "Results: counts or a certificate; without them, forecasts how many matches it takes"
MEANING = {
    "accept": "accept: as strong as the alternative",
    "reject": "reject: as weak as the null hypothesis",
    "continue": "continue: not decided yet",
}
Share = Annotated[float | None, typer.Option(metavar="P", help="Share of points, like 0.55.")]
Elo = Annotated[float | None, typer.Option(metavar="ELO", help="Elo difference.")]
Count = Annotated[int | None, typer.Option(metavar="N", help="Matches.", rich_help_panel=RESULTS)]


@app.command()
def sprt(
    p0: Share = None,
    p1: Share = None,
    elo0: Elo = None,
    elo1: Elo = None,
    alpha: Annotated[float, typer.Option(help="How often the weak may pass.")] = 0.05,
    beta: Annotated[float, typer.Option(help="How often the strong may fail.")] = 0.05,
    pentanomial: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C,D,E",
            help="Pairs that scored 0, ½, 1, 1½ and 2 points.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    wins: Count = None,
    draws: Count = None,
    losses: Count = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Check what a gate has decided.", rich_help_panel=RESULTS
        ),
    ] = None,
    truth: Annotated[
        list[float] | None,
        typer.Option(metavar="X", help="Forecast the test at this value too; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tests a null hypothesis (p0 or elo0) against an alternative (p1 or elo1)."""
    from league.stats.gates import WARNING, Certificate, Gate, Risks, Verdict, checked_counts

    counts = (losses, draws, wins)
    by_match = any(count is not None for count in counts)
    if by_match + (pentanomial is not None) + (certificate is not None) > 1:
        raise InvalidInput(
            "results were given twice: choose one of --pentanomial, --wins --draws --losses, "
            "--certificate"
        )
    named = {"p0": p0, "p1": p1, "elo0": elo0, "elo1": elo1}
    given = {name: value for name, value in named.items() if value is not None}
    truths, subject = truth or [], dict[str, Any]()
    if certificate is not None:
        if given:
            flags = ", ".join(f"--{name}" for name in given)
            raise InvalidInput(f"a certificate holds its own hypotheses: leave out {flags}")
        signed = _certificate(certificate, Certificate)
        gate, subject = signed.gate, asdict(signed.subject)
    else:
        test = _test(given, by_match=by_match)
        gate = Gate(test=test, risks=Risks(alpha=alpha, beta=beta))
        low, high = test.values
        truths = [low, (low + high) / 2, high, *truths]
        if by_match:
            gate = replace(gate, counts=checked_counts([count or 0 for count in counts], 3))
        elif pentanomial is not None:
            gate = replace(gate, counts=checked_counts(_numbers(pentanomial, test), 5))
    report = _report(gate, truths)
    if as_json:
        print(json.dumps(({"subject": subject} if subject else {}) | report))
    else:
        facts = [(name, value or "-") for name, value in subject.items()]
        print_pairs([*facts, *_lines(gate, report)])
    if gate.verdict is not Verdict.CONTINUE:
        say(WARNING)


def _certificate(path: Path, kind: Any) -> Any:
    try:
        return kind.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotFound(f"{path} can't be read ({reason}): name another file") from None
    except DataCorrupt as error:
        raise DataCorrupt(f"{path}: {error}") from None


def _test(given: dict[str, Any], *, by_match: bool) -> Test:
    """Returns the test that the flags describe.

    Raises:
        InvalidInput: the flags don't describe exactly one test.
    """
    from league.stats.gates import BernoulliTest, MultinomialTest

    if given.keys() == {"p0", "p1"}:
        return BernoulliTest(p0=given["p0"], p1=given["p1"])
    if given.keys() != {"elo0", "elo1"}:
        flags = ", ".join(f"--{name}" for name in given) or "none"
        raise InvalidInput(
            "a test compares two hypotheses: give --p0 and --p1, or --elo0 and --elo1 "
            f"(given: {flags})"
        )
    return MultinomialTest(elo0=given["elo0"], elo1=given["elo1"], cells=3 if by_match else 5)


def _numbers(text: str, test: Test) -> list[int]:
    if test.cells != 5:
        raise InvalidInput(
            "--pentanomial counts pairs, --p0 and --p1 test matches: give --wins, --draws and "
            "--losses, or --elo0 and --elo1"
        )
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--pentanomial {text} is no list of counts: give five, as 10,20,40,20,10"
        ) from None


def _report(gate: Gate, truths: list[float]) -> dict[str, Any]:
    """Returns all results of a test, with all digits.

    Args:
        gate: the test and its counts.
        truths: assumed true strengths for which to forecast the test.

    Returns:
        JSON values. An infinite Elo is None.
    """
    from league.stats.gates import elo_of, estimate, forecast, mean_score, unit

    report: dict[str, Any] = {
        "hypotheses": str(gate.test),
        "alpha": gate.risks.alpha,
        "beta": gate.risks.beta,
        "lower": gate.risks.lower,
        "upper": gate.risks.upper,
        "unit": unit(gate.test.cells),
        "counts": list(gate.counts),
        "verdict": gate.verdict.value,
        "llr": gate.llr,
    }
    estimated = estimate(gate.test, gate.counts, gate.risks)
    if estimated is not None:
        scores = {"value": estimated.score, "low": estimated.low, "high": estimated.high}
        elos = {name: elo_of(score) for name, score in scores.items()}
        report["points"] = mean_score(gate.counts)
        report["score"] = scores
        report["elo"] = {name: elo if math.isfinite(elo) else None for name, elo in elos.items()}
    report["expected"] = []
    for truth in truths:
        score = gate.test.score(truth)
        ahead = asdict(forecast(gate.test, score, gate.counts, gate.risks))
        report["expected"].append({"truth": truth, "score": score, **ahead})
    return report


def _lines(gate: Gate, report: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the report as lines of name and value."""
    from league.stats.gates import amount

    cells = gate.test.cells
    bounds = f"rejects at {report['lower']:.3f}, accepts at {report['upper']:.3f}"
    lines = [("test", f"{gate.test}, alpha {gate.risks.alpha:g}, beta {gate.risks.beta:g}")]
    if gate.results:
        if cells == 5:
            counted = f"{amount(gate.results, 5)}, {amount(gate.matches, 3)}"
        else:
            losses, draws, wins = gate.counts
            counted = f"{amount(gate.results, 3)}, {wins:,} won, {draws:,} drawn, {losses:,} lost"
        score = report["score"]

        def elo(name: str) -> str:
            value = report["elo"][name]
            return f"{value:.2f}" if value is not None else "∞" if score[name] > 0.5 else "-∞"

        low, high = f"{score['low']:.2%}", f"{score['high']:.2%}"
        lines += [
            ("verdict", MEANING[gate.verdict.value]),
            ("llr", f"{gate.llr:.3f} ({bounds})"),
            ("counted", f"{counted}; {report['points']:.2%} of the points"),
            ("score", f"{score['value']:.2%} (95 % interval {low} to {high})"),
            ("elo", f"{elo('value')} (95 % interval {elo('low')} to {elo('high')})"),
        ]
    else:
        lines.append(("bounds", bounds))
    for row in report["expected"]:
        after = amount(row["results"], cells)
        text = f"accepts {row['accepted']:.1%}, after {after} on average"
        lines.append((f"if truly {row['truth']:g}", text))
    return lines
