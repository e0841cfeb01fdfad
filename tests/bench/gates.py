"""Error rates and lengths of gates, compared with peeking at a win rate: tables and a picture.

    OMP_NUM_THREADS=1 python tests/bench/gates.py [--runs 20000] [--pairs 400] [--plot
    docs/images/gates.png]

Candidates of known strength play frozen opponents: no game, no network. Peeking accepts as soon as
the win rate of the newest matches (decayed by .99 a match) exceeds .70, checked after every match
from the eighth to the 2,000th. The tables are about Bernoulli gates with and without draws,
pentanomial gates (`--pairs` of each), and how often intervals hold the truth after a stop.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(
    0, str(Path(__file__).parents[2])
)  # learner.py next to this file is not the package
sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from gate_runs import Runs, bernoulli_runs, independent_pairs, pair_runs, peeking, seat_pairs

from league.metrics import wilson_interval
from league.stats.gates import (
    BernoulliTest,
    MultinomialTest,
    Risks,
    estimate,
    forecast,
    mean_score,
    points,
    score_of,
)

TESTS = (BernoulliTest(p0=0.55, p1=0.65), BernoulliTest(p0=0.65, p1=0.75))
SCORES = (0.4, 0.45, 0.5, 0.55, 0.575, 0.6, 0.625, 0.65, 0.675, 0.7, 0.725, 0.75, 0.8, 0.85, 0.9)
COLOURS = ("#0072B2", "#009E73", "#D55E00")
LEGEND: Any = {
    "frameon": False,
    "fontsize": 8.5,
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.14),
}


def say(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def rates(runs: int) -> None:
    say("gate", "true score", "drawn", "accepted", "matches", "forecast")
    say(*["---"] * 6)
    for test in TESTS:
        for drawn in (0.0, 0.3):
            for score in (test.p0 - 0.05, test.p0, (test.p0 + test.p1) / 2, test.p1):
                plain = bernoulli_runs(test, score, drawn=drawn, runs=runs)
                hundred = (0, round(100 * drawn), 100 - round(100 * drawn))
                ahead = forecast(test, score, hundred, Risks())
                found = f"{ahead.accepted:.2%} after {ahead.results:.0f}"
                cells = (f"{plain.rate:.2%}", f"{plain.length:.1f}", found)
                say(test, f"{score:.2f}", f"{drawn:.0%}", *cells)


def peeks(runs: int) -> None:
    say("peeking at .70", "true .50", "true .60")
    say(*["---"] * 3)
    for least in (8, 1):
        found = (peeking(score, runs=runs, least=least) for score in (0.5, 0.6))
        say(f"from match {least} on", *(f"{one.rate:.1%}" for one in found))


def pairs(number: int) -> None:
    say("pentanomial gate", "pairs", "true Elo", "accepted", "pairs", "forecast", "interval holds")
    say(*["---"] * 7)
    games = (("independent matches", independent_pairs), ("the seat decides most", seat_pairs))
    for test, (name, shape) in itertools.product(
        (MultinomialTest(elo0=0, elo1=most) for most in (50, 100)), games
    ):
        for elo in test.values:
            score = score_of(elo)
            shares = shape(score)
            runs = pair_runs(test, shares, runs=number)
            many = tuple(round(1e6 * share) for share in shares)
            ahead = forecast(test, score, many, Risks())
            say(test, name, elo, f"{runs.rate:.1%} ± {runs.error:.1%}", f"{runs.length:.0f}",
                f"{ahead.accepted:.1%} after {ahead.results:.0f}",
                f"{coverage(test, runs, score, 400)[0]:.1%}")  # fmt: skip


def rows(runs: Runs, most: int) -> Iterator[tuple[int, ...]]:
    for row in runs.counts_RC[:most]:
        yield tuple(int(count) for count in row)


def coverage(
    test: BernoulliTest | MultinomialTest, runs: Runs, score: float, most: int
) -> tuple[float, float, float]:
    """Shares of intervals that hold `score`: the gate's, Wilson's; and of estimates that lie
    below it.
    """
    held, wilson, below = [], [], []
    for counts in rows(runs, most):
        one = estimate(test, counts, Risks())
        assert one is not None
        usual = wilson_interval(points(counts), sum(counts))
        held.append(one.low <= score <= one.high)
        wilson.append(usual.low <= score <= usual.high)
        below.append(one.score < score)
    return float(np.mean(held)), float(np.mean(wilson)), float(np.mean(below))


def intervals(number: int) -> None:
    say(
        "gate",
        "true score",
        "mean of the matches",
        "interval holds",
        "Wilson's holds",
        "estimate too low",
    )
    say(*["---"] * 6)
    for test in TESTS:
        for score in (test.p0 - 0.1, test.p0, (test.p0 + test.p1) / 2, test.p1, test.p1 + 0.1):
            runs = bernoulli_runs(test, score, runs=number, seed=3)
            held, wilson, below = coverage(test, runs, score, number)
            mean = np.mean([mean_score(counts) for counts in rows(runs, number)])
            say(test, f"{score:.2f}", f"{mean:.3f}", f"{held:.1%}", f"{wilson:.1%}", f"{below:.1%}")


def plot(runs: int, out: Path) -> None:
    """Acceptance and length over the true score, and some walks of one gate."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                     "grid.color": "#E6EAEE", "axes.axisbelow": True, "axes.titlelocation": "left",
                     "axes.titlesize": 10, "axes.titleweight": "bold", "font.size": 9}  # fmt: skip
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.4), layout="constrained")
    kinds = [
        (
            f"gate, {test.p0:g} against {test.p1:g}",
            [bernoulli_runs(test, p, runs=runs) for p in SCORES],
        )
        for test in TESTS
    ]
    kinds.append(("peeking: decayed win rate > .70", [peeking(p, runs=runs) for p in SCORES]))
    for (name, found), colour in zip(kinds, COLOURS, strict=True):
        left.plot(SCORES, [100 * one.rate for one in found], "o-", ms=3, color=colour, label=name)
        if "peeking" not in name:
            middle.plot(SCORES, [one.length for one in found], "o-", ms=3, color=colour, label=name)
            most = [np.quantile(one.length_R, 0.95) for one in found]
            middle.plot(SCORES, most, ":", lw=1.3, color=colour)
    left.axhline(5, color="#8A94A0", lw=0.8)
    left.axhline(95, color="#8A94A0", lw=0.8)
    left.set(title="accepted, %", xlabel="true score", ylim=(-2, 102))
    left.legend(**LEGEND)
    middle.set(title="matches until it decides", xlabel="true score", ylim=(0, None))
    middle.plot([], [], color="#4A5560", label="mean")
    middle.plot([], [], ":", color="#4A5560", label="95 % are shorter")
    middle.legend(**LEGEND)
    walks(right)
    figure.savefig(out, dpi=110)


