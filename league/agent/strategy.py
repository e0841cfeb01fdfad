"""Computes a snapshot's strategy latent: its encoder's summary of an opponent's past.

Shape suffixes: T decisions, O observation, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from league.agent.contract import PlayingNetwork
from league.agent.encoder import Pooled
from league.agent.network import AgentNetwork
from league.errors import InvalidInput
from league.replay import Playback, Replay


def get_strategy_latent(
    network: PlayingNetwork, observations_TO: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Computes the strategy latent at each decision of a match, exactly as when the agent plays.

    Args:
        network: a snapshot, from `load_snapshot`.
        observations_TO: the snapshot's observations at all decisions of a match, from the first.
            `observations_of` returns them for a recorded match.

    Returns:
        Latents `[T, D]`. The latent of decision t depends only on the observations up to decision
        t, and only on the part of them that describes the opponent.

    Raises:
        InvalidInput: the agent has no strategy encoder, or its observations have another width.
    """
    return encode_match(network, observations_TO).latent[:, 0].cpu().numpy()


@torch.inference_mode()
def encode_match(
    network: PlayingNetwork, observations_TO: NDArray[np.floating], name: str = "the agent"
) -> Pooled:
    """Computes latent, context and attention weights at each decision of a match.

    Args:
        network: a snapshot, from `load_snapshot`.
        observations_TO: the snapshot's observations at all decisions of a match, from the first.
        name: the agent's name in errors.

    Returns:
        Latent, context and attention weights, `[T, 1, ...]`.

    Raises:
        InvalidInput: see `get_strategy_latent`.
    """
    agent = with_encoder(network, name)
    seen_TO, wanted = np.asarray(observations_TO, np.float32), agent.config.observation_size
    if seen_TO.ndim != 2 or not len(seen_TO) or seen_TO.shape[1] < wanted:
        raise InvalidInput(
            f"{name} sees {wanted} numbers at each decision, and the observations of the match "
            f"have shape {seen_TO.shape}: give [decisions, {wanted}] of the game and the options "
            "that it was trained with"
        )
    obs_T1O = torch.from_numpy(seen_TO).to(agent.device).unsqueeze(1)
    starts_T1 = torch.zeros(obs_T1O.shape[:2], dtype=torch.bool, device=obs_T1O.device)
    starts_T1[0] = True
    return agent.eval().encode(obs_T1O, starts_T1, 0)


def with_encoder(network: PlayingNetwork, name: str = "the agent") -> AgentNetwork:
    """Returns `network`. Raises `InvalidInput` if the network has no strategy encoder."""
    if not isinstance(network, AgentNetwork) or network.config.encoder == "none":
        raise InvalidInput(
            f"{name} is no agent with a strategy encoder: it has no latent and attends to nothing "
            "(agent.encoder = 'streaming' trains one that does)"
        )
    return network


def observations_of(replay: Replay, seat: int, frame_skip: int) -> NDArray[np.float32]:
    """Plays a match again and returns a player's observations at its decisions, `[T, O]`.

    Args:
        frame_skip: frames between the player's decisions (`SnapshotCard.frame_skip`).

    Raises:
        DataCorrupt, VersionMismatch: the match can't be played again.
    """
    with Playback(replay) as playback:
        return np.stack(
            [
                playback.game.observations_N2O[0, seat].astype(np.float32)
                for number in playback.moments()
                if number % frame_skip == 0
            ]
        )
