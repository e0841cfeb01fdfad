"""A learner whose matches are played in other processes continues them from a checkpoint, bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learning import MATCHES, env_of
from rollouts import prepared, updates
from test_choice_learning import make_model, matches_against, network_of

from league.errors import DataCorrupt
from league.games.base import BatchedGame
from league.games.registry import make_batched
from league.games.workers.game import make_spread
from league.games.workers.records import state_of
from league.security.credentials import Credentials
from learner.train.checkpoint import (
    CheckpointFolder,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
)


def in_workers(matches: int = MATCHES) -> BatchedGame:
    return make_spread(
        "leduc",
        matches,
        workers=(None, None),
        credentials=Credentials(),
        max_frames=None,
        options={},
    )


def hosted(matches: int = MATCHES) -> BatchedGame:
    return make_batched("pettingzoo:small_environments:Nim", matches, workers=2)


def begun(game: BatchedGame, count: int = 400) -> Any:
    name, plan = game.spec.name, matches_against("random", "live", count=400)
    load = lambda digest: network_of(name, int(digest, 16))  # noqa: E731
    env = env_of(game, plan[400 - count :], load, frame_skip=1, reward="dense")
    return make_model(env)


def stored(model: Any, folder: Path) -> dict[str, Any]:
    values = {"algorithm": algorithm_state(model), "environment": environment_state(model.env)}
    CheckpointFolder(folder).write(model.num_timesteps, values)
    saved = CheckpointFolder(folder).read_newest()
    assert saved is not None
    return saved


def bytes_alone(saved: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint as an older version wrote it."""
    arrays = state_of(saved["environment"]["game"].numpy().tobytes())
    game = {
        name: torch.from_numpy(np.frombuffer(array.tobytes(), np.uint8).copy())
        for name, array in arrays.items()
    }
    return {**saved, "environment": {**saved["environment"], "game": game}}


@pytest.fixture(autouse=True)
def _finds_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "contract")


@pytest.mark.long
@pytest.mark.parametrize("as_written", [dict, bytes_alone])
@pytest.mark.parametrize("make", [in_workers, hosted])
def test_a_resumed_learner_equals_one_that_never_stopped(
    tmp_path: Path,
    make: Callable[[], BatchedGame],
    as_written: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    with closing(make()) as game, closing(make()) as other:
        first = prepared(begun(game))
        updates(first, 2)
        assert first.env.game.frames_N.any(), "matches are in progress"
        saved = as_written(stored(first, tmp_path))
        source, playing = first.env.source, list(first.env.assignments)
        second = begun(other, len(source._left))
        load_environment_state(second.env, saved["environment"], playing)
        load_algorithm_state(second, saved["algorithm"])
        second.last_obs_NO = second.env.observations()
        prepared(second)
        for model in (first, second):
            updates(model, 2)
        ours, theirs = (model.policy.state_dict() for model in (first, second))
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
        assert np.array_equal(first.last_obs_NO, second.last_obs_NO)
        one, two = (environment_state(model.env) for model in (first, second))
        assert one["matches"] == two["matches"]
        assert torch.equal(one["game"], two["game"])


def test_a_damaged_old_checkpoint_costs_only_the_matches(tmp_path: Path) -> None:
    model = begun(make_batched("leduc", MATCHES))
    prepared(model)
    saved = bytes_alone(stored(model, tmp_path))["environment"]
    saved["game"]["observations_N2O"] = saved["game"]["observations_N2O"][:-4]
    with pytest.raises(DataCorrupt):
        load_environment_state(model.env, saved, model.env.assignments)