def walks(axes: Any) -> None:
    """The log-likelihood ratio of one gate, for three strengths."""
    test, risks = TESTS[0], Risks()
    for score, colour in ((0.55, "#D55E00"), (0.6, "#8A94A0"), (0.65, "#009E73")):
        for seed in range(3):
            rng = np.random.default_rng((seed, round(100 * score)))
            steps = np.where(rng.random(2000) < score, test.win, test.loss)
            path = np.concatenate([[0.0], np.cumsum(steps)])
            end = int(np.argmax((path >= risks.upper) | (path <= risks.lower)))
            label = f"true score {score:g}" if seed == 0 else None
            axes.plot(path[: end + 1], color=colour, lw=1.1, label=label)
            axes.plot(end, path[end], "o", ms=4, color=colour)
    for bound, said in ((risks.upper, "accept"), (risks.lower, "reject")):
        axes.axhline(bound, color="#1F2933", lw=1)
        axes.text(1.01, bound, said, transform=axes.get_yaxis_transform(), va="center")
    axes.set(title="log-likelihood ratio, .55 against .65", xlabel="matches", ylim=(-3.9, 3.9))
    axes.legend(**LEGEND)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=400, help="pentanomial gates of each kind")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw instead of printing tables")
    args = parser.parse_args()
    if args.plot:
        plot(args.runs, args.plot)
        return
    rates(args.runs)
    peeks(args.runs)
    intervals(min(args.runs, 2000))
    pairs(args.pairs)


if __name__ == "__main__":
    main()
