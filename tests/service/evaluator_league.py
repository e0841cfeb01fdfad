"""A small real league for the evaluator's tests: matchmaker, run folder, tiny random snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.games.registry import game_spec
from league.players import Book, Player, PlayerKind, Role
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

MATCH_SECONDS = 2.0
"""Long enough for a few hits, short enough for a test."""


def write_config(run_dir: Path, **evaluator: object) -> Path:
    """A settings file with short matches."""
    lines = ["[game]", f"match_seconds = {MATCH_SECONDS}", "frame_skip = 4", "[evaluator]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in ({"nice": 0} | evaluator).items()]
    path = run_dir / "config.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def register_snapshot(
    client: MatchmakerClient,
    run_dir: Path,
    step: int,
    *,
    parent: str = "",
    milestone: bool = False,
    frame_skip: int = 4,
) -> Player:
    """A tiny network of random weights (by `step`), saved and registered as ``main@<step>``."""
    spec = game_spec("brawl")
    config = AgentConfig.of(AgentSettings(size="tiny", sequence_length=17), spec)
    torch.manual_seed(step)
    card = SnapshotCard(
        agent=config, game=spec.name, game_version=spec.version, frame_skip=frame_skip, step=step
    )
    digest = save_snapshot(BlobFolder(run_dir / "blobs"), AgentNetwork(config), card)
    player = Player(
        name=f"main@{step}",
        game=spec.name,
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        parent=parent,
        digest=digest,
        step=step,
        milestone=milestone,
    )
    client.register_players([player])
    return player


def register_bots_and_live(client: MatchmakerClient) -> None:
    """What a learner registers at its start."""
    spec = game_spec("brawl")
    bots = [
        Player(name=b.name, game=spec.name, kind=PlayerKind.BOT, held_out=b.held_out)
        for b in spec.bots
    ]
    live = Player(name="main", game=spec.name, kind=PlayerKind.LIVE, role=Role.MAIN)
    client.register_players([*bots, live])


@contextmanager
def matchmaker_of(run_dir: Path) -> Iterator[MatchmakerClient]:
    """A client of a matchmaker that knows the bots and the live player."""
    with (
        MatchmakerServer(db=run_dir / "league.db", port=0, settings=MatchmakerSettings()) as server,
        MatchmakerClient(server.address, wait_seconds=5) as client,
    ):
        register_bots_and_live(client)
        yield client


def games(client: MatchmakerClient, book: Book, player: str) -> dict[str, int]:
    """Matches in the log by opponent."""
    return {cell.column: cell.games for cell in client.payoff(book, rows=[player])}
