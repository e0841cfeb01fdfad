"""A network's step as one compiled program, for the learner's own decisions while it plays."""

from __future__ import annotations

from collections.abc import Callable

import torch

from league.agent.contract import StepOutput
from league.agent.network import AgentNetwork
from league.errors import ConfigError


def compiled_step(network: AgentNetwork, batch: int) -> Callable[..., StepOutput]:
    """`network.step` for `batch` rows by `torch.compile`, compiled now; the weights may change
    afterwards.

    Raises `ConfigError` where it can't be compiled, as without a C++ compiler. Sums are rounded
    otherwise than in `step`: some 1e-6.
    """
    step: Callable[..., StepOutput] = torch.compile(network.step, dynamic=False)
    device = network.memory.recurrent.device
    obs_BO = torch.zeros(batch, network.config.observation_size, device=device)
    time_left_B, state = torch.ones(batch, device=device), network.initial_state(batch)
    try:
        with torch.inference_mode():
            # the first state is laid out otherwise than those that follow
            for begins in (True, False):
                starts_B = torch.full((batch,), begins, device=device)
                state = step(obs_BO, starts_B, state, time_left_B).state
    except Exception as error:  # of many kinds, by what is missing
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ConfigError(
            f"learner.compile = true can't be used here ({reason}): "
            "set it to false, or install a C++ compiler"
        ) from error
    return step
