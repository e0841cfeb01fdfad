"""a batched policy's logits, values and memories are those of each network alone, within 1e-5."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from agents import (
    BASE,
    LARGE,
    MEMBERS,
    NO_HISTORY,
    NO_MEMORY,
    NOW_ONLY,
    PERCEPTRON,
    TINY,
    WINDOW,
    network,
)
from torch import Tensor

from league.agent.batched_policy import BatchedPolicy, _Batch
from league.agent.contract import NetworkConfig, PlayingNetwork

CLOSE = {"atol": 1e-5, "rtol": 0.0}
STEPS = 6
KINDS = {**MEMBERS, "no_history": NO_HISTORY, "no_memory": NO_MEMORY, "now_only": NOW_ONLY}


class Telling(BatchedPolicy):
    """Also keeps the value of every seat."""

    values_S: Tensor

    def _forward(self, batch: _Batch, obs_SO: Tensor) -> Tensor:
        step, self.values_S = (
            batch.network.step,
            getattr(self, "values_S", torch.zeros(self.num_seats + 1)),
        )

        def telling(*arguments):
            output = step(*arguments)
            self.values_S[batch.seats] = output.value_B.flatten()
            return output

        batch.network.step = telling
        try:
            return super()._forward(batch, obs_SO)
        finally:
            del batch.network.step


class Alone:
    """One network after the other, each seat with a state of its own, one row at a time."""

    def __init__(self, seats: list[PlayingNetwork]) -> None:
        self.seats = seats
        self.states = [net.initial_state(1) for net in seats]

    def act(self, observations_SO: np.ndarray) -> tuple[Tensor, Tensor]:
        logits, values = [], []
        for seat, net in enumerate(self.seats):
            row = torch.from_numpy(observations_SO[seat : seat + 1])
            with torch.inference_mode():
                output = net.step(row, torch.tensor([False]), self.states[seat], None)
            self.states[seat] = output.state
            logits.append(output.logits_BA[0])
            values.append(output.value_B[0])
        return torch.stack(logits), torch.stack(values)


def check(networks: dict[str, PlayingNetwork], seating: list[str], changes: dict[int, str]) -> None:
    """Plays some steps both ways; in the middle the seats of `changes` get somebody else."""
    config = next(iter(networks.values())).config
    batched_policy = Telling(
        len(seating), networks.__getitem__, seed=0, action_kind=config.action_kind
    )
    alone, rng = Alone([networks[name] for name in seating]), np.random.default_rng(0)
    for seat, name in enumerate(seating):
        batched_policy.seat(seat, name)
    spread = []
    for turn in range(STEPS):
        if turn == STEPS // 2:
            for seat, name in changes.items():
                batched_policy.seat(seat, name)
                alone.seats[seat], alone.states[seat] = (
                    networks[name],
                    networks[name].initial_state(1),
                )
        observations_SO = rng.uniform(-1, 1, (len(seating), config.observation_size)).astype(
            np.float32
        )
        batched_policy.act(observations_SO)
        logits_SA, values_S = alone.act(observations_SO)
        assert batched_policy.logits_SA is not None
        torch.testing.assert_close(batched_policy.logits_SA, logits_SA, **CLOSE)
        torch.testing.assert_close(batched_policy.values_S[:-1], values_S, **CLOSE)
        spread.append(logits_SA)
    assert torch.stack(spread).std() > 0.05, "outputs that say nothing would be equal too"


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_in_every_size_equals_one_by_one(kind: str) -> None:
    config: NetworkConfig = KINDS[kind]
    networks = {name: network(config, seed) for seed, name in enumerate("abcd")}
    check(networks, ["a"] * 5 + ["b"] * 2 + ["c"], {0: "b", 6: "d", 7: "a"})


def test_architectures_that_play_together_equal_one_by_one() -> None:
    kinds = {"t": TINY, "b": BASE, "l": LARGE, "w": WINDOW, "p": PERCEPTRON}
    networks = {
        f"{kind}{seed}": network(config, seed) for kind, config in kinds.items() for seed in (1, 2)
    }
    seating = ["t1"] * 5 + ["t2", "b1", "b2", "b1", "l1", "l2", "w1", "w2", "p1"] + ["p2"] * 9
    check(networks, seating, {0: "p1", 5: "l1", 9: "w2", 13: "t2", 22: "b2"})
