"""References in checkpoints and saved models, their memories of the matches in progress
included.
"""

import pytest
import torch
from learning import MATCHES, assignments, make_env, same, weights
from referenced import memories, regularised, steps_of
from rollouts import prepared, updates

from learner.train.checkpoint import (
    CheckpointFolder,
    algorithm_state,
    environment_state,
    load_algorithm_state,
    load_environment_state,
)


@pytest.mark.parametrize("form", ["loss", "reward"])
def test_a_run_resumed_with_references_equals_one_that_never_stopped(tmp_path, form):
    torch.set_num_threads(1)
    settings = {
        "form": form,
        "reference_interval": 5,
        "portfolio_interval": 6,
        "portfolio_size": 3,
        "match_share": 0.7,
    }
    uninterrupted = regularised(**settings)
    updates(uninterrupted, 5)

    first = regularised(**settings)
    updates(first, 3)
    values = {"algorithm": algorithm_state(first), "environment": environment_state(first.env)}
    CheckpointFolder(tmp_path).write(first.num_timesteps, values)
    taken = 200 - len(first.env.source._left)

    saved = CheckpointFolder(tmp_path).read_newest()
    plan = assignments(200)
    by_id = {assignment.match_id: assignment for assignment in plan}
    env = make_env(plan[taken:], max_frames=60)
    second = regularised(env, **settings)
    load_algorithm_state(second, saved["algorithm"])
    load_environment_state(
        env, saved["environment"], [by_id[m] for m in saved["environment"]["matches"]]
    )
    second.last_obs_NO = env.observations()
    prepared(second)
    assert steps_of(second) == steps_of(first)
    assert len(steps_of(second)) == 3
    updates(second, 2)

    assert same(weights(second), weights(uninterrupted))
    assert steps_of(second) == steps_of(uninterrupted) != steps_of(first)
    for one, other in zip(second.references.members, uninterrupted.references.members, strict=True):
        assert same(one.network.state_dict(), other.network.state_dict())
        for mine, theirs in zip(memories(one), memories(other), strict=True):
            assert torch.equal(mine, theirs)


def test_a_checkpoint_of_another_number_of_matches_keeps_references_and_empties_memories():
    model = regularised(match_share=0.5)
    updates(model, 2)
    state, saved = model.references.state(), model.references.memories()
    wider = regularised(match_share=1.0)
    wider.references.load(state, saved)
    (reference,) = wider.references.members
    assert same(reference.network.state_dict(), model.references.members[0].network.state_dict())
    assert reference.own[0].shape[0] == MATCHES
    assert not reference.own[0].any()
    updates(wider, 1)
