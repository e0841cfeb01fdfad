"""What a step is asked about goes in one copy to a GPU, and as it is to a CPU: the same numbers."""

import numpy as np
import pytest
import torch
from learning import MATCHES, STEPS, make_env, make_model, weights

from learner.ppo.feed import Feed

CPU = torch.device("cpu")


def asked(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((5, 3), np.float32),
        rng.random(5) < 0.5,
        rng.random(5).astype(np.float32),
    )


@pytest.mark.parametrize("packed", [False, True])
def test_a_feed_hands_over_what_it_got(packed: bool) -> None:
    feed = Feed(5, 3, CPU, packed)
    for seed in range(3):
        arrays = asked(seed)
        there = feed(*arrays)
        assert [part.dtype for part in there] == [torch.float32, torch.bool, torch.float32]
        for part, array in zip(there, arrays, strict=True):
            np.testing.assert_array_equal(part.numpy(), array)


def test_without_a_gpu_nothing_is_copied() -> None:
    arrays = asked(0)
    for part, array in zip(Feed(5, 3, CPU)(*arrays), arrays, strict=True):
        assert np.shares_memory(part.numpy(), array)


def test_a_run_learns_the_same_through_the_packed_memory() -> None:
    """Each step writes over what the last one was asked about: nothing may still need it then."""
    after = []
    for packed in (False, True):
        env = make_env(max_frames=40)
        model = make_model(env)
        model.feed = Feed(MATCHES, model.agent.observation_size, CPU, packed)
        model.learn(3 * STEPS * MATCHES)
        after.append(weights(model))
    for name, part in after[0].items():
        assert torch.equal(part, after[1][name]), name
