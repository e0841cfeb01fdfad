"""`bin/league profile --sweep`: what is tried, what is recommended, and the preset that is
written of it.
"""

import pytest
from profiling import FACTS, row

from league.errors import ConfigError
from league.settings.base import resolve
from learner.profile import sweep
from learner.profile.preset import preset_text
from learner.profile.worker import Measured
from learner.settings import LearnerSettings

LEARNER = LearnerSettings(matches=8, n_steps=16, batch_size=64).model_dump()


def settings_of(cells):
    return [(cell["matches"], cell["batch_size"], cell["threads"]) for cell in cells]


def test_a_sweep_goes_around_the_settings_and_begins_with_them():
    planned = sweep.plan(LEARNER, {}, cores=2, gpu=False)
    cells = settings_of(planned.cells)
    assert cells[0] == (8, 64, 1)
    assert set(cells) == {(m, b, t) for m in (4, 8, 16) for b in (32, 64, 128) for t in (1, 2)} - {
        (4, 128, 1),
        (4, 128, 2),
    }
    assert len(planned.left_out) == 2
    assert "matches 4, batch_size 128, threads 1" in planned.left_out[0]
    assert "batch_size is more than a rollout of 4 x 16 steps" in planned.left_out[0]
    assert {t for _, _, t in settings_of(sweep.plan(LEARNER, {}, cores=1, gpu=False).cells)} == {1}


@pytest.mark.parametrize(
    ("own", "tried"), [("auto", {"auto", "float32"}), ("float32", {"float32", "auto"})]
)
def test_a_sweep_tries_precisions_on_a_gpu_alone(own, tried):
    learner = {**LEARNER, "precision": own}
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=True).cells} == tried
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=False).cells} == {own}


def test_a_sweep_takes_the_values_asked_for():
    planned = sweep.plan(
        LEARNER, {"matches": [4, 8], "batch_size": [64, 70], "threads": [1]}, 2, False
    )
    assert settings_of(planned.cells) == [(8, 64, 1), (4, 64, 1)]
    assert len(planned.left_out) == 2
    assert all(
        "batch_size 70" in told and "must be a multiple" in told for told in planned.left_out
    )
    with pytest.raises(
        ConfigError, match=r"no configuration that can be: .*batch_size must be a multiple"
    ):
        sweep.plan(LEARNER, {"batch_size": [70]}, 2, False)


def test_rounds_go_to_and_fro_and_leave_out_what_failed():
    asked = []

    def measured(changes, number):
        asked.append((number, changes["matches"]))
        return (
            Measured(failure="too large")
            if changes["matches"] == 2
            else Measured(bursts=row().bursts)
        )

    *_, rows = sweep.run_rounds([{"matches": n} for n in (1, 2, 3)], 3, measured)
    assert asked == [(0, 1), (0, 2), (0, 3), (1, 3), (1, 1), (2, 1), (2, 3)]
    assert [(row.counts, len(row.bursts)) for row in rows] == [(True, 6), (False, 0), (True, 6)]


def test_where_memory_runs_out_the_gradient_comes_in_more_parts():
    own = {axis: LEARNER[axis] for axis in sweep.AXES}  # a minibatch of four sequences
    asked = []

    def measured(changes, number):
        asked.append((number, changes["matches"], changes["gradient_parts"]))
        if changes["gradient_parts"] < changes["matches"] // 8:
            return Measured(failure="too little memory", out_of_memory=True)
        return Measured(bursts=row().bursts)

    def instead(changes):
        return sweep.in_more_parts(LEARNER, changes)

    *_, rows = sweep.run_rounds([{**own, "matches": n} for n in (8, 16, 64)], 2, measured, instead)
    assert asked[:7] == [
        (0, 8, 1),
        (0, 16, 1),
        (0, 64, 1),
        (0, 16, 2),
        (0, 64, 2),
        (0, 64, 4),
        (1, 16, 2),
    ]
    assert asked[7:] == [(1, 8, 1)]
    known = {(one.changes["matches"], one.changes["gradient_parts"]): one.counts for one in rows}
    assert [cell for cell, counts in known.items() if counts] == [(8, 1), (16, 2)]
    assert (64, 4) in known, "as far as single sequences, and no further"
    assert sweep.recommended(rows, own).changes == own


def test_the_fastest_is_recommended_and_of_equals_the_one_that_changes_least():
    own = {"matches": 8, "batch_size": 64, "threads": 1}

    def recommended(*speeds):
        rows = [row(steps, changes) for steps, changes in speeds]
        return dict(sweep.recommended(rows, own).changes)

    wide, threads = {**own, "matches": 16}, {**own, "threads": 2}
    assert recommended((1000, own), (1100, wide), (1050, threads)) == wide
    assert recommended((1000, own), (1100, wide), (1090, threads)) == threads
    assert recommended((1090, own), (1100, wide), (1099, threads)) == own
    failed = row(9000, wide)
    failed.failure = "too large"
    assert sweep.recommended([failed], own) is None
    assert sweep.recommended([failed, row(10, own)], own).changes == own


def test_the_written_preset_is_the_best_row_over_what_was_profiled(tmp_path):
    sections = resolve(
        "laptop", None, ["learner.gamma=0.97", "matchmaker.max_saved=33"], environment={}
    )
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    best = row(9000, {**own, "matches": 256, "batch_size": 2048, "threads": 2})
    text = preset_text("laptop", sections, own, best, [row(3000, own), best], FACTS)
    file = tmp_path / "fast.toml"
    file.write_text(text)
    loaded = resolve(None, file, environment={})
    wanted = {**sections, "learner": {**sections["learner"], **best.changes}}
    assert loaded == wanted
    comments = " ".join(line[2:] for line in text.splitlines() if line.startswith("# "))
    assert (
        "6,750 steps/s from one end to the other, 4,500 to 9,000 in 2 bursts, on a processor, 2 cores"
        in comments
    )
    assert "2,250 (1,500 to 3,000)" in comments
    assert "matches and batch_size differ and change what a step teaches" in comments
    same = preset_text("laptop", sections, own, row(1, {**own, "threads": 2}), [], FACTS)
    assert "Nothing here changes what a step teaches" in same


def test_settings_without_a_preset_are_written_whole(tmp_path):
    sections = resolve(None, None, ["learner.gamma=0.97"], environment={})
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    file = tmp_path / "own.toml"
    file.write_text(preset_text(None, sections, own, row(1, own), [], FACTS))
    assert "extends" not in file.read_text()
    assert resolve(None, file, environment={}) == sections
