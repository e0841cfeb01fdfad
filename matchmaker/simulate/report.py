"""Reports on a simulated league. Shapes: C candidates, Q pairs of players, G games."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from league.players import Book
from league.stats.ratings import BETA
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.fit import MAX_NODES, PairCounts, expected_score, fit
from league.stats.structure.equilibria import nash_averaging
from league.stats.structure.table import margins
from matchmaker.sampling.candidates import Pool, configured_shares
from matchmaker.sampling.mixes import Candidates, normalised, weights_of
from matchmaker.simulate.simulation import MIX, Simulation
from matchmaker.store.transaction import Reader

Report = dict[str, Any]
Matches = Counter[tuple[str, str]]
"""Number of matches by category and opponent."""
SURELY_WRONG = 1e-4
"""A sampler counts as correct if the p-value of each χ² test (`fit_of`) is at least this number. A
correct sampler fails each of these tests with a probability of 1 in 10,000.
"""
FEWEST = 5.0
"""Cells of the χ² test with a smaller expected number of matches are combined."""
PAIRS = 20_000
"""Number of pairs of players for which ratings are compared with the truth."""
CERTAIN_GAMES = 1e9
"""Number of games after which the posterior of a win probability equals the truth."""
_TENTHS = 10


def report_of(simulation: Simulation) -> Report:
    """Returns the report on a simulation. The same plan gives the same values, except `speed`."""
    league = simulation.league
    with league.store.read() as reader:
        draws, states = _draws(reader), reader.lease_counts()
    return {
        "scenario": simulation.scenario.name,
        "players": len(simulation.names),
        "matches": simulation.assigned,
        "seed": simulation.plan.seed,
        "learners": len(simulation.learners),
        "rule": league.settings.within_snapshots,
        "roles": league.settings.roles,
        **_shares(simulation, draws),
        "groups": _groups(simulation, draws),
        "calibration": {book.value: _tenths(simulation, book) for book in (Book.TRAIN, Book.EVAL)},
        "expected_scores": _expected(simulation),
        "forgotten": {name: vars(lost) for name, lost in simulation.forgotten.items()},
        "ratings": _ratings(simulation),
        "leases": states | {kind: simulation.verdicts[kind] for kind in ("duplicate", "refused")},
        "faults": dict(sorted(simulation.faults.items())),
        "snapshots_taken": simulation.snapshots,
        "speed": simulation.assigned / simulation.seconds,
    }


def follows(report: Report) -> bool:
    """Returns whether chance can explain the difference between the realised shares and the shares
    that the sampling rule gives.
    """
    return min(report[name]["p_value"] for name in ("category_fit", "opponent_fit")) >= SURELY_WRONG


def _draws(reader: Reader) -> list[tuple[Report, Matches]]:
    """Returns each draw's record in the log, with the matches that were drawn from it."""
    by_draw: dict[int, Matches] = defaultdict(Counter)
    for row in reader.drawn_assignments():
        assert row.draw is not None
        by_draw[row.draw][row.category, row.seat0 if row.learner_seat else row.seat1] += 1
    rows = ((reader.draw(number), matches) for number, matches in sorted(by_draw.items()))
    return [(json.loads(row.body_json), matches) for row, matches in rows if row is not None]


def _shares(simulation: Simulation, draws: list[tuple[Report, Matches]]) -> Report:
    """Compares the numbers of assigned matches with the numbers that the draws' probabilities
    predict.
    """
    played, by_category, by_opponent = Counter[str](), Counter[str](), Counter[str]()
    configured, expected, expected_opponent = (defaultdict[str, float](float) for _ in range(3))
    for body, matches in draws:
        count = matches.total()
        played[body["player"]] += count
        for (category, opponent), portion in matches.items():
            by_category[category] += portion
            by_opponent[opponent] += portion
        for category, share in body["shares"].items():
            expected[category] += count * share
            for name, probability in body["candidates"][category]:
                expected_opponent[name] += count * share * probability
    total = played.total() or 1
    settings, view = simulation.league.settings, simulation.league.view
    with view.lock:
        for player, count in played.items():
            pool = Pool(settings, view.players[player], view.players, view.tables)
            for category, share in configured_shares(pool, MIX).items():
                configured[category] += share * count / total
    rows = [
        {
            "category": name,
            "configured": configured[name],
            "expected": expected[name] / total,
            "realised": by_category[name] / total,
            "matches": by_category[name],
        }
        for name in dict.fromkeys([*configured, *expected])
    ]
    return {
        "shares": rows,
        "category_fit": fit_of(by_category, expected),
        "opponent_fit": fit_of(by_opponent, expected_opponent),
    }


def fit_of(counts: Mapping[str, float], expected: Mapping[str, float]) -> dict[str, float]:
    """Computes χ² of counts against their expectation. Names with small expectations are combined.

    If a name's probability changed between draws, χ² is slightly too small on average. It is never
    too large on average.

    Args:
        counts: number of matches by name.
        expected: expected number by name.

    Returns:
        χ², the degrees of freedom, and the p-value.
    """
    from scipy.stats import chi2 as distribution

    if any(not expected.get(name) for name in counts):
        return {"chi2": float("inf"), "freedom": 0, "p_value": 0.0}
    names = sorted(expected, key=lambda name: expected[name])
    expected_C = np.array([expected[name] for name in names])
    counts_C = np.array([counts.get(name, 0) for name in names], np.float64)
    small = int(np.count_nonzero(expected_C < FEWEST))
    if expected_C[:small].sum() < FEWEST:
        small = min(small + 1, len(names))
    starts = np.array([0, *range(small, len(names))])
    expected_C, counts_C = np.add.reduceat(expected_C, starts), np.add.reduceat(counts_C, starts)
    freedom = len(starts) - 1
    chi2 = float(np.sum((counts_C - expected_C) ** 2 / expected_C)) if freedom else 0.0
    p_value = float(distribution.sf(chi2, freedom)) if freedom else 1.0
    return {"chi2": chi2, "freedom": freedom, "p_value": p_value}


