"""Exact values with known answers, and what the tree asks of a game's observations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games import poker as variants
from league.games.choice_rules import ChoiceRules, Positions
from league.games.exact import (
    GameTree,
    expected_value,
    exploitability,
    game_tree,
    is_exact,
    nash_conv,
    rules_of,
    strategy_table,
    table_of,
    uniform_table,
)
from league.games.matrix import MatrixRules, named_payoffs
from league.games.poker import PokerRules
from league.games.registry import make_batched


def tree_of(name: str, **options: Any) -> GameTree:
    return game_tree(rules_of(make_batched(name, 1, **options)))


def random_table(tree: GameTree, seed: int) -> NDArray[np.float64]:
    weights = np.random.default_rng(seed).random(tree.legal_KA.shape) * tree.legal_KA
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "infosets", "conv"),
    [
        ("kuhn", 12, 0.9166666666666667),
        ("leduc", 936, 4.747222222222222),
        ("matrix:rps", 2, 0.0),
        ("matrix:brps", 2, 50 / 3),  # exploitable by 8.33
        ("matrix:mp", 2, 0.0),
    ],
)
def test_uniform_play_has_the_known_nash_conv(name: str, infosets: int, conv: float) -> None:
    tree = tree_of(name)
    assert len(tree.infosets_K) == infosets
    assert nash_conv(tree, uniform_table(tree)) == pytest.approx(conv, abs=1e-12)
    assert exploitability(tree, uniform_table(tree)) == pytest.approx(conv / 2, abs=1e-12)


def test_the_equilibrium_of_biased_rock_paper_scissors() -> None:
    tree = tree_of("matrix:brps")
    table = np.tile([1 / 16, 10 / 16, 5 / 16], (2, 1))
    assert nash_conv(tree, table) == pytest.approx(0.0, abs=1e-12)
    assert nash_conv(tree, table + np.array([0.01, -0.01, 0.0])) > 0.1


@pytest.mark.parametrize(
    ("alpha", "holds"), [(0.0, True), (1 / 3, True), (0.2, True), (0.4, False)]
)
def test_kuhns_equilibria_are_those_of_alpha_up_to_a_third(alpha: float, holds: bool) -> None:
    tree = tree_of("kuhn")
    table = strategy_table(tree, variants.kuhn_nash)
    labels = tree.labels()
    table[labels.index("first J:")] = [0, 1 - alpha, alpha]
    king = min(3 * alpha, 1.0)
    table[labels.index("first K:")] = [0, 1 - king, king]
    call = alpha + 1 / 3
    table[labels.index("first Q:cr")] = [1 - call, call, 0]
    assert (nash_conv(tree, table) < 1e-12) == holds
    assert not holds or expected_value(tree, table) == pytest.approx(-1 / 18)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[:-1], "shape"),
        (lambda table: table * 0.9, "sum to 1"),
        (lambda table: table[:, ::-1], "first K"),
        (lambda table: np.where(table > 0, np.nan, 0.0), "nan"),
        (lambda table: np.vstack([[0.0, -0.5, 1.5], table[1:]]), r"first K.*-0.5"),
    ],
)
def test_a_table_that_is_no_policy_is_refused(change: Any, message: str) -> None:
    tree = tree_of("kuhn")
    table = change(uniform_table(tree))
    for value in (expected_value, nash_conv):
        with pytest.raises(InvalidInput, match=message):
            value(tree, table)
    with pytest.raises(InvalidInput):
        table_of(tree, lambda histories: table)


def test_too_large_a_tree_and_a_game_without_one_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("league.games.exact.MAX_POSITIONS", 9**3)
    assert len(tree_of("matrix:rps", rounds=3).levels) == 3
    with pytest.raises(InvalidInput, match="rounds"):
        tree_of("matrix:rps", rounds=4)
    with pytest.raises(InvalidInput, match="brawl"):
        rules_of(make_batched("brawl", 1))


class _Forgetful(MatrixRules):
    """Shows nothing: in the second round a player does not know what it did in the first."""

    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        return np.zeros_like(super().observe(positions_N))


class _Unfair(PokerRules):
    """Who opens may not raise against the jack, which it does not see."""

    def legal(self, positions_N: Positions) -> NDArray[np.bool_]:
        legal_N2A = super().legal(positions_N)
        legal_N2A[positions_N["cards"][:, 1] == 0, 0, variants.RAISE] = False
        return legal_N2A

    def observe(self, positions_N: Positions) -> NDArray[np.float32]:
        views_N2O = super().observe(positions_N)
        views_N2O[:, :, 6:9] = 0.0  # the legal choices
        return views_N2O


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (_Forgetful("rps", named_payoffs("rps"), 2), "rps"),
        (_Unfair(variants.KUHN), "kuhn"),
    ],
)
def test_observations_that_do_not_tell_enough_are_named(rules: ChoiceRules, name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        game_tree(rules)


@pytest.mark.parametrize(
    ("game", "exact"),
    [
        *[(name, True) for name in ("kuhn", "leduc", "matrix:rps")],
        *[(name, False) for name in ("brawl", "python:nowhere:Game", "matrix:ghost")],
    ],
)
def test_which_games_have_exact_values(game: str, exact: bool) -> None:
    assert is_exact(game) is exact


def test_a_game_of_many_rounds_has_too_large_a_tree() -> None:
    assert is_exact("matrix:rps", rounds=3)
    assert not is_exact("matrix:rps", rounds=40)
