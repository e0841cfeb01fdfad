"""What a simulated league shows, and what another policy would have drawn in a run.

A draw counts as often as matches were assigned by it. Shapes: C candidates, Q pairs of players.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from league.errors import InvalidInput
from league.players import Book
from league.stats.ratings import BETA
from league.stats.ratings.belief import draw_margin
from league.stats.ratings.fit import MAX_NODES, PairCounts, expected_score, fit
from matchmaker.sampling.candidates import configured_shares
from matchmaker.sampling.draw import DrawTable, draw_table, draw_table_of
from matchmaker.sampling.mixes import Candidates, normalised, weights_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.simulation import MIX, Simulation
from matchmaker.state.view import LogReplay
from matchmaker.store.rows import DrawRow
from matchmaker.store.transaction import Reader

Report = dict[str, Any]
Counts = Mapping[tuple[str, str], float]
"""Matches by category and opponent."""
SURELY_WRONG = 1e-4
"""One right sampler in ten thousand has a p-value below it."""
FEWEST = 5.0
"""Cells with fewer expected matches are counted together."""
PAIRS = 20_000
"""Pairs of players on which ratings are compared with the truth."""
POINTS = 500
"""Draws of a run that are made again by another policy."""
CERTAIN_GAMES = 1e9
"""With this many games the posterior of a win probability is the truth."""
_TENTHS = 10


def report_of(simulation: Simulation) -> Report:
    """Returns the report; all of it but `speed` is the same for the same plan."""
    league, plan = simulation.league, simulation.plan
    with league.store.read() as reader:
        counts = _drawn(reader)
        shares, fits = _shares(simulation, reader, counts)
        groups = _groups(simulation, reader, counts)
        states = reader.lease_counts()
    return {
        "scenario": simulation.scenario.name,
        "players": len(simulation.names),
        "matches": simulation.assigned,
        "seed": plan.seed,
        "learners": len(simulation.learners),
        "rule": league.settings.within_snapshots,
        "roles": league.settings.roles,
        "shares": shares,
        **fits,
        "groups": groups,
        "calibration": {book.value: _tenths(simulation, book) for book in (Book.TRAIN, Book.EVAL)},
        "ratings": _ratings(simulation),
        "leases": states | {kind: simulation.verdicts[kind] for kind in ("duplicate", "refused")},
        "faults": dict(sorted(simulation.faults.items())),
        "snapshots_taken": simulation.snapshots,
        "generations_begun": simulation.resets,
        "speed": simulation.assigned / simulation.seconds,
    }


def follows(report: Report) -> bool:
    """Returns whether the shares can be the rule's, given chance."""
    return min(report[name]["p_value"] for name in ("category_fit", "opponent_fit")) >= SURELY_WRONG


def _drawn(reader: Reader) -> dict[int, Counter[tuple[str, str]]]:
    """Returns the matches that each draw was made for, by category and opponent."""
    found: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for row in reader.drawn_assignments():
        assert row.draw is not None
        opponent = row.seat0 if row.learner_seat else row.seat1
        found[row.draw][row.category, opponent] += 1
    return found


def _expected(draws: Mapping[int, int], table_of: Callable[[int], DrawTable]) -> Counts:
    """Returns the matches that these numbers of matches by draw are expected to give."""
    found: dict[tuple[str, str], float] = defaultdict(float)
    for number, count in draws.items():
        table = table_of(number)
        for category, share in zip(table.shares.names, table.shares.probabilities, strict=True):
            within = table.within[category]
            for name, part in zip(within.names, within.probabilities, strict=True):
                found[category, name] += count * share * part
    return found


def _summed(counts: Counts, by: int) -> Counter[str]:
    """Returns matches by category (by = 0) or opponent (1)."""
    found: Counter[str] = Counter()
    for key, count in counts.items():
        found[key[by]] += count  # type: ignore[assignment]  # typeshed has only whole counts
    return found


def _shares(
    simulation: Simulation, reader: Reader, counts: Mapping[int, Counter[tuple[str, str]]]
) -> tuple[list[Report], Report]:
    """Compares the assigned matches with the sum of what their own draws give."""
    configured: dict[str, float] = defaultdict(float)
    view = simulation.league.view
    with view.lock:
        played: Counter[str] = Counter()
        for (player, _, _), count in sorted(view.drawn.items()):
            played[player] += count
        for player, count in played.items():
            by_mix = configured_shares(simulation.pool(view.players[player]), MIX)
            for category, share in by_mix.items():
                configured[category] += share * count / played.total()
    drawn: Counter[tuple[str, str]] = sum(counts.values(), Counter())
    calls = {number: found.total() for number, found in counts.items()}
    expected = _expected(calls, lambda number: draw_table_of(_draw(reader, number).body_json))
    total = drawn.total() or 1
    realised, wanted = _summed(drawn, 0), _summed(expected, 0)
    rows = [
        {
            "category": name,
            "configured": configured.get(name, 0.0),
            "expected": wanted[name] / total,
            "realised": realised[name] / total,
            "matches": realised[name],
        }
        for name in dict.fromkeys([*configured, *wanted])
    ]
    fits = {
        "category_fit": fit_of(realised, wanted),
        "opponent_fit": fit_of(_summed(drawn, 1), _summed(expected, 1)),
    }
    return rows, fits


