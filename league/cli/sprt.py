"""``league sprt``: whether results decide between two hypotheses, and how many more it takes.

It counts results, tests them, and forecasts the test.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league.cli.options import AsJson
from league.cli.output import print_pairs, say
from league.errors import DataCorrupt, InvalidInput, NotFound

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.gates import Gate, Subject, Test

RESULTS = "Results: counts, or a file; none to forecast how many it takes"
SCORES = {"1": 1.0, "w": 1.0, "0.5": 0.5, "1/2": 0.5, "½": 0.5, "d": 0.5, "0": 0.0, "l": 0.0}
"""The words for a match's score in a file of results."""
MEANING = {
    "accept": "accept: as strong as the alternative",
    "reject": "reject: as weak as the null hypothesis",
    "continue": "continue: not decided yet",
}
Share = Annotated[float | None, typer.Option(metavar="P", help="Share of the points, as 0.55.")]
Elo = Annotated[float | None, typer.Option(metavar="ELO", help="Elo difference.")]
Count = Annotated[int | None, typer.Option(metavar="N", help="Matches.", rich_help_panel=RESULTS)]


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
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="One match a word, w, d or l, in the order of assignment (- reads stdin); with "
            "Elo, two matches in turn are a pair.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
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
    from league.stats.gates import Certificate, Gate, Risks, checked_counts

    counts = (losses, draws, wins)
    by_match = any(count is not None for count in counts)
    if sum(one is not None for one in (pentanomial, results, certificate)) + by_match > 1:
        raise InvalidInput(
            "results were given twice: choose one of --pentanomial, --wins --draws --losses, "
            "--results, --certificate"
        )
    hypotheses = {"p0": p0, "p1": p1, "elo0": elo0, "elo1": elo1}
    truths, subject = truth or [], None
    notes: list[str] = []
    if certificate is not None:
        if any(value is not None for value in hypotheses.values()):
            raise InvalidInput(
                "a certificate holds its own hypotheses: leave out --p0, --p1, --elo0, --elo1"
            )
        try:
            found = Certificate.from_json(_read(certificate))
        except DataCorrupt as error:
            raise DataCorrupt(f"{certificate}: {error}") from None
        gate, subject = found.gate, found.subject
    else:
        test = _test(hypotheses, by_match=by_match)
        gate = Gate(test=test, risks=Risks(alpha=alpha, beta=beta))
        low, high = test.values
        truths = [low, (low + high) / 2, high, *truths]
        if results is not None:
            gate, notes = _played(gate, results)
        elif by_match:
            gate = replace(gate, counts=checked_counts([count or 0 for count in counts], 3))
        elif pentanomial is not None:
            gate = replace(gate, counts=checked_counts(_numbers(pentanomial, test), 5))
    report = _report(gate, subject, truths)
    if as_json:
        print(json.dumps(report))
    else:
        print_pairs(_lines(gate, report))
    for note in [*notes, *_warnings(gate)]:
        say(note)


def _test(hypotheses: dict[str, float | None], *, by_match: bool) -> Test:
    """The test that the flags mean; raises `InvalidInput` where they name none, or two."""
    from league.stats.gates import BernoulliTest, MultinomialTest

    given = {name: value for name, value in hypotheses.items() if value is not None}
    kinds = {name[:-1] for name in given}
    if not given:
        raise InvalidInput("there is nothing to test: give --p0 and --p1, or --elo0 and --elo1")
    if len(kinds) > 1:
        raise InvalidInput("give one pair of hypotheses: --p0 and --p1, or --elo0 and --elo1")
    if len(given) == 1:
        (name,) = given
        missing = name[:-1] + ("1" if name.endswith("0") else "0")
        raise InvalidInput(f"--{name} needs --{missing}: a test compares two hypotheses")
    null, alternative = given.values()
    if kinds == {"p"}:
        return BernoulliTest(p0=null, p1=alternative)
    return MultinomialTest(elo0=null, elo1=alternative, cells=3 if by_match else 5)


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


