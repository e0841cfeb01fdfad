"""Computes an agent's action probabilities after each history of a small game.

Shape suffixes: K histories, T frames, A choices, O observation width.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.contract import PlayingNetwork
from league.agent.heads import MaskedChoice
from league.games.exact import Histories


@torch.inference_mode()
def answers(
    network: PlayingNetwork, asked: Histories, *, greedy: bool = False
) -> NDArray[np.float64]:
    """Plays each history from its first frame. As in a match, the agent begins with empty memory.

    Args:
        network: the agent.
        asked: the histories.
        greedy: whether the agent takes the likeliest choice instead of sampling at temperature 1.

    Returns:
        The action probabilities at each history's last frame, `[K, A]`.
    """
    count, frames, _ = asked.observations_KTO.shape
    device = network.device
    state, nothing = network.initial_state(count), torch.zeros(count, device=device)
    answers_KA = np.zeros((count, network.config.action_size))
    for t in range(frames):
        starts = torch.full((count,), t == 0, device=device)
        observed = torch.from_numpy(asked.observations_KTO[:, t].copy()).to(device)
        output = network.step(observed, starts, state, nothing)  # only the critic reads `nothing`
        state = output.state
        here = asked.lengths_K == t + 1
        choice = MaskedChoice(
            output.logits_BA.cpu(), torch.from_numpy(asked.legal_KTA[:, t].copy())
        )
        policy = choice.greedy() if greedy else choice.log_probs.exp()
        answers_KA[here] = policy.double().numpy()[here]
    return answers_KA
