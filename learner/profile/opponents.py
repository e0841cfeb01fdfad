"""Makes snapshots that serve as opponents in a measurement."""

from __future__ import annotations

from pathlib import Path

import torch

from league.agent.architectures import network_of
from league.agent.config import AgentConfig
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.ids import SnapshotName
from league.players import Player, PlayerKind, Role
from league.runs.blobs import BlobFolder
from learner.train.build import SessionSettings

LARGEST_POOL = 2 << 30
"""Largest size in bytes of all snapshots that are made."""


def make_snapshots(folder: Path, settings: SessionSettings, count: int) -> list[Player]:
    """Freezes networks with fresh weights, each from its own seed.

    Args:
        folder: folder for the weights.
        settings: settings of the run.
        count: number of snapshots. Fewer are made if their files would take more than
            `LARGEST_POOL` bytes.
    """
    spec, blobs = settings.game.spec(), BlobFolder(folder)
    config = AgentConfig.of(settings.agent, spec)
    made: list[Player] = []
    with torch.random.fork_rng(devices=[]):
        for number in range(1, count + 1):
            torch.manual_seed(settings.learner.seed + number)
            step = number * settings.learner.snapshot_interval
            card = SnapshotCard(
                agent=config,
                game=spec.name,
                game_version=spec.version,
                frame_skip=settings.game.frame_skip,
                step=step,
            )
            digest = save_snapshot(blobs, network_of(config), card)
            made.append(
                Player(
                    name=str(SnapshotName("main", step)),
                    game=spec.name,
                    kind=PlayerKind.SNAPSHOT,
                    role=Role.MAIN,
                    digest=digest,
                    step=step,
                )
            )
            if (number + 1) * blobs.path(digest).stat().st_size > LARGEST_POOL:
                break
    return made
