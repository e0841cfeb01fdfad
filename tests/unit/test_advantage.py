"""Advantages and the return scale against their definitions."""

import numpy as np
import pytest

from learner.ppo.advantage import ReturnScale, generalised_advantage

GAMMA, LAMBDA = 0.9, 0.8


def by_definition(r, v, ended, bootstrap):
    """A_t as the sum of discounted temporal differences up to the match's end or the cut-off."""
    values = np.append(v, bootstrap)
    advantages = []
    for t in range(len(r)):
        total, weight = 0.0, 1.0
        for k in range(t, len(r)):
            discount = 0.0 if ended[k] else GAMMA
            total += weight * (r[k] + discount * values[k + 1] - values[k])
            weight *= LAMBDA * discount
        advantages.append(total)
    return np.array(advantages)


def test_advantage_is_the_sum_of_discounted_differences_of_one_match():
    rng = np.random.default_rng(0)
    r, v = rng.normal(size=(2, 12, 3)).astype(np.float32)
    ended = rng.random((12, 3)) < 0.2
    bootstrap = rng.normal(size=3).astype(np.float32)
    advantage, target = generalised_advantage(r, v, ended, bootstrap, GAMMA, LAMBDA)
    for n in range(3):
        np.testing.assert_allclose(
            advantage[:, n], by_definition(r[:, n], v[:, n], ended[:, n], bootstrap[n]), atol=1e-5
        )
    np.testing.assert_allclose(target, advantage + v, atol=1e-6)


def test_cut_off_bootstraps_and_an_end_does_not():
    one = np.zeros((1, 2), np.float32)
    ended = np.array([[True, False]])
    advantage, _ = generalised_advantage(
        one, one, ended, np.full(2, 10.0, np.float32), GAMMA, LAMBDA
    )
    np.testing.assert_allclose(advantage, [[0.0, 9.0]], atol=1e-6)


def test_return_scale_is_the_deviation_of_all_discounted_returns_so_far():
    rng = np.random.default_rng(1)
    rewards = rng.normal(2.0, 3.0, (60, 4)).astype(np.float32)
    ended = rng.random((60, 4)) < 0.1
    scale = ReturnScale(4, GAMMA)
    for part in np.split(np.arange(60), 5):
        scale.update(rewards[part], ended[part])
    returns, running = [], np.zeros(4)
    for r, e in zip(rewards, ended, strict=True):
        running = GAMMA * running + r
        returns.append(running)
        running = np.where(e, 0.0, running)
    assert scale.scale == pytest.approx(np.std(returns), rel=1e-6)


def test_return_scale_goes_on_from_its_state():
    rng = np.random.default_rng(2)
    r = rng.normal(size=(20, 2)).astype(np.float32)
    ended = np.zeros((20, 2), bool)
    whole, first, second = (ReturnScale(2, GAMMA) for _ in range(3))
    whole.update(r[:10], ended[:10])
    whole.update(r[10:], ended[10:])
    first.update(r[:10], ended[:10])
    second.load(first.state())
    second.update(r[10:], ended[10:])
    assert second.scale == whole.scale


def test_rows_after_the_last_step_of_a_match_change_nothing():
    """Five steps and seven rows without a step are worth as much as the five steps alone."""
    rng = np.random.default_rng(2)
    r, v = rng.normal(size=(2, 12, 2)).astype(np.float32)
    ended = rng.random((12, 2)) < 0.2
    bootstrap = rng.normal(size=2).astype(np.float32)
    played = np.arange(12)[:, None] < [5, 12]
    advantage, _ = generalised_advantage(r, v, ended, bootstrap, GAMMA, LAMBDA, played)
    for n, steps in enumerate((5, 12)):
        part = [x[:steps, n] for x in (r, v, ended)]
        np.testing.assert_allclose(
            advantage[:steps, n], by_definition(*part, bootstrap[n]), atol=1e-5
        )
    assert not advantage[5:, 0].any()
    padded, alone = ReturnScale(2, GAMMA), ReturnScale(1, GAMMA)
    padded.update(r, ended & False, played)
    alone.update(r[:5, :1], ended[:5, :1] & False)
    assert padded.count == 5 + 12
    assert padded.return_N[0] == alone.return_N[0]
