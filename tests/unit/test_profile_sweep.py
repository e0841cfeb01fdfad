"""What a profile makes of its rows: spread, bottleneck, the sweep's plan and recommendation."""

import pytest
from profiling import FACTS, row

from league.errors import ConfigError
from league.settings.base import resolve
from learner.profile import report, sweep
from learner.profile.measuring import Measured
from learner.profile.sweep import Spread
from learner.settings import LearnerSettings

LEARNER = LearnerSettings(matches=8, n_steps=16, batch_size=64).model_dump()
OWN = {"matches": 8, "batch_size": 64, "threads": 1}


def test_a_row_has_medians_spread_and_shares():
    made = row()
    assert made.steps_per_second() == Spread(750.0, 500.0, 1000.0)
    assert made.part_steps_per_second("game") == Spread(7500.0, 5000.0, 10000.0)
    assert made.part_steps_per_second("other") is None
    shares = {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0}
    assert made.shares() == pytest.approx(shares)
    assert made.cpu_cores().median == pytest.approx(0.9)
    assert made.steps_per_cpu_second().median == pytest.approx(750 / 0.9)
    assert made.slowest() == "learning"


@pytest.mark.parametrize("kind", ["game", "opponents", "inference", "learning", "other"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_what_takes_most_is_the_bottleneck_with_advice(kind, device):
    said = report.bottleneck(row(**{kind: 9.0}), {**FACTS, "device": device})
    assert said.startswith(f"{kind} takes 9")


def test_a_process_that_waits_for_a_core_is_named():
    assert "0.40 of a core" in report.bottleneck(row(busy=0.4), FACTS)
    assert "of a core" not in report.bottleneck(row(), FACTS)


def test_a_lead_within_the_spread_is_doubted():
    own, wide = row(1000), row(1200, {"matches": 16, "batch_size": 32, "threads": 1})
    assert "600 to 1,200 against 500 to 1,000" in report.doubt(wide, own)
    assert report.doubt(row(3000, wide.changes), own) == ""
    assert report.doubt(own, own) == report.doubt(wide, None) == ""


def settings_of(cells):
    return [(cell["matches"], cell["batch_size"], cell["threads"]) for cell in cells]


def test_a_sweep_goes_around_the_settings_and_begins_with_them():
    planned, left_out = sweep.plan(LEARNER, {}, cores=2, gpu=False)
    cells = settings_of(planned)
    assert cells[0] == (8, 64, 1)
    around = {(m, b, t) for m in (4, 8, 16) for b in (32, 64, 128) for t in (1, 2)}
    assert set(cells) == around - {(4, 128, 1), (4, 128, 2)}
    assert len(left_out) == 2
    assert "matches 4, batch_size 128, threads 1" in left_out[0]
    assert {t for _, _, t in settings_of(sweep.plan(LEARNER, {}, cores=1, gpu=False)[0])} == {1}


@pytest.mark.parametrize("own", ["auto", "float32"])
def test_a_sweep_tries_precisions_on_a_gpu_alone(own):
    learner = {**LEARNER, "precision": own}
    tried = {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=True)[0]}
    assert tried == {"auto", "float32"}
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=False)[0]} == {own}


def test_a_sweep_takes_the_values_asked_for():
    wanted = {"matches": [4, 8], "batch_size": [64, 70], "threads": [1]}
    planned, left_out = sweep.plan(LEARNER, wanted, 2, False)
    assert settings_of(planned) == [(8, 64, 1), (4, 64, 1)]
    assert len(left_out) == 2
    assert all("batch_size 70" in reason for reason in left_out)
    with pytest.raises(ConfigError, match="batch_size 70"):
        sweep.plan(LEARNER, {"batch_size": [70]}, 2, False)


def test_rounds_alternate_their_direction_and_leave_out_what_failed():
    asked = []

    def measured(changes):
        asked.append(changes["matches"])
        failed = changes["matches"] == 2
        return Measured(failure="too large") if failed else Measured(bursts=row().bursts)

    *_, rows = sweep.run_rounds([{"matches": n} for n in (1, 2, 3)], 3, measured)
    assert asked == [1, 2, 3, 3, 1, 1, 3]
    assert [(row.counts, len(row.bursts)) for row in rows] == [(True, 6), (False, 0), (True, 6)]


def test_the_fastest_is_recommended_and_of_equals_the_one_that_changes_least():
    def recommended(*speeds):
        rows = [row(steps, changes) for steps, changes in speeds]
        return dict(sweep.recommended(rows, OWN).changes)

    wide, threads = {**OWN, "matches": 16}, {**OWN, "threads": 2}
    assert recommended((1000, OWN), (1100, wide), (1050, threads)) == wide
    assert recommended((1000, OWN), (1100, wide), (1090, threads)) == threads
    assert recommended((1090, OWN), (1100, wide), (1099, threads)) == OWN
    failed = row(9000, wide)
    failed.failure = "too large"
    assert sweep.recommended([failed], OWN) is None
    assert sweep.recommended([failed, row(10, OWN)], OWN).changes == OWN


def test_the_written_preset_is_the_best_row_over_what_was_profiled(tmp_path):
    flags = ["learner.gamma=0.97", "matchmaker.max_saved=33"]
    sections = resolve("laptop", None, flags, environment={})
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    best = row(9000, {**own, "matches": 256, "batch_size": 2048, "threads": 2})
    text = report.preset_text("laptop", sections, own, best, [row(3000, own), best], FACTS)
    file = tmp_path / "fast.toml"
    file.write_text(text)
    wanted = {**sections, "learner": {**sections["learner"], **best.changes}}
    assert resolve(None, file, environment={}) == wanted
    assert "6,750 steps/s" in text
    assert "matches and batch_size differ" in text
    threads = row(1, {**own, "threads": 2})
    assert "differ" not in report.preset_text("laptop", sections, own, threads, [], FACTS)


def test_settings_without_a_preset_are_written_whole(tmp_path):
    sections = resolve(None, None, ["learner.gamma=0.97"], environment={})
    own = {axis: sections["learner"][axis] for axis in sweep.AXES}
    file = tmp_path / "own.toml"
    file.write_text(report.preset_text(None, sections, own, row(1, own), [], FACTS))
    assert "extends" not in file.read_text()
    assert resolve(None, file, environment={}) == sections
