"""What a simulated league shows, as plain values: shares, predictions, ratings, leases, speed.

Shapes: C candidates, N players, Q pairs of players.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from league.players import Book
from league.stats.ratings import BETA
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.fit import MAX_NODES, PairCounts, expected_score, fit
from matchmaker.sampling.candidates import Pool, configured_shares
from matchmaker.sampling.draw import draw_table_of
from matchmaker.sampling.mixes import normalised
from matchmaker.simulate.roster import Roster
from matchmaker.simulate.scenarios import Array, Scenario
from matchmaker.simulate.simulation import Simulation
from matchmaker.store.transaction import Reader

Report = dict[str, Any]
SURELY_WRONG = 1e-4
"""One right sampler in ten thousand has a p-value below it."""
FEWEST = 5.0
"""Cells with fewer expected matches are counted together."""
PAIRS = 20_000
"""Pairs of players on which ratings are compared with the truth."""
_TENTHS = 10
_DRAWN = """
SELECT a.draw, i.player, a.category, CASE a.learner_seat WHEN 0 THEN a.seat1 ELSE a.seat0 END,
       count(*)
FROM assignments a JOIN incarnations i ON i.number = a.incarnation
WHERE a.mix != '' AND a.replaces = '' GROUP BY 1, 2, 3, 4
"""


@dataclass(frozen=True)
class Fit:
    """χ² of counts against their expectation."""

    chi2: float
    freedom: int
    p_value: float


def report_of(simulation: Simulation) -> Report:
    """Returns the report; all of it but `speed` is the same for the same plan."""
    league, played, plan = simulation.server.league, simulation.played, simulation.plan
    with league.store.read() as reader:
        shares, fits = _shares(reader, _configured(simulation))
        groups = _groups(reader, simulation.scenario, simulation.roster)
        leases = _leases(reader)
    return {
        "scenario": simulation.scenario.name,
        "players": len(simulation.roster.names),
        "matches": played.assigned,
        "seed": plan.seed,
        "learners": len(simulation.roster.learners),
        "rule": league.settings.within_snapshots,
        "roles": league.settings.roles,
        "simulated_hours": played.simulated_seconds / 3600.0,
        "shares": shares,
        **fits,
        "groups": groups,
        "calibration": {book.value: _tenths(simulation, book) for book in (Book.TRAIN, Book.EVAL)},
        "ratings": _ratings(simulation),
        "leases": leases | {kind: played.verdicts[kind] for kind in ("duplicate", "refused")},
        "faults": dict(sorted(played.faults.items())),
        "snapshots_taken": played.snapshots,
        "generations_begun": played.resets,
        "speed": {
            "seconds": played.seconds,
            "matches": _per_second(played.assigned, played.seconds),
            "assignments": _per_second(played.assigned, played.acquire_seconds),
            "results": _per_second(played.verdicts.total(), played.report_seconds),
        },
    }


def follows(report: Report) -> bool:
    """Returns whether the shares can be the rule's, given chance."""
    return min(report[name]["p_value"] for name in ("category_fit", "opponent_fit")) >= SURELY_WRONG


