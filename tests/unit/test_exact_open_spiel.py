"""Rules and exact values against OpenSpiel's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_exact_values import random_table, tree_of

from league.errors import InvalidInput
from league.games.exact import (
    GameTree,
    expected_value,
    game_tree,
    nash_conv,
    rules_of,
    uniform_table,
)
from league.games.registry import make_batched

pyspiel = pytest.importorskip("pyspiel")


# Our fold, call, raise there, where a bet is to be answered (True) or not: a pass is 0, a bet 1.
KUHN_ACTIONS = {True: (0, 1, 1), False: (0, 0, 1)}


def _kuhn_label(text: str) -> str:
    """`0pb` of OpenSpiel: card, then passes and bets."""
    card, choices = "JQK"[int(text[0])], text[1:]
    letters = "".join(
        "r" if letter == "b" and "b" not in choices[:at] else "c"
        for at, letter in enumerate(choices)
    )
    return f"{('first', 'second')[len(choices) % 2]} {card}:{letters}"


def _leduc_label(text: str) -> str:
    found = dict(re.findall(r"\[(\w+):? ?([^\]]*)\]", text.replace("[Round ", "[Now: ")))

    def card(number: str) -> str:
        return f"{'JQK'[int(number) // 2]}{int(number) % 2}"

    rounds = [
        "".join("fcr"[int(choice)] for choice in found[name].split())
        for name in ("Round1", "Round2")
    ]
    side = ("first", "second")[int(found["Observer"])]
    if "Public" not in found:
        return f"{side} {card(found['Private'])}:{rounds[0]}"
    return f"{side} {card(found['Private'])} {card(found['Public'])}:{'/'.join(rounds)}"


def _policy(game, tree: GameTree, table, label, actions):  # type: ignore[no-untyped-def]
    """Our table as OpenSpiel's; `actions(our choice, is facing a bet)` maps choices."""
    from open_spiel.python.policy import TabularPolicy

    policy = TabularPolicy(game)
    rows = {name: k for k, name in enumerate(tree.labels())}
    assert len(rows) == len(policy.state_lookup)
    for text, state in policy.state_lookup.items():
        k = rows.pop(label(text))
        policy.action_probability_array[state] = 0.0
        for ours in np.flatnonzero(tree.legal_KA[k]):
            policy.action_probability_array[state, actions(ours, tree.legal_KA[k, 0])] = table[
                k, ours
            ]
    assert not rows
    return policy


@pytest.mark.parametrize(
    ("name", "game_name", "label", "actions"),
    [
        ("kuhn", "kuhn_poker", _kuhn_label, lambda ours, faces: KUHN_ACTIONS[bool(faces)][ours]),
        ("leduc", "leduc_poker", _leduc_label, lambda ours, faces: ours),
    ],
)
def test_random_policies_have_the_same_values(name, game_name, label, actions) -> None:  # type: ignore[no-untyped-def]
    from open_spiel.python.algorithms import expected_game_score, exploitability

    game, tree = pyspiel.load_game(game_name), tree_of(name)
    for seed in range(2):
        table = random_table(tree, seed)
        policy = _policy(game, tree, table, label, actions)
        assert nash_conv(tree, table) == pytest.approx(
            exploitability.nash_conv(game, policy), abs=1e-9
        )
        score = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
        assert expected_value(tree, table) == pytest.approx(score[0], abs=1e-9)


def _spiel_tree(name: str) -> GameTree:
    return game_tree(rules_of(make_batched(f"openspiel:{name}", 1)))


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)"])
def test_the_trees_of_its_games_have_its_values(name: str) -> None:
    from open_spiel.python.algorithms import expected_game_score, exploitability
    from open_spiel.python.policy import TabularPolicy

    game, tree = pyspiel.load_game(name), _spiel_tree(name)
    table, policy = random_table(tree, 3), TabularPolicy(game)
    decides = policy.legal_actions_mask.sum(-1) > 1
    assert sorted(tree.labels()) == sorted(
        label for label, state in policy.state_lookup.items() if decides[state]
    )
    for label, probabilities in zip(tree.labels(), table, strict=True):
        policy.action_probability_array[policy.state_lookup[label]] = probabilities
    assert nash_conv(tree, table) == pytest.approx(exploitability.nash_conv(game, policy), abs=1e-9)
    score = expected_game_score.policy_value(game.new_initial_state(), [policy] * 2)
    assert expected_value(tree, table) == pytest.approx(score[0], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("kuhn_poker", 0.916667),
        ("leduc_poker", 4.747222),
        ("matrix_rps", 0.0),
        ("goofspiel(num_cards=4,imp_info=True)", None),  # both at once, and chance in between
    ],
)
def test_uniform_play_has_its_nash_conv(name: str, wanted: float | None) -> None:
    from open_spiel.python.algorithms import exploitability
    from open_spiel.python.policy import UniformRandomPolicy

    game, tree = pyspiel.load_game_as_turn_based(name), _spiel_tree(name)
    theirs = exploitability.nash_conv(game, UniformRandomPolicy(game))
    assert nash_conv(tree, uniform_table(tree)) == pytest.approx(theirs, abs=1e-9)
    assert wanted is None or theirs == pytest.approx(wanted, abs=1e-6)


def test_games_without_exact_values_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.games.openspiel.MOST_POSITIONS", 1000)
    with pytest.raises(InvalidInput, match="too large"):
        _spiel_tree("tic_tac_toe")
    with pytest.raises(InvalidInput, match="no exact values"):
        _spiel_tree("bargaining")  # not zero-sum
    with pytest.raises(InvalidInput, match="no exact values"):
        rules_of(make_batched("openspiel:kuhn_poker", 1, max_frames=2))
