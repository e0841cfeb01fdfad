"""What ``league sprt`` finds: counts results, tests them, and forecasts how many more it takes."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from league.errors import DataCorrupt, InvalidInput, NotFound
from league.stats.gates import (
    WARNING,
    BernoulliTest,
    Certificate,
    Counts,
    EloModel,
    Gate,
    MultinomialTest,
    Result,
    Risks,
    Test,
    Verdict,
    amount,
    checked_counts,
    elo_of,
    estimate,
    forecast,
    mean_score,
    unit,
)

MEANING = {
    Verdict.ACCEPT: "accept: as strong as the alternative",
    Verdict.REJECT: "reject: as weak as the null hypothesis",
    Verdict.CONTINUE: "continue: not decided yet",
}
SCORES = {"1": 1.0, "w": 1.0, "0.5": 0.5, "1/2": 0.5, "½": 0.5, "d": 0.5, "0": 0.0, "l": 0.0}
"""The words for a match's score in a file of results."""
Pair = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The flags: hypotheses, error rates, and one kind of results (`counts` from the loss up)."""

    shares: Pair
    elos: Pair
    model: str | None
    alpha: float
    beta: float
    pentanomial: str | None
    counts: tuple[int | None, int | None, int | None]
    results: Path | None
    certificate: Path | None
    truths: tuple[float, ...]


@dataclass(frozen=True)
class Counted:
    """The test with its results; `truths` are the values to forecast at, in the test's unit."""

    gate: Gate
    truths: Sequence[float]
    notes: list[str] = field(default_factory=list)
    certificate: Certificate | None = None


def count(request: Request) -> Counted:
    """The test that the flags mean, with its results.

    Raises:
        InvalidInput: flags that exclude each other or are incomplete.
        NotFound, DataCorrupt: a file that can't be read.
    """
    by_match = any(count is not None for count in request.counts)
    given = [request.pentanomial, request.results, request.certificate]
    if sum(one is not None for one in given) + by_match > 1:
        raise InvalidInput(
            "results were given twice: choose one of --pentanomial, --wins --draws --losses, "
            "--results, --certificate"
        )
    if request.certificate is not None:
        return _certified(request, request.certificate)
    test = _test(request, 3 if by_match else 5)
    gate = Gate(test=test, risks=Risks(alpha=request.alpha, beta=request.beta))
    low, high = test.values
    truths = (low, (low + high) / 2, high, *request.truths)
    if request.results is not None:
        return _played(gate, request.results, truths)
    counts: Counts = ()
    if by_match:
        counts = checked_counts([count or 0 for count in request.counts], 3)
    elif request.pentanomial is not None:
        counts = _pentanomial(request.pentanomial, test)
    return Counted(replace(gate, counts=counts), truths)


def _test(request: Request, elo_cells: Literal[3, 5]) -> Test:
    named = {
        "p0": request.shares[0],
        "p1": request.shares[1],
        "elo0": request.elos[0],
        "elo1": request.elos[1],
    }
    given = [name for name, value in named.items() if value is not None]
    if not given:
        raise InvalidInput("there is nothing to test: give --p0 and --p1, or --elo0 and --elo1")
    if len({name[:-1] for name in given}) > 1:
        raise InvalidInput("give one pair of hypotheses: --p0 and --p1, or --elo0 and --elo1")
    if len(given) == 1:
        (name,) = given
        missing = name[:-1] + ("1" if name.endswith("0") else "0")
        raise InvalidInput(f"--{name} needs --{missing}: a test compares two hypotheses")
    p0, p1 = request.shares
    if p0 is not None and p1 is not None:
        if request.model is not None:
            raise InvalidInput("--model is for --elo0 and --elo1: shares have no model")
        return BernoulliTest(p0=p0, p1=p1)
    elo0, elo1 = request.elos
    assert elo0 is not None
    assert elo1 is not None
    models = [model.value for model in EloModel]
    if request.model not in (None, *models):
        raise InvalidInput(f"there is no model {request.model!r}: there are {', '.join(models)}")
    model = EloModel(request.model or "logistic")
    return MultinomialTest(elo0=elo0, elo1=elo1, model=model, cells=elo_cells)


def _pentanomial(text: str, test: Test) -> Counts:
    if test.cells != 5:
        raise InvalidInput(
            "--pentanomial counts pairs, --p0 and --p1 test matches: give --wins, --draws and "
            "--losses, or --elo0 and --elo1"
        )
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--pentanomial {text} is no list of counts: give five, as 10,20,40,20,10"
        ) from None
    return checked_counts(counts, 5)


