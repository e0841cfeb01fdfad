"""Minutes: a clone of `based` knows more than its key rates, and takes its matches off it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from league.agent.device import keep_memory
from league.agent.snapshot import load_snapshot
from league.contest.matches import paired, play_bouts
from league.games.base import EXTERNAL
from league.games.settings import GameSettings
from league.replay import SUFFIX, Contender, Recipe, save_replay
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.cloning.training import make_clone

OPPONENTS = {"based": 300, "random": 40, "aggressive": 40, "clockwork": 40, "constant": 40}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_clone_of_based_is_near_it(tmp_path: Path) -> None:
    """What docs/cloning.md does by its commands; 200 sampled matches, seats swapped, a draw
    half.
    """
    torch.set_num_threads(1)
    keep_memory()
    sections = resolve("laptop", environment={})
    game = sections.of(GameSettings)
    spec = game.spec()
    for name, matches in OPPONENTS.items():
        bots = (spec.bot_index("based"), spec.bot_index(name))
        seats = (Contender(name="based"), Contender(name=name))
        made = [replace(b, pupil="based") for b in paired(*seats, bots, matches, 1000)]
        for replay in play_bouts(
            Recipe.of(game), made, lambda _: None, frame_skip=1, seed=1000, pace=4, disturb=0.05
        ):  # type: ignore[arg-type, return-value]
            save_replay(tmp_path / f"{replay.match_id}{SUFFIX}", replay)
    blobs = BlobFolder(tmp_path / "blobs")
    digest, card = make_clone(tmp_path, "based", sections, blobs, torch.device("cpu"))
    assert card.metrics["held_out_log_loss"] < 0.5 * card.metrics["marginal_log_loss"]
    seats = (Contender(name="clone", digest=digest), Contender(name="based"))
    made = paired(*seats, (EXTERNAL, spec.bot_index("based")), 200, 0)
    clone, _ = load_snapshot(blobs, digest)
    outcomes = [
        replay.outcome if replay.seats[0].name == "clone" else 1.0 - replay.outcome
        for replay in play_bouts(Recipe.of(game), made, lambda _: clone, frame_skip=4, seed=0)
    ]
    assert sum(outcomes) / 200 >= 0.4
