"""What a policy is asked is what it would see in the game itself, and its table plays as it
does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from agents import DEEP, RECURRENT, network
from test_exact_values import random_table, tree_of

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import NetworkConfig
from league.agent.history_policy import answers
from league.games.base import CHOICE
from league.games.choice_game import ChoiceGame
from league.games.exact import expected_value, histories, strategy_table, table_of, uniform_table
from league.games.registry import make_batched

GAMES: list[tuple[str, dict[str, Any]]] = [
    ("leduc", {}),
    ("matrix:rps", {"rounds": 3}),
]


class Watched:
    """Matches whose seats' observations and legal choices are kept, played by a table of
    histories.
    """

    def __init__(self, name: str, num_matches: int, table_KA: np.ndarray, **options: Any) -> None:
        self.game = make_batched(name, num_matches, **options)
        assert isinstance(self.game, ChoiceGame)
        self.game.reset(np.arange(num_matches, dtype=np.uint64))
        tree = tree_of(name, **options)
        asked = histories(tree)
        self.known = {
            (asked.observations_KTO[k, :length].tobytes(), asked.legal_KTA[k, :length].tobytes()): k
            for k, length in enumerate(asked.lengths_K)
        }
        assert len(self.known) == len(tree.infosets_K)
        self.table_KA, self.visited = table_KA, np.zeros(len(self.known), int)
        self.seen = [[(b"", b"")] * 2 for _ in range(num_matches)]
        self.random = np.random.default_rng(1)

    def step(self) -> list[tuple[int, int, int]]:
        """Plays a frame; returns (match, seat, infoset) of those that had something to decide."""
        game, asked = self.game, []
        actions = game.idle_actions()
        for n, seats in enumerate(self.seen):
            for seat in range(2):
                seen, legal = seats[seat]
                legal_A = game.legal_N2A[n, seat]
                seats[seat] = (
                    seen + game.observations_N2O[n, seat].tobytes(),
                    legal + legal_A.tobytes(),
                )
                if legal_A.sum() > 1:
                    k = self.known[seats[seat]]
                    asked.append((n, seat, k))
                    self.visited[k] += 1
                    actions[n, seat] = 0
                    actions[n, seat, self.random.choice(len(legal_A), p=self.table_KA[k])] = 1
        game.step(actions)
        for n in np.flatnonzero(game.ended_N):
            self.seen[n] = [(b"", b"")] * 2
        return asked


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_matches_meet_the_infosets_and_pay_the_expected_value_of_a_table(
    name: str, options: dict[str, Any]
) -> None:
    tree = tree_of(name, **options)
    table = random_table(tree, 5)
    watched = Watched(name, 100, table, **options)
    game, paid = watched.game, []
    for _ in range(150):
        watched.step()
        stats = game.final_stats_N2S[game.ended_N]
        sign = np.where(stats[:, 0, 1] == 1, 1, -1) if tree.rules.draws_sides else 1
        paid.extend((stats[:, 0, 0] * sign).tolist())
    error = np.std(paid) / len(paid) ** 0.5
    assert abs(np.mean(paid) - expected_value(tree, table)) < 4 * error + 1e-9
    # what is rare may miss, what is unknown is a KeyError
    assert (watched.visited > 0).mean() > 0.6


@pytest.mark.parametrize("architecture", ["agent", "recurrent perceptron"])
@pytest.mark.parametrize(("name", "options"), GAMES)
def test_an_agent_answers_histories_as_it_chooses_in_matches(
    name: str, options: dict[str, Any], architecture: str
) -> None:
    tree, matches = tree_of(name, **options), 40
    watched = Watched(name, matches, uniform_table(tree), **options)
    game, asked = watched.game, 0
    sizes: dict[str, Any] = {
        "observation_size": game.spec.observation_size,
        "action_size": game.spec.action_size,
        "action_kind": CHOICE,
    }
    config: NetworkConfig = (
        replace(DEEP, own_size=game.spec.own_size, places=(), **sizes)
        if architecture == "agent"
        else replace(RECURRENT, **sizes)
    )
    played = network(config, seed=2).eval()
    for weights in played.parameters():
        if weights.dim() > 1:
            weights.data *= 3  # else its biases alone decide
    table = table_of(tree, lambda histories: answers(played, histories, greedy=True))
    assert set(np.unique(table)) == {0.0, 1.0}
    assert table.any(0).all()
    policy = BatchedPolicy(
        2 * matches,
        lambda digest: played,
        seed=0,
        action_size=config.action_size,
        action_kind=CHOICE,
    )
    begun = range(2 * matches)
    for _ in range(40):
        for seat in begun:
            policy.seat(seat, "a" * 64, greedy=True)
        chosen = policy.act(
            game.observations_N2O.reshape(2 * matches, -1),
            game.legal_N2A.reshape(2 * matches, -1),
        )
        for n, seat, k in watched.step():
            assert chosen[2 * n + seat].argmax() == table[k].argmax()
            asked += 1
        begun = [2 * n + seat for n in np.flatnonzero(game.ended_N) for seat in range(2)]
    assert asked > 500


@pytest.mark.parametrize(
    ("name", "one", "other"), [("kuhn", "nash", "caller"), ("leduc", "aggressive", "random")]
)
def test_bots_of_the_game_win_what_their_strategies_are_worth(
    name: str, one: str, other: str
) -> None:
    tree = tree_of(name)
    strategies = {bot.name: bot.strategy for bot in tree.rules.bots}
    tables = [strategy_table(tree, strategies[bot]) for bot in (one, other)]
    first = (tree.players_K == 0)[:, None]
    worth = [expected_value(tree, np.where(first, a, b)) for a, b in (tables, tables[::-1])]
    game = make_batched(name, 4000)
    game.bots_N2[:] = [game.spec.bot_index(one), game.spec.bot_index(other)]
    game.reset(np.arange(4000, dtype=np.uint64))
    idle, paid = game.idle_actions(), []
    for _ in range(80):
        game.step(idle)
        paid.extend(game.final_stats_N2S[game.ended_N, 0, 0].tolist())
    error = np.std(paid) / len(paid) ** 0.5
    assert error < 0.03
    assert abs(np.mean(paid) - (worth[0] - worth[1]) / 2) < 4 * error
