"""The step size follows the KL divergence of updates, within bounds."""

import pytest

from learner.ppo.rate import SMALLEST, AdaptiveRate


@pytest.mark.parametrize(
    ("kl", "scale"), [(0.0160, 1 / 1.2), (0.0140, 1.0), (0.0070, 1.0), (0.001, 1.0)]
)
def test_too_large_an_update_shrinks_the_step(kl, scale):
    rate = AdaptiveRate(0.01)
    rate.adapt(kl)
    assert rate.scale == pytest.approx(scale)


def test_small_updates_bring_the_step_back():
    rate = AdaptiveRate(0.01)
    for kl in (0.1, 0.1, 0.001):
        rate.adapt(kl)
    assert rate.scale == pytest.approx(1 / 1.2)


def test_bounds_hold():
    rate = AdaptiveRate(0.01)
    for _ in range(100):
        rate.adapt(1.0)
    assert rate.scale == SMALLEST
    for _ in range(100):
        rate.adapt(0.0)
    assert rate.scale == 1.0


def test_without_a_wish_nothing_changes():
    rate = AdaptiveRate(None)
    rate.adapt(5.0)
    assert rate.scale == 1.0