def _draw(reader: Reader, number: int) -> DrawRow:
    row = reader.draw(number)
    assert row is not None
    return row


def fit_of(counts: Mapping[str, float], expected: Mapping[str, float]) -> dict[str, float]:
    """Returns χ² of counts against their expectation; small cells are put together.

    Over unlike draws χ² is a little too small, never too large.
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


def _groups(
    simulation: Simulation, reader: Reader, counts: Mapping[int, Counter[tuple[str, str]]]
) -> list[Report]:
    """Returns each learner's matches by group of opponents, and the rule's share by the truth."""
    bodies = {number: json.loads(_draw(reader, number).body_json) for number in counts}
    last = {bodies[number]["player"]: number for number in sorted(counts)}
    found = []
    for player, number in sorted(last.items()):
        body = bodies[number]
        several = {name for name, rows in body["candidates"].items() if len(rows) > 1}
        drawn: Counter[str] = Counter()
        for number, by_opponent in counts.items():
            if bodies[number]["player"] == player:
                for (category, name), count in by_opponent.items():
                    if category in several:
                        drawn[simulation.scenario.group_N[simulation.number[name]]] += count
        ideal = _ideal(simulation, body, several)
        found += [
            {
                "learner": player,
                "group": group,
                "matches": count,
                "realised": count / drawn.total(),
                "ideal": None if ideal is None else ideal.get(group, 0.0),
            }
            for group, count in sorted(drawn.items())
        ]
    return found


def _ideal(simulation: Simulation, body: Report, several: set[str]) -> dict[str, float] | None:
    """Returns the shares of groups under the true chances, None for rules that go by others."""
    scenario = simulation.scenario
    wanted: Counter[str] = Counter()
    for category in sorted(several):
        rule = body.get("rules", {}).get(category, body["rule"])
        if rule != "uniform" and not rule.startswith("pfsp"):
            return None
        names = tuple(name for name, _ in body["candidates"][category])
        other_C = np.array([simulation.number[name] for name in names])
        learner_C = np.full(len(names), simulation.number[body["player"]])
        p_C = scenario.chances(learner_C, other_C).score_G
        wins_C, none_C = CERTAIN_GAMES * p_C, np.zeros_like(p_C)
        truth = Candidates(names, wins_C, none_C, CERTAIN_GAMES - wins_C, p_C, none_C)
        weights_C = normalised(weights_of(rule, truth)) * body["shares"][category]
        for number, weight in zip(other_C, weights_C.tolist(), strict=True):
            wanted[scenario.group_N[number]] += weight
    total = wanted.total()
    return {group: weight / total for group, weight in wanted.items()} if total else None


def _tenths(simulation: Simulation, book: Book) -> list[Report]:
    """Returns mean predicted and played scores by tenth of the predictions, the lowest first."""
    if sum(map(len, simulation.predicted[book])) < _TENTHS:
        return []
    predicted_G = np.concatenate(simulation.predicted[book])
    scored_G = np.concatenate(simulation.scored[book])
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
    """Compares the ratings of the clean matches with the truth; None where something lacks."""
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


COLUMNS = ("name", "drawn", "policy_of_run", "other_policy")
"""Of a replay: the shares of the matches as drawn, by the run's policy, by the other one."""


def replayed(reader: Reader, settings: MatchmakerSettings) -> Report:
    """Draws again by other settings at up to `POINTS` of a log's draws, evenly spread.

    Each draw knows the players and results of its moment. `distance` is the share of the matches
    that would have gone to other opponents.
    """
    by_draw = _drawn(reader)
    if not by_draw:
        raise InvalidInput("no opponent was drawn yet: name a run whose learners have played")
    numbers = sorted(by_draw)
    places = np.linspace(0, len(numbers), min(POINTS, len(numbers)), endpoint=False, dtype=int)
    chosen = {numbers[place]: by_draw[numbers[place]].total() for place in places}
    past = LogReplay(reader)

    def other_table(number: int) -> DrawTable:
        row = _draw(reader, number)
        past.move_to(row.log_position, row.event_position)
        body, players = json.loads(row.body_json), past.players
        learner, books = players[body["player"]], past.books.tables
        mix, analysis, exploiters = body["mix"], past.analysis, past.exploiters
        return draw_table(settings, learner, mix, players, books, analysis, exploiters)

    drawn: Counter[tuple[str, str]] = sum((by_draw[number] for number in chosen), Counter())
    recorded = _expected(chosen, lambda number: draw_table_of(_draw(reader, number).body_json))
    other = _expected(chosen, other_table)
    total = drawn.total()
    moved = sum(abs(recorded.get(k, 0) - other.get(k, 0)) for k in recorded.keys() | other.keys())
    report: Report = {"draws": len(chosen), "matches": total, "distance": moved / 2 / total}
    for by, kind in enumerate(("categories", "opponents")):
        columns = [_summed(counts, by) for counts in (drawn, recorded, other)]
        rows: list[Report] = [
            dict(zip(COLUMNS, [name, *(one[name] / total for one in columns)], strict=True))
            for name in dict.fromkeys(name for column in columns for name in column)
        ]
        rows.sort(key=lambda row: (-row["drawn"], -row["other_policy"], row["name"]))
        report[kind] = rows
    return report