def _played(gate: Gate, path: Path) -> tuple[Gate, list[str]]:
    """The gate after the matches of a file, up to the match that decides, and notes on them."""
    from league.stats.gates import Result, amount

    words = _read(path).split()
    unknown = next((word for word in words if word.lower() not in SCORES), None)
    if unknown is not None:
        raise InvalidInput(f"{path} holds {unknown!r}: name each match w, d or l (or 1, 0.5, 0)")
    scores, notes = [SCORES[word.lower()] for word in words], []
    if gate.test.cells == 5:
        if len(scores) % 2:
            notes.append(f"the last of {len(scores):,} matches has no partner and does not count")
        scores = [sum(pair) / 2 for pair in zip(scores[::2], scores[1::2], strict=False)]
    after = gate.take(Result(place, score) for place, score in enumerate(scores))
    left = len(scores) - after.results
    if left:
        decided = amount(after.results, gate.test.cells)
        notes.append(f"decided after {decided}: the other {left:,} do not count")
    return after, notes


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotFound(f"{path} can't be read ({reason}): name another file") from None


def _report(gate: Gate, subject: Subject | None, truths: Sequence[float]) -> dict[str, Any]:
    """Everything with all digits; an infinite Elo is None. `truths` are values to forecast at."""
    from league.stats.gates import elo_of, estimate, forecast, mean_score, unit

    report: dict[str, Any] = {} if subject is None else {"subject": asdict(subject)}
    report |= {
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
    found = estimate(gate.test, gate.counts, gate.risks)
    if found is not None:
        scores = {"value": found.score, "low": found.low, "high": found.high}
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
    """The report as lines of name and value."""
    from league.stats.gates import amount, elo_of

    def elo(score: float) -> str:
        value = elo_of(score)
        return f"{value:.2f}" if math.isfinite(value) else "∞" if value > 0 else "-∞"

    cells = gate.test.cells
    bounds = f"rejects at {report['lower']:.3f}, accepts at {report['upper']:.3f}"
    lines = [(name, value or "-") for name, value in report.get("subject", {}).items()]
    lines.append(("test", f"{gate.test}, alpha {gate.risks.alpha:g}, beta {gate.risks.beta:g}"))
    if gate.results:
        if cells == 5:
            counted = f"{amount(gate.results, 5)}, {amount(gate.matches, 3)}"
        else:
            losses, draws, wins = gate.counts
            counted = f"{amount(gate.results, 3)}, {wins:,} won, {draws:,} drawn, {losses:,} lost"
        low, middle, high = (report["score"][name] for name in ("low", "value", "high"))
        lines += [
            ("verdict", MEANING[gate.verdict.value]),
            ("llr", f"{gate.llr:.3f} ({bounds})"),
            ("counted", f"{counted}; {report['points']:.2%} of the points"),
            ("score", f"{middle:.2%} (95 % interval {low:.2%} to {high:.2%})"),
            ("elo", f"{elo(middle)} (95 % interval {elo(low)} to {elo(high)})"),
        ]
    else:
        lines.append(("bounds", bounds))
    for one in report["expected"]:
        after = amount(one["results"], cells)
        text = f"accepts {one['accepted']:.1%}, after {after} on average"
        lines.append((f"if truly {one['truth']:g}", text))
    return lines


def _warnings(gate: Gate) -> list[str]:
    """What a stopped test does not say."""
    from league.stats.gates import WARNING, Verdict, amount, unit

    if gate.verdict is Verdict.CONTINUE:
        return []
    bound = gate.risks.upper if gate.llr > 0 else gate.risks.lower
    middle = gate.test.score(sum(gate.test.values) / 2)
    _, variance = gate.test.diffusion(gate.counts)(middle)
    if abs(gate.llr - bound) <= 3 * math.sqrt(variance):  # one result can take it so far
        return [WARNING]
    cells = gate.test.cells
    ended = amount(gate.results * bound / gate.llr, cells)
    beyond = (
        f"the ratio is far beyond its bound: a test that looks after every {unit(cells)} would "
        f"have ended after about {ended}"
    )
    return [beyond, WARNING]
