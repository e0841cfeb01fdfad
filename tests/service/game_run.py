"""A run folder of any game, with one snapshot of random weights, for the command line's tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.games.settings import GameSettings
from league.players import Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.runs.finding import FORMAT
from league.runs.folder import write_config
from league.settings.base import resolve
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

SNAPSHOT = "main@1000"


def make_game_run(run_dir: Path, assignments: Sequence[str]) -> str:
    """Fills `run_dir` as a run under these settings leaves it. Returns the snapshot's digest."""
    run_dir.mkdir(parents=True)
    (run_dir / "run.json").write_text(
        json.dumps({"format": FORMAT, "version": "0.1.0", "preset": "board"})
    )
    sections = resolve("board", assignments=assignments, environment={})
    write_config(run_dir / "config.toml", sections)
    spec = sections.of(GameSettings).spec()
    torch.manual_seed(1)
    network = AgentNetwork(AgentConfig.of(AgentSettings(size="tiny", sequence_length=17), spec))
    card = SnapshotCard(agent=network.config, game=spec.name, game_version=spec.version, step=1000)
    digest = save_snapshot(BlobFolder(run_dir / "blobs"), network, card)
    frozen = Player(
        name=SNAPSHOT,
        game=spec.name,
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        digest=digest,
        step=1000,
    )
    bots = [Player(name=bot.name, game=spec.name, kind=PlayerKind.BOT) for bot in spec.bots]
    with (
        MatchmakerServer(run_dir / "league.db", 0, MatchmakerSettings(game=spec.name)) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([*bots, frozen])
    return digest