def fit_of(counts: Mapping[str, int], expected: Mapping[str, float]) -> Fit:
    """Compares counts with their expectation; small cells are put together.

    χ² of sums over unlike draws is a little too small by chance, never too large. A count where
    nothing was expected is impossible by chance.
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


def _configured(simulation: Simulation) -> dict[str, float]:
    """Returns the configured shares of all learners together, by the matches that each got."""
    league, view, mix = simulation.server.league, simulation.server.league.view, simulation.plan.mix
    found: dict[str, float] = defaultdict(float)
    with view.lock:
        drawn: Counter[str] = Counter()
        for (player, _, _), count in view.drawn.items():
            drawn[player] += count
        for player, count in sorted(drawn.items()):
            pool = Pool(league.settings, view.players[player], view.players, view.tables)
            for category, share in configured_shares(pool, mix).items():
                found[category] += share * count / drawn.total()
    return dict(found)


def _shares(reader: Reader, configured: Mapping[str, float]) -> tuple[list[Report], Report]:
    """Compares the assigned matches with the sum of what their own draws give, from the log."""
    matches: Counter[int] = Counter()
    category: Counter[str] = Counter()
    opponent: Counter[str] = Counter()
    for number, _, name, other, count in reader.select(_DRAWN):
        matches[number] += count
        category[name] += count
        opponent[other] += count
    expected_category: dict[str, float] = defaultdict(float)
    expected_opponent: dict[str, float] = defaultdict(float)
    for number, count in matches.items():
        row = reader.draw(number)
        assert row is not None
        table = draw_table_of(row.body_json)
        for name, share in zip(table.shares.names, table.shares.probabilities, strict=True):
            expected_category[name] += count * share
            within = table.within[name]
            for other, part in zip(within.names, within.probabilities, strict=True):
                expected_opponent[other] += count * share * part
    total = matches.total() or 1
    rows = [
        {
            "category": name,
            "configured": configured.get(name, 0.0),
            "expected": expected_category.get(name, 0.0) / total,
            "realised": category[name] / total,
            "matches": category[name],
        }
        for name in dict.fromkeys([*configured, *expected_category])
    ]
    fits = {
        "category_fit": asdict(fit_of(category, expected_category)),
        "opponent_fit": asdict(fit_of(opponent, expected_opponent)),
    }
    return rows, fits


def _groups(reader: Reader, scenario: Scenario, roster: Roster) -> list[Report]:
    """Returns each learner's matches by group of opponents, and the rule's share by the truth.

    "ideal" is the share that the rule would give if the learner knew its true chances, among the
    candidates of its last draw; None where a rule does not go by chances. Categories of one
    candidate (bots, self-play) are left out.
    """
    last: dict[str, int] = {}
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for number, player, category, opponent, count in reader.select(_DRAWN):
        last[player] = max(number, last.get(player, 0))
        counts[player][category, scenario.group_N[roster.number[opponent]]] += count
    found = []
    for player in sorted(counts):
        row = reader.draw(last[player])
        assert row is not None
        body = json.loads(row.body_json)
        several = {name for name, rows in body["candidates"].items() if len(rows) > 1}
        ideal = _ideal(body, several, scenario, roster)
        drawn: Counter[str] = Counter()
        for (category, group), count in counts[player].items():
            if category in several:
                drawn[group] += count
        for group, count in sorted(drawn.items()):
            found.append(
                {
                    "learner": player,
                    "group": group,
                    "matches": count,
                    "realised": count / drawn.total(),
                    "ideal": None if ideal is None else ideal.get(group, 0.0),
                }
            )
    return found


def _ideal(
    body: Report, several: set[str], scenario: Scenario, roster: Roster
) -> dict[str, float] | None:
    wanted: dict[str, float] = defaultdict(float)
    for category in several:
        names = [name for name, _ in body["candidates"][category]]
        rule = body.get("rules", {}).get(category, body["rule"])
        other_C = np.array([roster.number[name] for name in names])
        learner_C = np.full(len(names), roster.number[body["player"]])
        weights_C = _true_weights(rule, scenario.chances(learner_C, other_C).score_G)
        if weights_C is None:
            return None
        for number, weight in zip(other_C, normalised(weights_C).tolist(), strict=True):
            wanted[scenario.group_N[number]] += body["shares"][category] * weight
    total = sum(wanted.values())
    return {group: weight / total for group, weight in wanted.items()} if total else None


def _true_weights(rule: str, p_C: Array) -> Array | None:
    return {
        "uniform": np.ones_like(p_C),
        "pfsp_hard": (1.0 - p_C) ** 2,
        "pfsp_var": p_C * (1.0 - p_C),
        "pfsp_linear": 1.0 - p_C,
        "pfsp_capped": np.minimum(0.5, 1.0 - p_C),
    }.get(rule)


def _tenths(simulation: Simulation, book: Book) -> list[Report]:
    """Returns mean predicted and played scores by tenth of the predictions, the lowest first."""
    played = simulation.played
    if sum(map(len, played.predicted[book])) < _TENTHS:
        return []
    predicted_G = np.concatenate(played.predicted[book])
    scored_G = np.concatenate(played.scored[book])
    order = np.argsort(predicted_G, kind="stable")
    return [
        {
            "predicted": float(predicted_G[part].mean()),
            "played": float(scored_G[part].mean()),
            "matches": len(part),
        }
        for part in np.array_split(order, _TENTHS)
    ]


def _ratings(simulation: Simulation) -> Report | None:
    """Compares the ratings of the clean matches with the truth; None without clean matches.

    A value is None where the scenario has no such truth, or too many players for the fit.
    """
    from scipy.stats import spearmanr

    scenario, view = simulation.scenario, simulation.server.league.view
    with view.lock:
        table = view.tables[Book.EVAL]
        counts, names = PairCounts.of_cells(table.payoff.cells())
        columns, epoch = table.columns(names), table.epoch
    if not names:
        return None
    rng = np.random.default_rng([simulation.plan.seed, 3])
    first_Q = rng.integers(len(names), size=PAIRS)
    second_Q = (first_Q + rng.integers(1, len(names), size=PAIRS)) % len(names)
    number_N = np.array([simulation.roster.number[name] for name in names])
    truth_Q = scenario.chances(number_N[first_Q], number_N[second_Q]).score_G
    c_Q = np.sqrt(2 * BETA**2 + columns.variance_N[first_Q] + columns.variance_N[second_Q])
    t_Q = (columns.mu_N[first_Q] - columns.mu_N[second_Q]) / c_Q
    believed_Q = epoch.link.score(t_Q, draw_margin(epoch.draw_probability) / c_Q)
    correlation = fit_error = None
    if scenario.strength_N is not None:
        found = spearmanr(columns.mu_N, scenario.strength_N[number_N]).statistic
        correlation = float(np.nan_to_num(found))
    if len(names) <= MAX_NODES:
        fitted = fit(counts, len(names))
        gap_Q = fitted.rating_N[first_Q] - fitted.rating_N[second_Q]
        score_Q = expected_score(gap_Q / fitted.points_per_logit, fitted.nu)
        fit_error = float(np.abs(score_Q - truth_Q).mean())
    return {
        "players": len(names),
        "rank_correlation": correlation,
        "trueskill_error": float(np.abs(believed_Q - truth_Q).mean()),
        "fit_error": fit_error,
    }


def _leases(reader: Reader) -> dict[str, int]:
    states = ("open", "reported", "expired", "abandoned", "released")
    counted = dict(reader.select("SELECT lease_state, count(*) FROM assignments GROUP BY 1"))
    late = reader.select("SELECT count(*) FROM results WHERE late")[0][0]
    return {state: counted.get(state, 0) for state in states} | {"late": late}


def _per_second(count: int, seconds: float) -> float:
    return count / seconds if seconds else 0.0
