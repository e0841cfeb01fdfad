"""Mixtures that have a name: who is in them, and that no player can have it."""

from __future__ import annotations

import pytest
from test_exact_values import random_table, tree_of

from league.errors import InvalidName, NotFound
from league.evaluations import members_of
from league.games.exact import (
    average_table,
    best_response_value,
    expected_value,
    game_tree,
    nash_conv,
    rules_of,
    strategy_table,
    uniform_table,
)
from league.games.registry import make_batched
from league.ids import NASH, averaged_lineage, checked_player_name
from league.players import Player, PlayerKind, PlayerState, Role, averages
from league.stats.ratings.mixture import rating_of


def snapshot(name: str, state: PlayerState = PlayerState.ACTIVE, role: Role = Role.MAIN) -> Player:
    step = int(name.rpartition("@")[2])
    return Player(
        name=name, game="kuhn", kind=PlayerKind.SNAPSHOT, role=role, state=state, step=step
    )


def members(who: str, *players: Player, **nash: float) -> dict[str, float]:
    return members_of(who, lambda: players, lambda: nash)


def test_an_average_is_the_later_half_of_the_active_snapshots_in_equal_parts() -> None:
    steps = [snapshot(f"main@{step}") for step in (100, 20, 30, 9, 50)]
    other = snapshot("other@400")
    half = members("main@average", *steps, other)
    assert half == pytest.approx({"main@30": 1 / 3, "main@50": 1 / 3, "main@100": 1 / 3})
    assert members("main@average", *steps[:2], other) == {"main@100": 1.0}
    assert members("other@average", *steps, other) == {"other@400": 1.0}
    away = [snapshot(f"main@{s}", s_) for s, s_ in ((99, PlayerState.RETIRED),
            (98, PlayerState.QUARANTINED), (97, PlayerState.CANDIDATE))]  # fmt: skip
    assert members("main@average", *away, steps[0]) == {"main@100": 1.0}
    assert members("first:main@average", snapshot("first:main@7")) == {"first:main@7": 1.0}
    with pytest.raises(NotFound, match="main"):
        members("main@average", *away, other)


def test_named_mixtures_are_parts_of_others() -> None:
    found = members("main@average=1,league@nash=2,based=1", snapshot("main@1"), based=0.75, b=0.25)
    assert found == pytest.approx({"main@1": 0.25, "based": 0.625, "b": 0.125})
    with pytest.raises(NotFound, match=NASH):
        members("league@nash", snapshot("main@1"))


def test_the_averages_of_a_league_are_those_of_its_mains() -> None:
    players = [snapshot("main@1"), snapshot("x.g1@1", role=Role.MAIN_EXPLOITER), snapshot("main@2")]
    players += [snapshot("old@1", PlayerState.RETIRED), snapshot("second@4")]
    assert averages(players) == ["main@average", "second@average"]


def test_no_player_can_have_the_name_of_a_mixture() -> None:
    for name in ("main@average", "first:main@average", NASH):
        with pytest.raises(InvalidName):
            checked_player_name(name)
    assert [averaged_lineage(name) for name in ("main@average", "main@5", "main", NASH)] == [
        *("main", "", "", "")
    ]


@pytest.mark.parametrize(("game", "options"), [
    ("kuhn", {}), ("leduc", {}), ("matrix:brps", {"rounds": 3}),
])  # fmt: skip
def test_the_average_policy_earns_what_a_policy_drawn_for_each_match_earns(game, options) -> None:
    """In either role, against any opponent."""
    tree = tree_of(game, **options)
    ours, weights = [random_table(tree, seed) ** 4 for seed in (1, 2, 3)], (0.5, 0.3, 0.2)
    ours = [table / table.sum(-1, keepdims=True) for table in ours]
    average, opponent = average_table(tree, ours, weights), random_table(tree, 4)
    plain = sum(w * table for w, table in zip(weights, ours, strict=True))
    gaps = []
    for role in range(2):
        mine_K1 = (tree.players_K == role)[:, None]

        def earned(table, mine_K1=mine_K1):
            return expected_value(tree, (mine_K1 * table + ~mine_K1 * opponent))

        drawn = sum(w * earned(table) for w, table in zip(weights, ours, strict=True))
        assert earned(average) == pytest.approx(drawn, abs=1e-12)
        gaps.append(abs(earned(plain) - drawn))
    assert max(gaps) > 1e-4, "without reaches it would be another policy"


def test_an_average_of_weak_policies_may_be_an_equilibrium() -> None:
    tree = tree_of("matrix:mp")
    sides = [uniform_table(tree) * 0.0 for _ in range(2)]
    for choice, table in enumerate(sides):
        table[:, choice] = 1.0
    assert [nash_conv(tree, table) for table in sides] == [2.0, 2.0]
    assert nash_conv(tree, average_table(tree, sides, (0.5, 0.5))) == pytest.approx(0.0)


def test_the_average_of_one_policy_is_that_policy() -> None:
    tree = game_tree(rules_of(make_batched("kuhn", 1)))
    for bot in tree.rules.bots:
        table = strategy_table(tree, bot.strategy)
        average = average_table(tree, [table], [1.0])
        for role in range(2):
            assert best_response_value(tree, average, role) == pytest.approx(
                best_response_value(tree, table, role), abs=1e-12
            )


def test_a_mixture_is_rated_like_a_player_that_scores_as_much() -> None:
    halves, mus = {"weak": 0.5, "strong": 0.5}, {"weak": 20.0, "strong": 30.0}
    assert rating_of(halves, mus, [25.0]) == pytest.approx(25.0)
    assert rating_of(halves, mus, [10.0]) < 25.0, "a strong member's lead is worth less"
    assert rating_of({"weak": 0.9, "strong": 0.1}, mus, [25.0]) < 22.0
    assert rating_of({"weak": 1.0}, mus, [25.0]) == 20.0
