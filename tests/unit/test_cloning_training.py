"""A clone's training: whole seeds held out, the best weights kept, what is not the player's left
out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from agents import network
from recordings import QUICK, SMALL, demos, made_up, recorded

from league.agent.config import SIZES, AgentConfig
from league.agent.recorded_matches import paired, play_bouts
from league.errors import InvalidInput, NumericalFault
from league.games.registry import game_spec
from league.games.settings import GameSettings
from league.replay import Contender, Recipe, Replay
from learner.cloning.demonstrations import Demonstration, demonstrations
from learner.cloning.settings import CloningSettings
from learner.cloning.training import (
    PATIENCE,
    Streams,
    evaluate,
    marginal_log_loss,
    new_network,
    split,
    train,
)


@pytest.fixture(scope="module")
def plain() -> list[tuple[Path, Replay]]:
    return recorded()


def test_whole_seeds_are_held_out(plain: list[tuple[Path, Replay]]) -> None:
    found = demos(plain)
    learnt, held_out = split(found, 0)
    assert (len(learnt), len(held_out)) == (6, 2)
    assert {d.seed for d in learnt}.isdisjoint(d.seed for d in held_out)
    assert [d.seed for d in split(found, 0)[1]] == [d.seed for d in held_out]
    others = {split(found, seed)[1][0].seed for seed in range(8)}
    assert len(others) > 1


def test_too_few_matches_are_refused(plain: list[tuple[Path, Replay]]) -> None:
    with pytest.raises(InvalidInput, match="1 seeds"):
        split([d for d in demos(plain) if d.seed == 3], 0)


def trained(found: list[Demonstration], settings: CloningSettings = QUICK):
    learnt, held_out = split(found, settings.seed)
    net = new_network(SMALL, learnt, settings.seed)
    return net, list(train(net, learnt, held_out, settings)), held_out


def test_it_learns_and_the_same_seed_learns_the_same(plain: list[tuple[Path, Replay]]) -> None:
    found = demos(plain)
    settings = QUICK.model_copy(update={"epochs": 15, "learning_rate": 0.01})
    net, epochs, held_out = trained(found, settings)
    learnt = split(found, 0)[0]
    assert min(e.held_out for e in epochs) < 0.9 * marginal_log_loss(learnt, held_out)
    again, _, _ = trained(found, settings)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), again.parameters(), strict=True))
    starts = [new_network(SMALL, learnt, seed).memory.recurrent for seed in (0, 1)]
    torch.rand(1)  # whatever else was drawn
    assert torch.equal(starts[0], new_network(SMALL, learnt, 0).memory.recurrent)
    assert not torch.equal(*starts)
    other, _, _ = trained(found, settings.model_copy(update={"seed": 1}))
    assert not all(
        torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True)
    )


def test_it_stops_early_and_keeps_the_best() -> None:
    """Noise can't be learnt: the held-out loss soon rises, and the weights from before that are
    kept.
    """
    settings = QUICK.model_copy(update={"epochs": 50, "learning_rate": 0.01})
    net, epochs, held_out = trained(made_up([60] * 8), settings)
    best = min(epochs, key=lambda epoch: epoch.held_out)
    assert len(epochs) == best.number + PATIENCE < 50
    assert [epoch.number for epoch in epochs if epoch.is_best][-1] == best.number
    rates = [epoch.learning_rate for epoch in epochs]
    assert rates[0] == 0.01
    assert rates == sorted(set(rates))[::-1]
    judged = Streams(sorted(held_out, key=len, reverse=True))
    assert evaluate(net, judged) == pytest.approx(best.held_out, rel=1e-5)


def test_what_is_not_the_players_own_is_not_learnt() -> None:
    """Keys pressed in its stead: whatever they are, the weights are the same."""
    first, second = made_up([40] * 8), made_up([40] * 8)
    for demonstration in second:
        demonstration.actions_TA[~demonstration.own_T] ^= 1
    nets = [trained(found)[0] for found in (first, second)]
    assert all(
        torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True)
    )


def test_a_loss_that_is_no_number_stops_it() -> None:
    found = made_up([40] * 8)
    for demonstration in found:
        demonstration.obs_TO[:] = np.nan
    with pytest.raises(NumericalFault, match=r"cloning\.learning_rate"):
        trained(found)


def test_a_game_of_choices_is_cloned() -> None:
    """Kuhn's Nash player acts by its card: who sees the card loses less than who knows the
    rates.
    """
    game = GameSettings(name="kuhn", reward="dense")
    spec = game_spec("kuhn")
    bots = (spec.bot_index("nash"), spec.bot_index("random"))
    made = paired(Contender(name="nash"), Contender(name="random"), bots, 400, 0)
    replays = play_bouts(Recipe.of(game), made, lambda _: network(), frame_skip=1, seed=0)
    listed = [(Path("x"), replay) for replay in replays]
    found = demonstrations(listed, "nash", frame_skip=1)
    assert all(d.legal_TA is not None and d.actions_TA.sum(-1).all() for d in found)
    settings = CloningSettings(epochs=12, learning_rate=0.01)
    learnt, held_out = split(found, settings.seed)
    sizes = SIZES["tiny"] | {
        "width": 16,
        "feed_forward": 32,
        "memory": 16,
        "observation_hidden": 16,
    }
    config = AgentConfig(
        observation_size=spec.observation_size,
        own_size=spec.own_size,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
        sequence_length=17,
        **sizes,
    )
    net = new_network(config, learnt, 0)
    epochs = list(train(net, learnt, held_out, settings))
    assert min(e.held_out for e in epochs) < 0.75 * marginal_log_loss(learnt, held_out)
