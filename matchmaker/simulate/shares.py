"""Whom the learners were given, beside what the rule said: from the log alone, draw by draw.

Every call's draw is in the log with its candidates' weights, so what to expect of all calls
together is a sum. χ² of sums of unlike draws is a little too small by chance, never too large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matchmaker.sampling.draw import draw_table_of
from matchmaker.store.base import Reader

FEWEST = 5.0
"""Cells of which fewer are expected are counted together."""
_DRAWN = """
SELECT a.draw, a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END, count(*)
FROM assignments a WHERE a.mix != '' AND a.replaces = '' GROUP BY 1, 2, 3
"""


@dataclass(frozen=True)
class Fit:
    """χ² of counts against what was expected of them."""

    chi2: float
    freedom: int
    p_value: float


@dataclass
class Shares:
    """Matches by category and opponent, and those that the draws' own weights foretold."""

    category: Counter[str]
    opponent: Counter[str]
    expected_category: dict[str, float]
    expected_opponent: dict[str, float]

    @property
    def matches(self) -> int:
        return self.category.total()

    def category_fit(self) -> Fit:
        return fit_of(self.category, self.expected_category)

    def opponent_fit(self) -> Fit:
        return fit_of(self.opponent, self.expected_opponent)


def shares_of(reader: Reader) -> Shares:
    """Of all matches that learners were given."""
    by_draw: dict[int, int] = defaultdict(int)
    category: Counter[str] = Counter()
    opponent: Counter[str] = Counter()
    for number, name, other, count in reader.select(_DRAWN):
        by_draw[number] += count
        category[name] += count
        opponent[other] += count
    expected_category: dict[str, float] = defaultdict(float)
    expected_opponent: dict[str, float] = defaultdict(float)
    for number, count in by_draw.items():
        row = reader.draw(number)
        assert row is not None
        table = draw_table_of(row.body_json)
        for name, share in zip(table.shares.names, table.shares.probabilities, strict=True):
            expected_category[name] += count * share
            within = table.within[name]
            for other, part in zip(within.names, within.probabilities, strict=True):
                expected_opponent[other] += count * share * part
    return Shares(category, opponent, dict(expected_category), dict(expected_opponent))


def fit_of(counts: Mapping[str, int], expected: Mapping[str, float]) -> Fit:
    """Cells of few are put together. What came though nothing was expected of it can't be by
    chance.
    """
    from scipy.stats import chi2 as distribution

    if any(not expected.get(name) for name in counts):
        return Fit(float("inf"), 0, 0.0)
    large = [name for name, count in expected.items() if count >= FEWEST]
    expected_C = [expected[name] for name in large]
    counts_C = [counts.get(name, 0) for name in large]
    rest, others = sum(expected.values()) - sum(expected_C), sum(counts.values()) - sum(counts_C)
    if rest >= FEWEST or not large:
        expected_C.append(rest)
        counts_C.append(others)
    else:
        smallest = int(np.argmin(expected_C))
        expected_C[smallest] += rest
        counts_C[smallest] += others
    freedom = len(expected_C) - 1
    if freedom < 1:
        return Fit(0.0, 0, 1.0)
    chi2 = float(np.sum((np.array(counts_C) - expected_C) ** 2 / np.array(expected_C)))
    return Fit(chi2, freedom, float(distribution.sf(chi2, freedom)))
