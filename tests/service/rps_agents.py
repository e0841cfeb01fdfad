"""Agents of rock-paper-scissors whose play is known: their weights are drawn, and their last
bias is set.
"""

from __future__ import annotations

from pathlib import Path

import torch

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.games.registry import game_spec
from league.players import Player, PlayerKind, Role
from league.runs.blobs import BlobFolder

GAME = "matrix:rps"
ROCK, PAPER, SCISSORS = 0, 1, 2


def rps_network(choice: int | None, strength: float = 12.0) -> AgentNetwork:
    """Takes `choice` nearly always (None: each a third of the time)."""
    torch.manual_seed(7)
    network = AgentNetwork(
        AgentConfig.of(AgentSettings(size="tiny", encoder="none"), game_spec(GAME))
    )
    if choice is not None:
        with torch.no_grad():
            network.actor.last.bias[choice] = strength
    return network


def save_rps(folder: Path, choice: int | None, step: int, strength: float = 12.0) -> str:
    """Digest of the agent's file in the run folder's blobs."""
    spec = game_spec(GAME)
    network = rps_network(choice, strength)
    card = SnapshotCard(agent=network.config, game=spec.name, game_version=spec.version, step=step)
    return save_snapshot(BlobFolder(folder / "blobs"), network, card)


def rps_player(
    folder: Path, lineage: str, step: int, choice: int | None, role: Role = Role.MAIN
) -> Player:
    return Player(
        name=f"{lineage}@{step}",
        game=GAME,
        kind=PlayerKind.SNAPSHOT,
        role=role,
        digest=save_rps(folder, choice, step),
        step=step,
        creator=f"learner-{lineage.partition('.')[0]}",
    )
