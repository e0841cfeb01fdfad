"""What a simulated league showed, as plain values: shares, calibration, accuracy, leases, speed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from league.players import Book
from matchmaker.sampling.slices import configured_shares
from matchmaker.simulate.accuracy import accuracy_of
from matchmaker.simulate.ideal import groups_of
from matchmaker.simulate.shares import Fit, Shares, shares_of
from matchmaker.simulate.simulation import Simulation
from matchmaker.store.base import Reader

Report = dict[str, Any]
SURELY_WRONG = 1e-4
"""A p-value below it is no chance: once in ten thousand right samplers."""


def report_of(simulation: Simulation) -> Report:
    """Everything but `speed` is the same for the same plan."""
    league, played, plan = simulation.server.league, simulation.played, simulation.plan
    scenario, cast = simulation.scenario, simulation.cast
    accuracy = accuracy_of(league.view, scenario, cast, plan.seed)
    with league.store.read() as reader:
        shares = shares_of(reader)
        configured = _configured(simulation)
        groups = groups_of(reader, scenario, cast, league.settings.pfsp_power)
        leases = _leases(reader) | {
            "duplicate": played.verdicts["duplicate"],
            "refused": played.verdicts["refused"],
        }
    return {
        "scenario": scenario.name,
        "players": len(cast.names),
        "matches": played.assigned,
        "seed": plan.seed,
        "learners": len(cast.learners),
        "rule": league.settings.within_snapshots,
        "roles": league.settings.roles,
        "simulated_hours": played.simulated_seconds / 3600.0,
        "shares": _share_rows(shares, configured),
        "category_fit": _fit(shares.category_fit()),
        "opponent_fit": _fit(shares.opponent_fit()),
        "groups": _group_rows(groups),
        "calibration": {
            book.value: [asdict(tenth) for tenth in played.predictions[book].tenths()]
            for book in (Book.TRAIN, Book.EVAL)
        },
        "ratings": None if accuracy is None else asdict(accuracy),
        "leases": leases,
        "faults": dict(sorted(played.faults.items())),
        "snapshots_taken": simulation.learning.snapshots,
        "generations_begun": simulation.learning.resets,
        "speed": _speed(simulation),
    }


def follows(report: Report) -> bool:
    """Whether the shares are the rule's, as far as chance lets one tell."""
    return min(report[name]["p_value"] for name in ("category_fit", "opponent_fit")) >= SURELY_WRONG


def _configured(simulation: Simulation) -> dict[str, float]:
    """Of all learners together, by how many matches each was given."""
    league, view = simulation.server.league, simulation.server.league.view
    found: dict[str, float] = defaultdict(float)
    with view.lock:
        total = sum(
            count for (_, mix, _), count in view.drawn.items() if mix == simulation.plan.mix
        )
        for player in sorted({player for player, _, _ in view.drawn}):
            drawn = sum(count for (name, _, _), count in view.drawn.items() if name == player)
            shares = configured_shares(
                league.settings,
                view.players[player],
                simulation.plan.mix,
                view.players,
                view.tables,
            )
            for category, share in shares.items():
                found[category] += share * drawn / total
    return dict(found)


def _share_rows(shares: Shares, configured: dict[str, float]) -> list[Report]:
    total = shares.matches or 1
    names = [*configured, *(name for name in shares.expected_category if name not in configured)]
    return [
        {
            "category": name,
            "configured": configured.get(name, 0.0),
            "expected": shares.expected_category.get(name, 0.0) / total,
            "realised": shares.category[name] / total,
            "matches": shares.category[name],
        }
        for name in names
    ]


def _group_rows(groups: dict[tuple[str, str], tuple[int, float | None]]) -> list[Report]:
    totals: dict[str, int] = defaultdict(int)
    for (learner, _), (count, _) in groups.items():
        totals[learner] += count
    return [
        {
            "learner": learner,
            "group": group,
            "matches": count,
            "realised": count / totals[learner],
            "ideal": ideal,
        }
        for (learner, group), (count, ideal) in groups.items()
    ]


def _fit(fit: Fit) -> Report:
    return {"chi2": fit.chi2, "freedom": fit.freedom, "p_value": fit.p_value}


def _leases(reader: Reader) -> dict[str, int]:
    states = ("open", "reported", "expired", "abandoned", "released")
    counted = dict(reader.select("SELECT lease_state, count(*) FROM assignments GROUP BY 1"))
    late = reader.select("SELECT count(*) FROM results WHERE late")[0][0]
    return {state: counted.get(state, 0) for state in states} | {"late": late}


def _speed(simulation: Simulation) -> dict[str, float]:
    """Seconds in all; matches a second in all, in the calls that hand out, and in those that
    take results.
    """
    played = simulation.played
    results = played.verdicts.total()
    return {
        "seconds": played.seconds,
        "matches": played.assigned / played.seconds if played.seconds else 0.0,
        "assignments": played.assigned / played.acquire_seconds if played.acquire_seconds else 0.0,
        "results": results / played.report_seconds if played.report_seconds else 0.0,
    }
