"""The learner, the batched policy and the vector environment on games of choices (kuhn, leduc)."""

from __future__ import annotations

from dataclasses import replace

import learning
import numpy as np
import pytest
import torch
from gymnasium import spaces
from learning import MATCHES, STEPS, assignments, config, env_of
from rollouts import collect, whole_batch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from sb3_contrib.common.maskable.evaluation import evaluate_policy

from league.agent.batched_policy import BatchedPolicy
from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork
from league.errors import InvalidInput
from league.games.base import CHOICE
from league.games.registry import make_batched
from league.players import Player, PlayerKind


def network_of(game, seed):
    torch.manual_seed(seed)
    return AgentNetwork(config(game, 11))


def matches_against(*names, count=400):
    """Recorded matches on both seats against these members, in turn: bots, and "live" for
    itself.
    """
    plan = []
    for i, assignment in enumerate(assignments(count)):
        name = names[i % len(names)]
        kind = PlayerKind.LIVE if name == "live" else PlayerKind.BOT
        me = assignment.seats[assignment.learner_seat]
        other = me if name == "live" else Player(name=name, game="kuhn", kind=kind)
        seats = (me, other) if assignment.learner_seat == 0 else (other, me)
        plan.append(replace(assignment, seats=seats))
    return plan


def make_env(game="kuhn", opponents=("random", "live"), matches=MATCHES, count=400):
    plan = matches_against(*opponents, count=count)
    load = lambda digest: network_of(game, int(digest, 16))  # noqa: E731
    return env_of(make_batched(game, matches), plan, load, frame_skip=1, reward="dense")


def make_model(env, **changes):
    options = {"n_steps": STEPS, "batch_size": STEPS * MATCHES, "seed": 0, "learning_rate": 2.5e-4}
    agent = config(env.game.spec.name, 11)
    return learning.make_model(env, agent, **{**options, **changes})


def test_a_rollout_holds_the_choices_that_were_legal_when_they_were_made():
    env = make_env("leduc")
    model = make_model(env)
    collect(model)
    buffer = model.buffer
    assert buffer.legal_TNA is not None
    made = buffer.actions_TNA > 0
    assert made.sum(-1).eq(1).all()
    assert buffer.legal_TNA[made].all()
    assert not buffer.legal_TNA.all()
    batch = whole_batch(model)
    decided_TB = batch.decided_TB()
    assert decided_TB is not None
    assert torch.equal(decided_TB > 0, batch.legal_TBA.sum(-1) > 1)
    assert 0 < decided_TB.mean() < 1
    forced = decided_TB == 0
    assert batch.log_prob_TB[forced].abs().max() == 0


def test_what_was_played_is_what_is_learnt_from():
    env = make_env("leduc")
    model = make_model(env)
    collect(model, 3)  # the third has the context of a whole one before it
    batch = whole_batch(model)
    unrolled = model.unroll(batch)
    actor = action_distribution(CHOICE, unrolled.logits_TBA, batch.legal_TBA)
    torch.testing.assert_close(
        actor.log_prob(batch.actions_TBA), batch.log_prob_TB, atol=2e-6, rtol=0
    )
    torch.testing.assert_close(unrolled.value_TB, batch.value_TB, atol=2e-6, rtol=0)
    measured, _ = model._update(batch.rows_B, model._sums(batch.rows_B))
    assert measured["policy/clip_fraction"] == 0
    assert 0.6 < measured["policy/entropy"] < np.log(3), (
        "the mean over decisions, not over forced moves"
    )


def test_lower_precision_learns_the_same_from_choices():
    gradients, measured = [], []
    for precision in ("float32", "bfloat16"):
        model = make_model(make_env("leduc"), precision=precision)
        collect(model)
        rows = torch.arange(MATCHES)
        measured.append(model._update(rows, model._sums(rows))[0])
        gradients.append(
            torch.cat([one.grad.flatten() for one in model.policy.network.parameters()])
        )
    assert 0.99 < torch.nn.functional.cosine_similarity(*gradients, 0) < 1 - 1e-7
    exact, lower = measured
    assert lower["policy/entropy"] == pytest.approx(exact["policy/entropy"], rel=0.01)
    assert lower["policy/clip_fraction"] == 0


