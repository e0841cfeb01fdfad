"""Decides whether a member of a population copies another member, and perturbs settings."""

from __future__ import annotations

import random
from collections.abc import Mapping

from league.metrics import Measured, wilson_interval
from league.players import PayoffCell
from league.population import FINAL
from league.stats.payoff import Stakes


def confidence_of_each(confidence: float, members: int, comparisons: int) -> float:
    """Returns the confidence of a single interval, so that all intervals of a run hold together
    with `confidence` (Bonferroni).

    Args:
        confidence: the confidence of all intervals together.
        members: number of members. Each compares itself with all others.
        comparisons: how often each member does so in the run.
    """
    return 1.0 - (1.0 - confidence) / max(1, members * (members - 1) * comparisons)


def value_of(cell: PayoffCell, stakes: Stakes, confidence: float) -> Measured:
    """Returns the mean value of a match for the cell's row, with its interval: the payoff, or in
    games without payoffs the points, from -1 for a loss to 1 for a win.
    """
    if paid := stakes.mean(cell, confidence):
        return paid
    if not cell.games:
        return Measured(0.0, -1.0, 1.0)
    points = cell.wins + cell.draws / 2
    share = wilson_interval(points, cell.games, confidence)
    value = 2 * points / cell.games - 1
    return Measured(value, 2 * share.low - 1, 2 * share.high - 1)


def better_member(
    cells: Mapping[str, PayoffCell], stakes: Stakes, confidence: float
) -> tuple[str, Measured] | None:
    """Chooses the member to copy: of the members that are better for certain, the member whose
    interval has the highest low end.

    Args:
        cells: for each other member, its clean matches against this member, from the other's view.
        stakes: the stakes of all clean matches.
        confidence: the confidence of each interval.

    Returns:
        The other member, and its mean value of a match with the interval. None if no interval lies
        above 0.
    """
    values = {name: value_of(cell, stakes, confidence) for name, cell in cells.items()}
    best = max(values, key=lambda name: values[name].low, default=None)
    return None if best is None or values[best].low <= 0.0 else (best, values[best])


def perturbed(values: Mapping[str, float], factor: float, rng: random.Random) -> dict[str, float]:
    """Multiplies or divides each value by `factor`, at random. The last value of a schedule
    (`FINAL`) changes as its first value does, so the schedule keeps its shape.
    """
    firsts = sorted({name.removesuffix(FINAL) for name in values})
    scales = {name: factor if rng.random() < 0.5 else 1 / factor for name in firsts}
    return {
        name: float(f"{value * scales[name.removesuffix(FINAL)]:.6g}")
        for name, value in values.items()
    }
