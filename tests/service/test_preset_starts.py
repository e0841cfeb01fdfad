"""A few steps of presets of each kind, with a real session and matchmaker."""

import pytest
import torch

from league.agent.snapshot import load_snapshot
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.train.build import SessionSettings
from learner.train.parts import build_parts
from learner.train.session import Session
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

SHORT = (
    "learner.steps=8",
    "learner.matches=2",
    "learner.n_steps=4",
    "learner.batch_size=8",
    "learner.n_epochs=1",
    "game.match_seconds=0.1",
)
"""Enough matches and steps for some to end, an update and a snapshot."""


@pytest.mark.parametrize(
    "preset", ["fast", *(pytest.param(name, marks=pytest.mark.long) for name in ("t4", "full"))]
)
def test_a_preset_trains_and_publishes_what_it_says(preset, tmp_path):
    sections = resolve(preset, assignments=SHORT, environment={})
    own, settings = SessionSettings.of(sections), MatchmakerSettings.of(sections)
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0, settings=settings) as server,
        MatchmakerClient(server.address) as client,
    ):
        session = Session(build_parts(own, client, tmp_path, torch.device("cpu")))
        session.run()
        frozen = [player for player in client.players() if player.name == "main@8"]
        (view,) = client.curricula()
        matches = sum(cell.games for cell in client.payoff(Book.TRAIN) if cell.row == "main")
    assert (session.model.num_timesteps, session.model._n_updates) == (8, 1)
    assert matches > 0
    _, card = load_snapshot(BlobFolder(tmp_path / "blobs"), frozen[0].digest)
    assert card.agent.sequence_length == own.agent.sequence_length
    assert (card.agent.layers, card.frame_skip) == (6, 1)
    assert card.reward_preset == own.game.reward
    assert view.stage.name == own.curriculum.stages[0].name
    assert (session.model.references is not None) == (own.regularisation.alpha > 0)
