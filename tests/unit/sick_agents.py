"""Agents that are broken on purpose, each in one place, for the tests of `league doctor`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from league.agent.network import AgentNetwork


def parts(change: Callable[[AgentNetwork], None]) -> type[AgentNetwork]:
    """An agent whose weights are changed when it is made."""

    class Changed(AgentNetwork):
        def __init__(self, config):
            super().__init__(config)
            with torch.no_grad():
                change(self)

    return Changed


def frozen_critic(network):
    network.critic.requires_grad_(False)


def loud_everywhere(network):
    for parameter in network.parameters():
        parameter.mul_(6.0)


def decided(network):
    network.actor.last.bias[1] += 15.0


class ContraryValue(AgentNetwork):
    """What the actor notes of values has the wrong sign."""

    def step(self, obs_BO, starts_B, state, time_left_B):
        out = super().step(obs_BO, starts_B, state, time_left_B)
        return out._replace(value_B=-3.0 * out.value_B)
