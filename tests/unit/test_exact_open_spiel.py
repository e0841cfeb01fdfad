"""Rules and exact values against OpenSpiel's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_exact_values import random_table, tree_of

from league.games.exact import GameTree, expected_value, nash_conv

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
