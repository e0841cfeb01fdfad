"""When references are renewed, from what, which of them leave, and what a checkpoint keeps."""

from types import SimpleNamespace

import pytest
from learning import MATCHES, same
from referenced import regularised, steps_of
from rollouts import collect, updates, whole_batch


def test_a_renewed_reference_is_the_learner_memory_of_matches_in_progress_included():
    model = regularised(reference_interval=1)
    updates(model, 3)
    assert not model.last_starts_N.all(), "some match must be in progress"
    collect(model)
    kl = model.loss_terms(whole_batch(model)).kl
    assert float(kl.loss.detach()) == pytest.approx(0.0, abs=1e-9)
    model.train()  # and not for want of anything to differ
    assert float(model.loss_terms(whole_batch(model)).kl.loss.detach()) > 1e-5


def test_references_are_renewed_by_updates_and_old_ones_stay_as_the_interval_says():
    # 6 updates a rollout of 48 steps: 3 minibatches, 2 epochs
    model = regularised(
        reference_interval=10, portfolio_interval=20, portfolio_size=3, pruning="recent"
    )
    seen = []
    for _ in range(10):
        updates(model, 1)
        seen.append(steps_of(model))
    assert seen == [
        [0],  # 6 updates
        [96],  # 12
        [96],
        [192, 96],  # 24: the interval of 20 has passed, so the forerunner stays
        [240, 96],  # 30
        [240, 96],
        [336, 96, 240],  # 42
        [336, 96, 240],
        [432, 96, 240],  # 54
        [480, 240, 432],  # 60: three would stay, the oldest leaves
    ]


def test_best_asks_for_ratings_and_drops_the_lowest():
    model = regularised(
        reference_interval=6, portfolio_interval=6, portfolio_size=3, pruning="best"
    )
    names = ["a", "b", "c", "d"]
    model.references.register = lambda network, step: names.pop(0)
    model.references.ratings = lambda: {"a": 3.0, "b": 1.0, "c": 2.0}
    updates(model, 3)
    assert [reference.name for reference in model.references.members] == ["d", "a", "c"]


def test_diverse_measures_on_the_rollout_and_drops_one_that_another_stands_for():
    model = regularised(
        reference_interval=6, portfolio_interval=6, portfolio_size=3, pruning="diverse"
    )
    updates(model, 2)
    anchor, first, second = model.references.members
    second.network.load_state_dict(first.network.state_dict())  # two alike, with one memory
    second.own = tuple(part.clone() for part in first.own)
    updates(model, 1)
    kept = model.references.members[1:]
    assert kept == [second, anchor], "of two that are alike the older goes"


def test_learners_that_share_the_work_drop_what_they_agree_on():
    model = regularised(
        reference_interval=6, portfolio_interval=6, portfolio_size=2, pruning="recent"
    )
    model.references.group = SimpleNamespace(broadcast=lambda index: index + 1)
    updates(model, 3)
    assert steps_of(model) == [144, 0]


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