def _rewards(told):
    """Of the matches that ended in a step, from a callback's locals."""
    return [info["episode"]["r"] for info in told["infos"] if info]


@pytest.mark.long
def test_a_few_updates_learn_to_take_chips_from_the_random_bot():
    env = make_env("kuhn", ("random",), matches=128, count=8000)
    model = make_model(
        env, n_steps=8, batch_size=8 * 64, n_epochs=4, learning_rate=4e-3, ent_coef=0.005
    )
    paid: list[float] = []
    model.learn(8 * 128 * 14, callback=lambda told, _: paid.extend(_rewards(told)) is None)
    before, after = np.mean(paid[:800]), np.mean(paid[-2500:])
    assert after > before + 0.05
    assert after > 0.17, (
        "in units of the largest pot, two chips; a best response takes 0.229 a match"
    )


def test_evaluation_with_masks_and_its_callback():
    env, other = make_env("kuhn", ("random", "live")), make_env("kuhn", ("random",))
    model = make_model(env)
    judge = MaskableEvalCallback(other, eval_freq=STEPS, n_eval_episodes=12, verbose=0)
    model.learn(2 * STEPS * MATCHES, callback=judge)
    assert np.isfinite(judge.last_mean_reward)
    rewards, _ = evaluate_policy(model, other, n_eval_episodes=12, return_episode_rewards=True)
    assert len(rewards) == 12
    with pytest.raises(InvalidInput):
        evaluate_policy(model, other, n_eval_episodes=12, use_masking=False, deterministic=False)


def test_batched_policys_make_legal_choices_and_greedy_ones_the_likeliest():
    game = make_batched("leduc", 8)
    spec = game.spec
    network = network_of("leduc", 3)
    batched_policy = BatchedPolicy(
        8, lambda _: network, seed=1, action_size=spec.action_size, action_kind=CHOICE
    )
    for seat in range(6):
        batched_policy.seat(seat, "3", greedy=seat >= 3)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        obs = rng.uniform(-1, 1, (8, spec.observation_size)).astype(np.float32)
        legal = rng.random((8, spec.action_size)) < 0.6
        legal[np.arange(8), rng.integers(spec.action_size, size=8)] = True
        made = batched_policy.act(obs, legal)
        assert made.dtype == np.uint8
        assert (made.sum(-1) == 1).all(), "also where nobody sits"
        assert legal[made > 0].all()
        seen |= {tuple(row) for row in made[:3].argmax(-1)[None].tolist()}
    assert len(seen) > 10, "sampled choices differ"


def test_seats_of_keys_and_of_choices_do_not_mix():
    batched_policy = BatchedPolicy(1, lambda _: network_of("kuhn", 1), seed=0, action_size=3)
    with pytest.raises(InvalidInput, match=r"3 .*\(choice\).* 3 \(keys\)"):
        batched_policy.seat(0, "1")


def test_stable_baselines_sees_discrete_actions_and_their_masks():
    env = make_env("leduc")
    assert isinstance(env.action_space, spaces.Discrete)
    env.reset()
    for _ in range(12):
        masks = np.stack(env.env_method("action_masks"))
        np.testing.assert_array_equal(masks, env.legal())
        np.testing.assert_array_equal(
            masks,
            env.game.legal_N2A[np.arange(MATCHES), env.seat_N],
            err_msg="of the learner's own seat",
        )
        env.step(masks.argmax(-1))
    assert env.source.results


def test_maskable_ppo_of_sb3_contrib_trains_in_the_league():
    env = make_env("leduc", ("random",))
    model = MaskablePPO(
        "MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu"
    )
    model.learn(200)
    assert len(env.source.results) > 20
