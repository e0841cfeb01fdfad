"""Gates against candidates of known strength: error rates, lengths, coverage of intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from league.stats.gates import (
    BernoulliTest,
    Gate,
    MultinomialTest,
    Risks,
    Verdict,
    estimate,
    forecast,
    mean_score,
    score_of,
)
from league.stats.gates.multinomial import likeliest_of_mean
from matchmaker.acts.gate import LIMIT

# Shape suffixes: R runs, C cells.


@dataclass(frozen=True)
class Runs:
    """How many tests ended: whether they accepted, and the counts they stopped at."""

    accepted_R: NDArray[np.bool_]
    counts_RC: NDArray[np.int64]

    @property
    def rate(self) -> float:
        return float(self.accepted_R.mean())

    @property
    def error(self) -> float:
        """Standard error of the rate, of a rate of 1 % when none or all accepted."""
        rate = min(max(self.rate, 0.01), 0.99)
        return float(np.sqrt(rate * (1 - rate) / len(self.accepted_R)))

    @property
    def length_R(self) -> NDArray[np.int64]:
        return self.counts_RC.sum(1)

    @property
    def length(self) -> float:
        return float(self.length_R.mean())


def bernoulli_runs(
    test: BernoulliTest,
    score: float,
    *,
    drawn: float = 0.0,
    runs: int = 1000,
    seed: int = 0,
    risks: Risks | None = None,
) -> Runs:
    """Matches won with `score` − `drawn`/2 and drawn with `drawn`, until each test has decided."""
    risks, rng = risks or Risks(), np.random.default_rng(seed)
    moves = np.array([test.loss, (test.loss + test.win) / 2, test.win])
    shares = np.array([1 - score - drawn / 2, drawn, score - drawn / 2])
    counts_RC = np.zeros((runs, 3), np.int64)
    accepted_R, open_R, llr_R = np.zeros(runs, bool), np.ones(runs, bool), np.zeros(runs)
    while open_R.any():
        at = np.flatnonzero(open_R)
        cells = np.minimum(np.searchsorted(np.cumsum(shares), rng.random(len(at)), side="right"), 2)
        counts_RC[at, cells] += 1
        llr_R[at] += moves[cells]
        high, low = llr_R[at] >= risks.upper, llr_R[at] <= risks.lower
        accepted_R[at[high]] = True
        open_R[at[high | low]] = False
    return Runs(accepted_R, counts_RC)


def pair_runs(
    test: MultinomialTest,
    shares: list[float],
    *,
    runs: int = 100,
    seed: int = 0,
    risks: Risks | None = None,
) -> Runs:
    """Pairs (or matches, of three cells) of a fixed distribution, until each test has decided."""
    risks, rng = risks or Risks(), np.random.default_rng(seed)
    accepted, stopped = [], []
    for _ in range(runs):
        counts, llr = [0] * test.cells, 0.0
        drawn = iter(())
        while risks.lower < llr < risks.upper:
            cell = next(drawn, None)
            if cell is None:
                drawn = iter(rng.choice(test.cells, 256, p=shares).tolist())
                continue
            counts[cell] += 1
            llr = test.llr(tuple(counts))
        accepted.append(llr >= risks.upper)
        stopped.append(counts)
    return Runs(np.array(accepted), np.array(stopped))


def independent_pairs(score: float, drawn: float = 0.0) -> list[float]:
    """Shares of pairs of two independent matches of this score and share of draws."""
    win, loss = score - drawn / 2, 1 - score - drawn / 2
    return np.convolve([loss, drawn, win], [loss, drawn, win]).tolist()


def seat_pairs(score: float) -> list[float]:
    """Shares of pairs in a game whose seat decides most, tilted to a score."""
    likeliest = likeliest_of_mean([0.02, 0.13, 0.70, 0.13, 0.02], score)
    return [share / sum(likeliest) for share in likeliest]


def alike_pairs(score: float) -> list[float]:
    """Shares of pairs of which half are two matches that end alike."""
    return [
        (apart + together) / 2
        for apart, together in zip(
            independent_pairs(score), [1 - score, 0, 0, 0, score], strict=True
        )
    ]


WIDE = BernoulliTest(p0=0.65, p1=0.75)
EXPLOITER = BernoulliTest(p0=0.55, p1=0.65)
FAR = MultinomialTest(elo0=0, elo1=100)


def chance(rate: float, runs: Runs) -> float:
    """Standard error of a share that is truly `rate`."""
    return float(np.sqrt(rate * (1 - rate) / len(runs.accepted_R)))


def assert_errs_as_allowed(weak: Runs, strong: Runs, risks: Risks, sigmas: float) -> None:
    assert weak.rate <= risks.alpha + sigmas * chance(risks.alpha, weak)
    assert strong.rate >= 1 - risks.beta - sigmas * chance(risks.beta, strong)


def covered(test, runs: Runs, score: float, most: int) -> tuple[float, float]:
    """Shares of runs whose interval holds the true score, and whose estimate lies below it."""
    rows = [tuple(int(count) for count in row) for row in runs.counts_RC[:most]]
    found = [estimate(test, row, Risks()) for row in rows]
    return (
        float(np.mean([one.low <= score <= one.high for one in found])),
        float(np.mean([one.score < score for one in found])),
    )


def test_the_simulation_is_that_of_a_gate():
    runs = bernoulli_runs(EXPLOITER, 0.62, drawn=0.2, runs=20, seed=4)
    for accepted, counts in zip(runs.accepted_R, runs.counts_RC, strict=True):
        gate = Gate(test=EXPLOITER, counts=tuple(int(count) for count in counts))
        assert gate.verdict is (Verdict.ACCEPT if accepted else Verdict.REJECT)


@pytest.mark.parametrize("drawn", [0.0, 0.3])
def test_error_rates_and_lengths_in_short(drawn):
    weak = bernoulli_runs(WIDE, 0.65, drawn=drawn, runs=1200)
    strong = bernoulli_runs(WIDE, 0.75, drawn=drawn, runs=1200)
    assert_errs_as_allowed(weak, strong, Risks(), 3)
    for runs, score in ((weak, 0.65), (strong, 0.75)):
        drawn_counts = (0, round(100 * drawn), 100 - round(100 * drawn))
        ahead = forecast(WIDE, score, drawn_counts, Risks())
        assert ahead.accepted == pytest.approx(runs.rate, abs=3.5 * runs.error)
        assert ahead.results == pytest.approx(runs.length, rel=0.07)


def test_an_interval_covers_in_short():
    for score in (0.55, 0.65):
        held, below = covered(EXPLOITER, bernoulli_runs(EXPLOITER, score, runs=250), score, 250)
        assert held >= 0.91
        assert 0.38 < below < 0.62


def test_pairs_in_short():
    weak, strong = (
        pair_runs(FAR, independent_pairs(score), runs=60) for score in (0.5, score_of(100))
    )
    assert_errs_as_allowed(weak, strong, Risks(), 3)


@pytest.mark.parametrize("victims", [1, 2, 3])
def test_a_strong_candidate_passes_all_its_victims(victims):
    risks = Risks().of_each(victims)
    tests = [
        bernoulli_runs(EXPLOITER, 0.65, runs=3000, seed=victim, risks=risks)
        for victim in range(victims)
    ]
    passed = np.all([one.accepted_R for one in tests], axis=0)
    assert passed.mean() >= 0.95 - 2 * chance(0.95, tests[0])


@pytest.mark.slow
@pytest.mark.parametrize("test", [WIDE, EXPLOITER], ids=str)
@pytest.mark.parametrize("drawn", [0.0, 0.3])
def test_error_rates(test, drawn):
    for risks in (Risks(), Risks(alpha=0.01, beta=0.1)):
        weak, strong = (
            bernoulli_runs(test, score, drawn=drawn, runs=20_000, risks=risks)
            for score in test.values
        )
        assert_errs_as_allowed(weak, strong, risks, 2)


@pytest.mark.slow
def test_forecasts_over_all_strengths():
    for test in (WIDE, EXPLOITER):
        for score in (0.3, 0.5, 0.6, 0.64, 0.7, 0.8, 0.95):
            runs = bernoulli_runs(test, score, runs=8000)
            ahead = forecast(test, score, (0, 0, 0), Risks())
            assert ahead.accepted == pytest.approx(runs.rate, abs=0.015), (str(test), score)
            assert ahead.results == pytest.approx(runs.length, rel=0.06), (str(test), score)


@pytest.mark.slow
def test_intervals_cover_and_estimates_lie_in_the_middle():
    """And the plain mean does not: at the null hypothesis it is too low."""
    for score in (0.45, 0.55, 0.6, 0.65, 0.75):
        runs = bernoulli_runs(EXPLOITER, score, runs=1500, seed=3)
        held, below = covered(EXPLOITER, runs, score, 1500)
        assert held >= 0.94
        assert below == pytest.approx(0.5, abs=0.05)
    weak = bernoulli_runs(EXPLOITER, 0.55, runs=1500, seed=3)
    assert np.mean([mean_score(tuple(row)) for row in weak.counts_RC]) < 0.53


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", [independent_pairs, seat_pairs])
def test_error_rates_of_pairs(shape):
    weak, strong = (pair_runs(FAR, shape(score), runs=600) for score in (0.5, score_of(100)))
    assert_errs_as_allowed(weak, strong, Risks(), 3)
    held, _ = covered(FAR, weak, 0.5, 300)
    assert held >= 0.9


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shape", [independent_pairs, alike_pairs])
def test_the_limit_of_gates_costs_no_strong_candidate(shape):
    admission = MultinomialTest(elo0=0, elo1=35)
    strong = pair_runs(admission, shape(score_of(35)), runs=600)
    in_time_R = strong.length_R <= LIMIT
    assert np.mean(strong.accepted_R & in_time_R) >= 0.95 - 2 * chance(0.95, strong)
    assert np.mean(in_time_R) >= 0.995