def _groups(simulation: Simulation, draws: list[tuple[Report, Matches]]) -> list[Report]:
    """Returns each learner's matches by group of opponents, and the share that each group would
    have if the rule knew the true chances.
    """
    rows = []
    last = {body["player"]: body for body, _ in draws}
    for player, body in sorted(last.items()):
        several = [name for name, rows in body["candidates"].items() if len(rows) > 1]
        drawn: Counter[str] = Counter()
        for matches in (matches for other, matches in draws if other["player"] == player):
            for (category, name), count in matches.items():
                if category in several:
                    drawn[simulation.scenario.group_N[simulation.number[name]]] += count
        ideal = _ideal(simulation, body, several)
        rows += [
            {
                "learner": player,
                "against": group,
                "matches": count,
                "realised": count / drawn.total(),
                "by_the_truth": None if ideal is None else ideal[group],
            }
            for group, count in sorted(drawn.items())
        ]
    return rows


def _ideal(simulation: Simulation, body: Report, several: list[str]) -> dict[str, float] | None:
    """Returns the share that each group would have if the rule knew the true chances. Returns None
    for rules other than `uniform`, `nash` and PFSP.
    """
    scenario = simulation.scenario
    wanted: dict[str, float] = defaultdict(float)
    total = sum(body["shares"][category] for category in several)
    for category in several:
        rule = body.get("rules", {}).get(category, body["rule"])
        if rule not in ("uniform", "nash") and not rule.startswith("pfsp"):
            return None
        names = tuple(name for name, _ in body["candidates"][category])
        other_C = np.array([simulation.number[name] for name in names])
        learner_C = np.full(len(names), simulation.number[body["player"]])
        p_C = scenario.chances(learner_C, other_C).score_G
        games_C = np.full_like(p_C, CERTAIN_GAMES)
        nash_C = np.zeros_like(p_C)
        if rule == "nash":
            first_CC, second_CC = np.meshgrid(other_C, other_C, indexing="ij")
            chance_CC = scenario.chances(first_CC.ravel(), second_CC.ravel()).score_G
            nash_C = nash_averaging(margins(chance_CC.reshape(first_CC.shape))).mass_N
        truth = Candidates(names, games_C, CERTAIN_GAMES * p_C, p_C, np.zeros_like(p_C), nash_C)
        weights_C = normalised(weights_of(rule, truth)) * body["shares"][category] / total
        for number, weight in zip(other_C, weights_C.tolist(), strict=True):
            wanted[scenario.group_N[number]] += weight
    return wanted


def _tenths(simulation: Simulation, book: Book) -> list[Report]:
    """Sorts the predictions, divides them into ten equal parts, and returns the mean predicted and
    the mean actual score of each part.
    """
    if sum(map(len, simulation.predicted[book])) < _TENTHS:
        return []
    predicted_G = np.concatenate(simulation.predicted[book])
    scored_G = np.concatenate(simulation.scored[book])
    order = np.argsort(predicted_G, kind="stable")
    return [
        {
            "tenth": number,
            "predicted": float(predicted_G[tenth].mean()),
            "played": float(scored_G[tenth].mean()),
            "matches": len(tenth),
        }
        for number, tenth in enumerate(np.array_split(order, _TENTHS), start=1)
    ]


def _expected(simulation: Simulation) -> Report:
    """Compares the scores that the sampler expected of learners with the true expected scores."""
    expected_G = np.concatenate([*simulation.expected, np.zeros(0)])
    true_G = np.concatenate([*simulation.true, np.zeros(0)])
    error = float(np.abs(expected_G - true_G).mean()) if len(true_G) else 0.0
    return {"error": error, "matches": len(true_G)}


def _ratings(simulation: Simulation) -> Report | None:
    """Compares the ratings of the clean matches (both players frozen) with the true strengths.
    Returns None without clean matches.
    """
    scenario, view = simulation.scenario, simulation.league.view
    with view.lock:
        table = view.tables[Book.EVAL]
        counts, names = PairCounts.of_cells(table.payoff.cells())
        columns, epoch = table.columns(names), table.epoch
    if not names:
        return None
    rng = np.random.default_rng([simulation.plan.seed, 3])
    first_Q = rng.integers(len(names), size=PAIRS)
    second_Q = (first_Q + rng.integers(1, len(names), size=PAIRS)) % len(names)
    number_N = np.array([simulation.number[name] for name in names])
    truth_Q = scenario.chances(number_N[first_Q], number_N[second_Q]).score_G
    c_Q = np.sqrt(2 * BETA**2 + columns.variance_N[first_Q] + columns.variance_N[second_Q])
    t_Q = (columns.mu_N[first_Q] - columns.mu_N[second_Q]) / c_Q
    believed_Q = epoch.link.score(t_Q, draw_margin(epoch.draw_probability) / c_Q)
    fit_error = None
    if len(names) <= MAX_NODES:
        fitted = fit(counts, len(names))
        gap_Q = fitted.rating_N[first_Q] - fitted.rating_N[second_Q]
        score_Q = expected_score(gap_Q / fitted.points_per_logit, fitted.nu)
        fit_error = float(np.abs(score_Q - truth_Q).mean())
    return {
        "players": len(names),
        "trueskill_error": float(np.abs(believed_Q - truth_Q).mean()),
        "fit_error": fit_error,
    }
