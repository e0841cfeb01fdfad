"""``league sprt``: whether results decide between two hypotheses, and how many more it takes."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from typing import Any

from league.cli.output import print_pairs, say
from league.cli.sprt_input import Asked, add_input, asked_of
from league.stats.gates import (
    WARNING,
    Gate,
    Verdict,
    amount,
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
Found = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument("--json", action="store_true", help="one object with all digits")


def run(args: argparse.Namespace) -> int:
    asked = asked_of(args)
    found = _found(asked)
    if args.json:
        print(json.dumps(found))
    else:
        print_pairs(_lines(asked.gate, found))
    for note in _notes(asked):
        say(note)
    return 0


def _found(asked: Asked) -> Found:
    """All that there is to say, with all digits; Elo without an end is None."""
    gate = asked.gate
    found: Found = {"subject": asdict(asked.certificate.subject)} if asked.certificate else {}
    found |= {
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
    found_score = estimate(gate.test, gate.counts, gate.risks)
    if found_score is not None:
        ends = {"value": found_score.score, "low": found_score.low, "high": found_score.high}
        elos = {name: elo_of(score) for name, score in ends.items()}
        found["points"] = mean_score(gate.counts)
        found["score"] = ends
        found["elo"] = {name: elo if math.isfinite(elo) else None for name, elo in elos.items()}
    found["expected"] = [_expected(gate, value) for value in asked.truths]
    return found


def _expected(gate: Gate, value: float) -> Found:
    score = gate.test.score(value, gate.counts)
    ahead = forecast(gate.test, score, gate.counts, gate.risks)
    return {"truth": value, "score": score, **asdict(ahead)}


def _lines(gate: Gate, found: Found) -> list[tuple[str, str]]:
    bounds = f"rejects at {found['lower']:.3f}, accepts at {found['upper']:.3f}"
    lines = [(name, value or "-") for name, value in found.get("subject", {}).items()]
    lines.append(("test", f"{gate.test}, alpha {gate.risks.alpha:g}, beta {gate.risks.beta:g}"))
    if gate.results:
        low, middle, high = (found["score"][name] for name in ("low", "value", "high"))
        lines += [
            ("verdict", MEANING[gate.verdict]),
            ("llr", f"{gate.llr:.3f} ({bounds})"),
            ("counted", f"{_counted(gate)}; {found['points']:.2%} of the points"),
            ("score", f"{middle:.2%} (95 % interval {low:.2%} to {high:.2%})"),
            ("elo", f"{_elo(middle)} (95 % interval {_elo(low)} to {_elo(high)})"),
        ]
    else:
        lines.append(("bounds", bounds))
    for one in found["expected"]:
        told = f"accepts {one['accepted']:.1%}, after {amount(one['results'], gate.test.cells)} on average"
        lines.append((f"if truly {one['truth']:g}", told))
    return lines


def _counted(gate: Gate) -> str:
    if gate.test.cells == 5:
        return f"{amount(gate.results, 5)}, {amount(gate.matches, 3)}"
    losses, draws, wins = gate.counts
    return f"{amount(gate.results, 3)}, {wins:,} won, {draws:,} drawn, {losses:,} lost"


def _elo(score: float) -> str:
    elo = elo_of(score)
    return f"{elo:.2f}" if math.isfinite(elo) else "∞" if elo > 0 else "-∞"


def _notes(asked: Asked) -> list[str]:
    """How the results were read, and what must not be made of them."""
    gate, notes = asked.gate, list(asked.notes)
    if gate.verdict is Verdict.CONTINUE:
        return notes
    bound = gate.risks.upper if gate.llr > 0 else gate.risks.lower
    middle = gate.test.score(sum(gate.test.values) / 2, gate.counts)
    _, variance = gate.test.diffusion(gate.counts)(middle)
    if abs(gate.llr - bound) > 3 * math.sqrt(variance):  # further than one result takes it
        cells = gate.test.cells
        notes.append(
            f"the ratio is beyond its bound by far: a test that looks after every {unit(cells)} would have "
            f"ended after about {amount(gate.results * bound / gate.llr, cells)}"
        )
    return [*notes, WARNING]