def _played(gate: Gate, path: Path, truths: Sequence[float]) -> Counted:
    """The gate after the matches of a file, up to the match that decides."""
    words = _read(path).split()
    unknown = next((word for word in words if word.lower() not in SCORES), None)
    if unknown is not None:
        raise InvalidInput(f"{path} holds {unknown!r}: name each match w, d or l (or 1, 0.5, 0)")
    scores = [SCORES[word.lower()] for word in words]
    notes = []
    if gate.test.cells == 5:
        if len(scores) % 2:
            notes.append(f"the last of {len(scores):,} matches has no partner and does not count")
        scores = [sum(pair) / 2 for pair in zip(scores[::2], scores[1::2], strict=False)]
    after = gate.take(Result(place, score) for place, score in enumerate(scores))
    left = len(scores) - after.results
    if left:
        decided = amount(after.results, gate.test.cells)
        notes.append(f"decided after {decided}: the other {left:,} do not count")
    return Counted(after, truths, notes)


def _certified(request: Request, path: Path) -> Counted:
    if any(value is not None for value in (*request.shares, *request.elos, request.model)):
        raise InvalidInput(
            "a certificate holds its own hypotheses: leave out --p0, --p1, --elo0, --elo1, --model"
        )
    try:
        found = Certificate.from_json(_read(path))
    except DataCorrupt as error:
        raise DataCorrupt(f"{path}: {error}") from None
    return Counted(found.gate, request.truths, certificate=found)


def _read(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotFound(f"{path} can't be read ({reason}): name another file") from None


def report_of(counted: Counted) -> dict[str, Any]:
    """Everything with all digits; an infinite Elo is None."""
    gate = counted.gate
    report: dict[str, Any] = {}
    if counted.certificate is not None:
        report["subject"] = asdict(counted.certificate.subject)
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
    report["expected"] = [_forecast(gate, value) for value in counted.truths]
    return report


def _forecast(gate: Gate, value: float) -> dict[str, Any]:
    score = gate.test.score(value, gate.counts)
    ahead = forecast(gate.test, score, gate.counts, gate.risks)
    return {"truth": value, "score": score, **asdict(ahead)}


def lines_of(gate: Gate, report: dict[str, Any]) -> list[tuple[str, str]]:
    """The report as lines of name and value."""
    bounds = f"rejects at {report['lower']:.3f}, accepts at {report['upper']:.3f}"
    lines = [(name, value or "-") for name, value in report.get("subject", {}).items()]
    lines.append(("test", f"{gate.test}, alpha {gate.risks.alpha:g}, beta {gate.risks.beta:g}"))
    if gate.results:
        low, middle, high = (report["score"][name] for name in ("low", "value", "high"))
        lines += [
            ("verdict", MEANING[gate.verdict]),
            ("llr", f"{gate.llr:.3f} ({bounds})"),
            ("counted", f"{_counts(gate)}; {report['points']:.2%} of the points"),
            ("score", f"{middle:.2%} (95 % interval {low:.2%} to {high:.2%})"),
            ("elo", f"{_elo(middle)} (95 % interval {_elo(low)} to {_elo(high)})"),
        ]
    else:
        lines.append(("bounds", bounds))
    for one in report["expected"]:
        after = amount(one["results"], gate.test.cells)
        text = f"accepts {one['accepted']:.1%}, after {after} on average"
        lines.append((f"if truly {one['truth']:g}", text))
    return lines


def _counts(gate: Gate) -> str:
    if gate.test.cells == 5:
        return f"{amount(gate.results, 5)}, {amount(gate.matches, 3)}"
    losses, draws, wins = gate.counts
    return f"{amount(gate.results, 3)}, {wins:,} won, {draws:,} drawn, {losses:,} lost"


def _elo(score: float) -> str:
    elo = elo_of(score)
    return f"{elo:.2f}" if math.isfinite(elo) else "∞" if elo > 0 else "-∞"


def notes_of(counted: Counted) -> list[str]:
    """How the results were read, and what a stopped test does not say."""
    gate, notes = counted.gate, list(counted.notes)
    if gate.verdict is Verdict.CONTINUE:
        return notes
    bound = gate.risks.upper if gate.llr > 0 else gate.risks.lower
    middle = gate.test.score(sum(gate.test.values) / 2, gate.counts)
    _, variance = gate.test.diffusion(gate.counts)(middle)
    if abs(gate.llr - bound) > 3 * math.sqrt(variance):  # more than one result can take it
        cells = gate.test.cells
        ended = amount(gate.results * bound / gate.llr, cells)
        notes.append(
            f"the ratio is far beyond its bound: a test that looks after every {unit(cells)} "
            f"would have ended after about {ended}"
        )
    return [*notes, WARNING]
