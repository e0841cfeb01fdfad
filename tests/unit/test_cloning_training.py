"""A clone's training: the loss of what was done, whole seeds held out, the best weights kept, what
is not the player's left out.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from agents import CHOICE, network
from recordings import SMALL, demos, made_up, recorded

from league.agent.config import AgentConfig
from league.contest.matches import paired, play_bouts
from league.errors import InvalidInput, NumericalFault
from league.games.registry import game_spec
from league.games.settings import GameSettings
from league.replay import Contender, Recipe
from learner.cloning.demonstrations import Demonstration, demonstrations
from learner.cloning.settings import CloningSettings
from learner.cloning.training import (
    PATIENCE,
    Streams,
    accuracy,
    evaluate,
    log_loss,
    new_network,
    rates_A,
    split,
    train,
)

QUICK = CloningSettings(epochs=2)


def test_the_loss_of_keys_is_their_log_loss_and_keeps_an_unused_key_possible() -> None:
    logits = torch.tensor([0.3, -1.2, 2.0])
    p = torch.sigmoid(logits).tolist()
    wanted = -math.log(p[0]) - math.log(1 - p[1]) - math.log(1 - p[2])
    assert float(log_loss("keys", logits, torch.tensor([1.0, 0, 0]))) == pytest.approx(wanted)
    # The smoothed loss has its minimum, a gradient of 0, where the keys have the smoothed rates.
    smooth = torch.logit(torch.tensor([0.05, 0.95])).requires_grad_()
    log_loss("keys", smooth, torch.tensor([0.0, 1.0]), smoothing=0.1).backward()
    assert smooth.grad.tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_the_loss_of_a_choice_is_over_the_legal_ones() -> None:
    logits = torch.tensor([1.0, 0.0, 5.0]).requires_grad_()
    asked = "choice", logits, torch.tensor([1.0, 0, 0]), torch.tensor([True, True, False])
    likely, other = math.log(1 + math.exp(-1.0)), math.log(1 + math.exp(1.0))
    assert float(log_loss(*asked).detach()) == pytest.approx(likely, rel=1e-5)
    smoothed = log_loss(*asked, smoothing=0.2)
    assert float(smoothed.detach()) == pytest.approx(0.9 * likely + 0.1 * other, rel=1e-5)
    smoothed.backward()
    assert float(logits.grad[2]) == 0.0


def test_in_streams_the_loss_is_that_of_playing_step_by_step() -> None:
    """Whatever the streams and sequences: memory and history run over a whole match and never
    beyond it.
    """
    net, found = network(SMALL), made_up([70, 5, 33, 41, 1, 64])
    lost, steps = 0.0, 0
    for d in found:
        state = net.initial_state(1)
        for t in range(len(d)):
            with torch.no_grad():
                seen = torch.from_numpy(d.obs_TO[t : t + 1])
                out = net.step(seen, torch.tensor([t == 0]), state, None)
            state = out.state
            if d.own_T[t]:
                x = torch.from_numpy(d.actions_TA[t]).float()
                p = torch.sigmoid(out.logits_BA[0])
                lost -= float((x * p.log() + (1 - x) * (1 - p).log()).sum())
                steps += 1
    for streams, sequence in [(1, 16), (3, 7), (6, 200), (50, 32)]:
        found_loss = evaluate(net, Streams.of(found, streams), sequence)
        assert found_loss == pytest.approx(lost / steps, abs=1e-4)


def test_the_accuracy_is_the_share_of_decisions_with_all_keys_right() -> None:
    net, found = network(SMALL), made_up([70, 5, 33])
    shares = []
    for d in found:
        state = net.initial_state(1)
        for t in range(len(d)):
            with torch.no_grad():
                seen = torch.from_numpy(d.obs_TO[t : t + 1])
                out = net.step(seen, torch.tensor([t == 0]), state, None)
            state = out.state
            if t % 3:  # the others keep the keys that were made up
                d.actions_TA[t] = (out.logits_BA[0] > 0).numpy()
        shares.append(d.own_T[np.arange(len(d)) % 3 > 0].sum() / d.own_T.sum())
    assert accuracy(net, found) == pytest.approx(shares)


@pytest.mark.parametrize("config", [SMALL, CHOICE])
def test_a_fresh_clone_acts_at_the_players_rates(config: AgentConfig) -> None:
    """So its loss is their entropy."""
    actions_TA = np.zeros((100, config.action_size), np.uint8)
    actions_TA[:25, 0], actions_TA[25:, 1] = 1, 1
    seen_TO = np.random.default_rng(0).uniform(-1, 1, (100, config.observation_size))
    legal = np.ones_like(actions_TA, np.bool_) if config is CHOICE else None
    seen_TO = seen_TO.astype(np.float32)
    found = [Demonstration(0, seen_TO, actions_TA, legal, np.ones(100, np.bool_))]
    wanted = [25.5 / 101, 75.5 / 101, 0.5 / 101]
    assert rates_A(found)[:3].tolist() == pytest.approx(wanted)
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) * (1 if config is CHOICE else 2)
    found_loss = evaluate(new_network(config, found, 0), Streams.of(found))
    assert found_loss == pytest.approx(entropy, abs=0.1)


def test_whole_seeds_are_held_out() -> None:
    found = demos(recorded())
    learnt, held_out = split(found, 0)
    assert (len(learnt), len(held_out)) == (6, 2)
    assert {d.seed for d in learnt}.isdisjoint(d.seed for d in held_out)
    assert [d.seed for d in split(found, 0)[1]] == [d.seed for d in held_out]
    assert len({split(found, seed)[1][0].seed for seed in range(8)}) > 1
    with pytest.raises(InvalidInput, match="1 seeds"):
        split([d for d in found if d.seed == 3], 0)


def trained(found: list[Demonstration], config: AgentConfig = SMALL, **settings: float):
    """The clone and its passes."""
    chosen = QUICK.model_copy(update=settings)
    learnt, held_out = split(found, chosen.seed)
    net = new_network(config, learnt, chosen.seed)
    return net, list(train(net, learnt, held_out, chosen))


def same(*nets: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in nets), strict=True))


def test_it_learns_and_the_same_seed_learns_the_same() -> None:
    found = demos(recorded())
    nets = []
    for seed in (0, 0, 1):
        net, epochs = trained(found, epochs=20, learning_rate=0.01, seed=seed)
        nets.append(net)
        torch.rand(1)  # whatever else was drawn
        assert min(e.held_out for e in epochs) < 0.9 * epochs[0].held_out
    assert same(nets[0], nets[1])
    assert not same(nets[0], nets[2])


def test_it_stops_early_and_keeps_the_best() -> None:
    """Noise can't be learnt: the held-out loss soon rises, and the weights from before that are
    kept.
    """
    found = made_up([60] * 8)
    net, epochs = trained(found, epochs=50, learning_rate=0.01)
    best = min(epochs, key=lambda epoch: epoch.held_out)
    assert [epoch.number for epoch in epochs] == list(range(best.number + PATIENCE + 1))
    assert [epoch.number for epoch in epochs if epoch.is_best][-1] == best.number < 47
    judged = Streams.of(split(found, 0)[1])
    assert evaluate(net, judged) == pytest.approx(best.held_out, rel=1e-5)


def test_what_is_not_the_players_own_is_not_learnt() -> None:
    """Keys pressed in its stead: whatever they are, the weights are the same."""
    first, second = made_up([40] * 8), made_up([40] * 8)
    for demonstration in second:
        demonstration.actions_TA[~demonstration.own_T] ^= 1
    nets = [trained(found)[0] for found in (first, second)]
    assert same(*nets)
    assert not same(nets[0], trained(made_up([40] * 8, seed=1))[0])


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
    spec = game_spec("kuhn")
    bots = (spec.bot_index("nash"), spec.bot_index("random"))
    made = paired(Contender(name="nash"), Contender(name="random"), bots, 300, 0)
    recipe = Recipe.of(GameSettings(name="kuhn", reward="dense"))
    replays = play_bouts(recipe, made, lambda _: network(CHOICE), frame_skip=1, seed=0)
    found = demonstrations([(Path("x"), replay) for replay in replays], "nash", frame_skip=1)
    assert all(d.legal_TA is not None and d.actions_TA.sum(-1).all() for d in found)
    names = ("observation_size", "own_size", "action_size", "action_kind")
    config = replace(SMALL, **{name: getattr(spec, name) for name in names})
    _, epochs = trained(found, config, epochs=12, learning_rate=0.01)
    assert min(e.held_out for e in epochs) < 0.8 * epochs[0].held_out
