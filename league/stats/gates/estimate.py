"""How strong the candidate is, by a test that stopped when it had seen enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from league.errors import InvalidInput
from league.stats.gates.bounds import Risks
from league.stats.gates.hypotheses import Counts, Hypotheses, mean_score
from league.stats.gates.walk import worse_outcome

EDGE = 1e-6
"""How near to 0 and 1 a score is looked for."""


@dataclass(frozen=True)
class Estimate:
    """A score with its interval: `score` is as likely too high as too low, unlike the mean of a
    stopped test.

    `low` and `high` are 0 and 1 where the results set no bound.
    """

    score: float
    low: float
    high: float
    confidence: float = 0.95


def estimated(
    hypotheses: Hypotheses, counts: Counts, risks: Risks, confidence: float = 0.95
) -> Estimate | None:
    """The scores under which what was seen, or worse, has the probability ½ and those of the
    interval.

    A test that stops when its ratio is high stops on good luck, so the mean of its results is too
    high after an acceptance and too low after a rejection. Here an outcome is judged among all
    outcomes of the test, by when and where it stopped (`worse_outcome`). The ratio is taken as a
    Brownian motion: counts beyond a bound are set back to where the line to them met it. Checked
    against fishtest's known answer. None without results. Raises `InvalidInput` on an impossible
    confidence.
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidInput(
            f"a confidence of {confidence:g} can't be used: give a share between 0 and 1"
        )
    if not any(counts):
        return None
    walk, mean, results = hypotheses.walk(counts), mean_score(counts), float(sum(counts))
    position = results * walk(mean)[0]
    if not risks.lower <= position <= risks.upper:
        bound = risks.upper if position > 0 else risks.lower
        results, position = results * bound / position, bound

    def better_or_same(score: float) -> float:
        drift, variance = walk(score)
        return 1.0 - worse_outcome(drift, max(variance, 1e-12), risks, results, position)

    tail = (1.0 - confidence) / 2
    return Estimate(
        score=_score_at(better_or_same, 0.5, mean),
        low=_score_at(better_or_same, tail, mean),
        high=_score_at(better_or_same, 1.0 - tail, mean),
        confidence=confidence,
    )


def _score_at(probability: Callable[[float], float], wanted: float, start: float) -> float:
    """The score nearest to `start` where the rising `probability` is `wanted`; 0 or 1 when there
    is none.
    """
    from scipy.optimize import brentq

    start = min(max(start, EDGE), 1.0 - EDGE)
    upwards = probability(start) < wanted
    step, here = 1e-4, start
    while True:
        there = min(here + step, 1.0 - EDGE) if upwards else max(here - step, EDGE)
        if (probability(there) < wanted) != upwards:
            low, high = sorted((here, there))
            return float(brentq(lambda score: probability(score) - wanted, low, high, xtol=1e-12))
        if there in (EDGE, 1.0 - EDGE):
            return 1.0 if upwards else 0.0
        here, step = there, 2.0 * step
