"""Which pairs are chosen: those that leave least uncertain what is decided next."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from evaluator.clean.allocation import allocate, goals
from evaluator.clean.plan import Facts, Plan
from evaluator.settings import EvaluatorSettings
from league.players import Book, PayoffCell, Player, PlayerKind, Role
from league.stages import CurriculumStatus, Place, Stage
from league.stats.ratings.fit import Fit, fit_cells

RNG = np.random.default_rng(0)


def snapshot(step: int) -> Player:
    name = f"main@{step}"
    more = {"role": Role.MAIN, "digest": name, "step": step}
    return Player(name=name, game="brawl", kind=PlayerKind.SNAPSHOT, **more)  # type: ignore[arg-type]


def bot(name: str, *, held_out: bool = False) -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.BOT, held_out=held_out)


def cells(*met: tuple[str, str, int, int]) -> list[PayoffCell]:
    """Wins and losses of the first against the second."""
    return [
        PayoffCell(row=row, column=column, wins=won, draws=0, losses=lost)
        for one, other, wins, losses in met
        for row, column, won, lost in ((one, other, wins, losses), (other, one, losses, wins))
    ]


def plan_of(*players: Player, **facts: object) -> Plan:
    known = {player.name: player for player in players}
    return Plan(Facts(players=known, counts={}, **facts), EvaluatorSettings(), ())  # type: ignore[arg-type]


def chosen(plan: Plan, fit: Fit, count: int = 8) -> dict[frozenset[str], int]:
    found = allocate(plan, fit, count, np.random.default_rng(0))
    assert sum(found.values()) == count
    return {frozenset(pair): games for pair, games in found.items()}


def test_who_is_known_least_plays_and_against_somebody_of_its_strength() -> None:
    three = [snapshot(step) for step in (10, 20, 30)]
    weak, even = bot("weak"), bot("even")
    met = cells(
        ("main@10", "main@20", 200, 200),
        ("main@10", "even", 200, 200),
        ("main@20", "weak", 395, 5),
        ("main@20", "even", 100, 100),
        ("main@30", "even", 3, 3),
    )
    plan = plan_of(*three, weak, even)
    for pair, _ in chosen(plan, fit_cells(met)).items():
        assert "main@30" in pair
        assert "weak" not in pair


def test_choices_leave_less_uncertain_than_any_other_pair_would() -> None:
    players = [snapshot(10), snapshot(20), bot("a"), bot("b")]
    of_10 = ("main@10", "a", 9, 3), ("main@10", "b", 1, 3)
    met = cells(*of_10, ("main@20", "a", 30, 10), ("main@20", "b", 5, 5))
    plan, fit = plan_of(*players), fit_cells(met)
    ((best, _),) = allocate(plan, fit, 2, np.random.default_rng(3)).items()

    def left(pair: tuple[str, str]) -> float:
        """The variance of all goals after many matches of a pair, by the fit of pseudo-games."""
        v_N = np.zeros(len(fit.names))
        v_N[[fit.number(name) for name in pair]] = 1.0, -1.0
        d = float(v_N @ fit.rating_N) / fit.points_per_logit
        root = np.exp(abs(d) / 2)
        win, draw = root / (root + 1 / root + fit.nu), fit.nu / (root + 1 / root + fit.nu)
        score = win + draw / 2
        information = 2 * (win + draw / 4 - score**2) / fit.points_per_logit**2
        precision_NN = np.linalg.pinv(fit.covariance_NN) + information * np.outer(v_N, v_N)
        goal_GN = goals(plan, fit)
        return float(np.trace(goal_GN @ np.linalg.pinv(precision_NN) @ goal_GN.T))

    pairs = [pair for pair in combinations(fit.names, 2) if pair != ("a", "b")]
    by_rank = sorted(pairs, key=left)
    assert set(best) in [set(pair) for pair in by_rank[:2]], (best, by_rank)


def test_a_stage_that_waits_and_held_out_bots_draw_matches_of_the_newest() -> None:
    two = [snapshot(10), snapshot(20)]
    others = [bot("awaited"), bot("unseen", held_out=True), bot("known")]
    met = cells(*((one.name, other.name, 20, 20) for one in two for other in others))
    stage = Stage(name="one", mix="one", until_opponent="awaited")
    status = CurriculumStatus(player="main", stages=(stage,), place=Place())
    fit = fit_cells(met)
    plain = chosen(plan_of(*two, *others), fit, 40)
    waiting = chosen(plan_of(*two, *others, curricula=[status]), fit, 40)
    pair = frozenset(("main@20", "awaited"))
    assert waiting.get(pair, 0) > plain.get(pair, 0)
    assert plain.get(frozenset(("main@20", "unseen")), 0) > plain.get(
        frozenset(("main@20", "known")), 0
    )


def test_pairs_that_may_not_meet_are_never_chosen() -> None:
    def apart(one: str, other: str) -> bool:
        return {one, other} != {"main@10", "a"}

    met = cells(("main@10", "a", 1, 1), ("main@10", "b", 50, 50))
    plan = plan_of(snapshot(10), bot("a"), bot("b"), can_meet=apart)
    assert chosen(plan, fit_cells(met)) == {frozenset(("main@10", "b")): 8}
    nobody = plan_of(bot("a"), bot("b"))
    assert allocate(nobody, fit_cells(cells(("a", "b", 3, 2))), 8, RNG) == {}


def test_where_pairs_deviate_new_opponents_tell_more_than_more_matches() -> None:
    players = [snapshot(10), snapshot(20), bot("often"), bot("new")]
    met = cells(
        ("main@20", "often", 40, 40), ("main@10", "new", 40, 40), ("main@20", "main@10", 40, 40)
    )
    counts = {(cell.row, cell.column, Book.EVAL): cell.games for cell in met}
    plan = Plan(
        Facts(players={one.name: one for one in players}, counts=counts), EvaluatorSettings(), ()
    )
    alike = replace(fit_cells(met), tau=2.0)
    found = chosen(plan, alike)
    assert found.get(frozenset(("main@20", "new")), 0) >= 4
    assert not found.keys() & {frozenset(("main@20", one)) for one in ("often", "main@10")}


def test_a_bot_tells_nothing_new_of_a_snapshot_that_is_not_the_newest() -> None:
    met = cells(("main@10", "a", 5, 5), ("main@20", "a", 40, 40), ("main@20", "main@10", 4, 4))
    found = chosen(plan_of(snapshot(10), snapshot(20), bot("a")), fit_cells(met))
    assert found
    assert frozenset(("main@10", "a")) not in found


@pytest.mark.parametrize("count", [2, 32])
def test_so_many_matches_are_chosen(count: int) -> None:
    players = [*(snapshot(step) for step in range(10, 200, 10)), bot("a")]
    met = cells(*((one.name, "a", 3, 2) for one in players[:-1]))
    assert sum(chosen(plan_of(*players), fit_cells(met), count).values()) == count


def test_a_bot_that_always_loses_draws_no_matches_however_uncertain_its_rating_is() -> None:
    players = [snapshot(10), snapshot(20), bot("beaten", held_out=True), bot("even")]
    met = cells(
        ("main@20", "beaten", 400, 0), ("main@20", "main@10", 30, 30), ("main@20", "even", 20, 20)
    )
    plan, fit = plan_of(*players), fit_cells(met)
    assert fit.covariance_NN[fit.number("beaten"), fit.number("beaten")] > 4.0
    assert not [pair for pair in chosen(plan, fit, 40) if "beaten" in pair]
