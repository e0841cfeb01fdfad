"""What an agent answers to histories is what it plays in matches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from agents import DEEP, network
from test_exact_histories import Watched
from test_exact_values import tree_of

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig
from league.agent.history_policy import answers
from league.agent.network import AgentNetwork
from league.games.base import CHOICE, GameSpec
from league.games.exact import table_of, uniform_table
from league.games.registry import game_spec

MATCHES = 40


def agent(spec: GameSpec, seed: int = 0) -> AgentNetwork:
    config: AgentConfig = replace(
        DEEP,
        observation_size=spec.observation_size,
        own_size=spec.own_size,
        action_size=spec.action_size,
        action_kind=CHOICE,
    )
    return network(config, seed).eval()


@pytest.mark.parametrize(("name", "options"), [("leduc", {}), ("matrix:rps", {"rounds": 3})])
def test_greedy_answers_are_the_choices_of_a_crowd_in_matches(name: str, options: dict) -> None:
    spec, tree = game_spec(name, **options), tree_of(name, **options)
    played = agent(spec)
    table = table_of(tree, lambda asked: answers(played, asked, greedy=True))
    assert set(np.unique(table)) == {0.0, 1.0}
    watched = Watched(name, MATCHES, uniform_table(tree), **options)
    game = watched.game
    batched_policy = BatchedPolicy(
        2 * MATCHES, lambda digest: played, seed=0, action_size=spec.action_size, action_kind=CHOICE
    )
    histories_by_seat = [b""] * (2 * MATCHES)
    legal_by_seat = [b""] * (2 * MATCHES)
    for seat in range(2 * MATCHES):
        batched_policy.seat(seat, "a" * 64, greedy=True)
    asked = 0
    for _ in range(40):
        observations = game.observations_N2O.reshape(2 * MATCHES, -1)
        legal = game.legal_N2A.reshape(2 * MATCHES, -1)
        chosen = batched_policy.act(observations, legal)
        for seat in range(2 * MATCHES):
            histories_by_seat[seat] += observations[seat].tobytes()
            legal_by_seat[seat] += legal[seat].tobytes()
            if legal[seat].sum() > 1:
                k = watched.known[histories_by_seat[seat], legal_by_seat[seat]]
                assert chosen[seat].argmax() == table[k].argmax()
                asked += 1
        # Random choices instead of these, so that all of the tree is met.
        game.step(_random(watched, legal))
        for n in np.flatnonzero(game.ended_N):
            for seat in (2 * n, 2 * n + 1):
                histories_by_seat[seat] = legal_by_seat[seat] = b""
                batched_policy.seat(seat, "a" * 64, greedy=True)
    assert asked > 500


def _random(watched: Watched, legal: np.ndarray) -> np.ndarray:
    chosen = np.where(legal, watched.random.random(legal.shape), -1.0).argmax(-1)
    return np.eye(legal.shape[-1], dtype=np.uint8)[chosen].reshape(MATCHES, 2, -1)
