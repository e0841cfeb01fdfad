"""`bin/league profile`: what is measured adds up, what is recommended is what was measured."""

import gzip
import json
import math
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from profiled_games import NAP

from league.agent.snapshot import load_snapshot
from league.blobs import BlobFolder
from league.cli.main import main as league_command
from league.config import resolve
from league.errors import ConfigError
from league.games.registry import game_spec
from league.players import PlayerKind
from learner.membership import live_player
from learner.profile import opponents, sweep, words
from learner.profile.opponents import MixSource, make_snapshots, mix_of, snapshots_of_a_run
from learner.profile.pipeline import Pipeline
from learner.profile.preset import preset_text
from learner.profile.rows import Row, Spread
from learner.profile.trace import gpu_busy_share
from learner.profile.worker import Measured, Order, measure, session_settings
from learner.settings import LearnerSettings

FACTS = {
    "device": "cpu",
    "gpu": None,
    "processor": "a processor",
    "cores": 2,
    "load_average": [0.5, 0.5, 0.5],
}
SMALL = ["learner.matches=8", "learner.n_steps=8", "learner.batch_size=32"]
KUHN = [*SMALL, "agent.sequence_length=17", "curriculum.stages=[{name='league', mix='league'}]"]
KUHN += ["matchmaker.mixes={league={self=1.0, random=1.0}}"]


def kuhn(factory, *more):
    name = f'game.name="python:profiled_games:{factory}"' if factory else 'game.name="kuhn"'
    return resolve("board", None, [name, *KUHN, *more], environment={})


def pipeline_of(sections, folder):
    settings = session_settings(sections)
    mix = mix_of(sections, settings)
    snapshots = make_snapshots(folder / "blobs", settings, 3) if "snapshots" in mix else []
    torch.set_num_threads(1)
    device = torch.device("cpu")
    return Pipeline(settings, mix, snapshots, folder / "blobs", folder, device)


def row(steps=1000, changes=None, **parts):
    """A row of two bursts; the second took twice as long."""
    parts = {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0.0, **parts}
    bursts = [
        {
            "steps": steps,
            "seconds": factor * sum(parts.values()),
            "parts": {kind: factor * seconds for kind, seconds in parts.items()},
            "cpu_seconds": factor * sum(parts.values()) * 0.9,
            "measured_seconds": 1.0,
            "whole": True,
            "matches_ended": 2,
        }
        for factor in (1.0, 2.0)
    ]
    made = Row(changes or {"matches": 8, "batch_size": 32, "threads": 1})
    made.add(Measured(bursts=bursts, memory={"peak_resident_bytes": 5 << 20}))
    return made


# -- the pipeline ---------------------------------------------------------------------------------


def test_the_parts_of_a_real_burst_add_up_to_its_time(tmp_path):
    pipeline = pipeline_of(resolve("smoke", None, SMALL, environment={}), tmp_path)
    pipeline.warm_up(2.0)
    burst = pipeline.burst(1.0)
    assert burst.whole
    assert burst.steps % (8 * 8) == 0
    assert pipeline.model.num_timesteps >= burst.steps > 0
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)
    assert set(burst.parts) == {"game", "opponents", "inference", "learning", "other"}
    assert all(seconds > 0 for seconds in burst.parts.values())
    assert burst.cpu_seconds > 0
    assert math.isclose(burst.seconds, burst.measured_seconds, rel_tol=1e-6)


@pytest.mark.parametrize("seconds", [0.4, 0.04])  # one that may hold a rollout, and one that can't
@pytest.mark.parametrize("regularised", [False, True])
def test_an_update_longer_than_a_burst_is_scaled_up_from_its_beginning(tmp_path, regularised, seconds):
    long = ["learner.n_steps=512", "learner.batch_size=512", "learner.n_epochs=50"]
    sections = kuhn("slow", *long, f"regularisation.alpha={0.01 * regularised}")
    pipeline = pipeline_of(sections, tmp_path)
    pipeline.warm_up(seconds)
    burst = pipeline.burst(seconds)
    assert not burst.whole
    assert ("references" in burst.parts) == regularised
    assert burst.steps == 8 * 512
    assert burst.parts["game"] >= 512 * NAP
    assert burst.parts["game"] < 512 * NAP * 8  # as large a factor as a busy machine may need
    assert burst.seconds > 2 * burst.measured_seconds
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("matches", "sequences", "epochs", "done", "factor"),
    [(8, 2, 1, 4, 1.0), (8, 2, 10, 4, 10.0), (8, 2, 10, 1, 40.0), (6, 4, 2, 1, 3.0), (6, 4, 2, 3, 1.2)],
)
def test_a_cut_update_counts_the_sequences_it_saw(tmp_path, matches, sequences, epochs, done, factor):
    sections = kuhn(
        "",
        f"learner.matches={matches}",
        f"learner.batch_size={8 * sequences}",
        f"learner.n_epochs={epochs}",
    )
    assert pipeline_of(sections, tmp_path)._minibatches_share(done) == pytest.approx(factor)


def test_a_slow_game_is_named_as_the_bottleneck(tmp_path):
    pipeline = pipeline_of(kuhn("slow", "learner.n_epochs=1", "learner.batch_size=64"), tmp_path)
    pipeline.warm_up(0.2)
    slow = Row({})
    slow.add(Measured(bursts=[vars(pipeline.burst(0.3))]))
    assert slow.slowest() == "game"
    told = words.bottleneck(slow, FACTS)
    assert told.startswith("game takes ")
    assert "learner.matches" in told


# -- the league it plays --------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "count"), [("laptop", 100), ("full", 200), ("smoke", 6), ("test", 10)])
def test_as_many_snapshots_as_a_run_would_hold(preset, count):
    assert snapshots_of_a_run(resolve(preset, environment={})) == count


def test_snapshots_are_different_and_bounded_in_size(tmp_path, monkeypatch):
    settings = session_settings(kuhn(""))
    made = make_snapshots(tmp_path, settings, 5)
    assert len({player.digest for player in made}) == len({player.name for player in made}) == 5
    weights = [load_snapshot(BlobFolder(tmp_path), player.digest)[0].state_dict() for player in made]
    assert len({float(sum(part.sum() for part in each.values())) for each in weights}) == 5
    size = next(tmp_path.rglob("*.safetensors")).stat().st_size
    monkeypatch.setattr(opponents, "LARGEST_POOL", 3 * size + size // 2)
    assert len(make_snapshots(tmp_path / "fewer", settings, 5)) == 3


def test_the_mix_is_played_by_its_weights_and_empty_categories_leave_theirs(tmp_path):
    settings = session_settings(resolve("smoke", environment={}))
    live = live_player("main", settings.game.make(1))
    snapshots = [opponents._snapshot(game_spec("brawl"), f"{i:064x}", i) for i in (1, 2)]
    mix = {"snapshots": 6.0, "based": 2.0, "self": 2.0, "exploiters": 30.0, "random": 0.0}
    source = MixSource(mix, game_spec("brawl"), live, snapshots, seed=0)
    drawn = [source.take() for _ in range(4000)]
    shares = {name: n / 4000 for name, n in Counter(match.category for match in drawn).items()}
    assert shares == pytest.approx({"snapshots": 0.6, "based": 0.2, "self": 0.2}, abs=0.03)
    assert {match.opponent.kind for match in drawn} == {
        PlayerKind.BOT,
        PlayerKind.SNAPSHOT,
        PlayerKind.LIVE,
    }
    names = Counter(match.opponent.name for match in drawn if match.category == "snapshots")
    assert min(names.values()) / max(names.values()) > 0.85
    assert np.mean([match.learner_seat for match in drawn]) == pytest.approx(0.5, abs=0.03)
    assert len({match.seed for match in drawn}) == 4000


def test_a_mix_of_nobody_is_self_play():
    live = live_player("main", session_settings(kuhn("")).game.make(1))
    spec = game_spec("brawl")
    held_out = next(bot.name for bot in spec.bots if bot.held_out)
    assert opponents.opponents_by_category({"exploiters": 1.0, held_out: 1.0}, spec, live, []) == {
        "self": [live]
    }


def test_a_stage_without_its_mix_is_refused():
    sections = kuhn("", "curriculum.stages=[{name='x', mix='nowhere'}]")
    with pytest.raises(ConfigError, match=r"'nowhere', which \[matchmaker\.mixes\] lacks: it has league"):
        mix_of(sections, session_settings(sections))


# -- rows -----------------------------------------------------------------------------------------


def test_a_row_tells_medians_spread_and_shares():
    made = row()
    assert made.steps_per_second() == Spread(750.0, 500.0, 1000.0)
    assert made.steps_per_second().relative == pytest.approx(2 / 3)
    assert made.part_steps_per_second("game") == Spread(7500.0, 5000.0, 10000.0)
    assert made.part_steps_per_second("other") is None
    shares = made.shares()
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares == pytest.approx(
        {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0}
    )
    assert made.cpu_cores().median == pytest.approx(0.9)
    assert made.steps_per_cpu_second().median == pytest.approx(750 / 0.9)
    assert (made.slowest(), made.matches_ended(), made.whole) == ("learning", 4, True)


@pytest.mark.parametrize("kind", ["game", "opponents", "inference", "learning", "other"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_whatever_takes_most_is_the_bottleneck_with_advice(kind, device):
    told = words.bottleneck(row(**{kind: 9.0}), {**FACTS, "device": device})
    assert told.startswith(f"{kind} takes 9")
    advice = words.ADVICE_CPU if device == "cpu" else words.ADVICE_GPU
    assert advice[kind] in told
    assert "of a core busy" not in told


def test_a_process_that_waits_for_a_core_is_told():
    waiting = row()
    for burst in waiting.bursts:
        burst["cpu_seconds"] = 0.4 * burst["seconds"]
    assert "kept only 0.40 of a core busy" in words.bottleneck(waiting, FACTS)
    assert "load average 0.5 on 2 cores" in words.bottleneck(waiting, FACTS)


def test_what_was_not_measured_is_said():
    told = " ".join(words.not_measured(row(), FACTS, 3, 3, True))
    assert "waiting for the matchmaker" in told
    assert "a GPU: it ran on the CPU" in told
    assert "snapshots were made" not in told
    assert "whole updates" not in told
    cut = row()
    cut.bursts[1]["whole"] = False
    told = " ".join(words.not_measured(cut, {**FACTS, "device": "cuda:0"}, 3, 9, False))
    for words_told in (
        "3 of its 9 snapshots",
        "whole updates",
        "could not be asked",
        "nvidia-smi did not tell",
    ):
        assert words_told in told


# -- the sweep ------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(("own", "tried"), [("auto", {"auto", "float32"}), ("float32", {"float32", "auto"})])
def test_a_sweep_tries_precisions_on_a_gpu_alone(own, tried):
    learner = {**LEARNER, "precision": own}
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=True).cells} == tried
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=False).cells} == {own}


def test_a_sweep_takes_the_values_asked_for():
    planned = sweep.plan(LEARNER, {"matches": [4, 8], "batch_size": [64, 70], "threads": [1]}, 2, False)
    assert settings_of(planned.cells) == [(8, 64, 1), (4, 64, 1)]
    assert len(planned.left_out) == 2
    assert all("batch_size 70" in told and "must be a multiple" in told for told in planned.left_out)
    with pytest.raises(ConfigError, match=r"no configuration that can be: .*batch_size must be a multiple"):
        sweep.plan(LEARNER, {"batch_size": [70]}, 2, False)


def test_rounds_go_to_and_fro_and_leave_out_what_failed():
    asked = []

    def measured(changes, number):
        asked.append((number, changes["matches"]))
        return Measured(failure="too large") if changes["matches"] == 2 else Measured(bursts=row().bursts)

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
    assert asked[:7] == [(0, 8, 1), (0, 16, 1), (0, 64, 1), (0, 16, 2), (0, 64, 2), (0, 64, 4), (1, 16, 2)]
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


def test_a_lead_within_the_spread_is_doubted():
    own, wide = row(1000), row(1200, {"matches": 16, "batch_size": 32, "threads": 1})
    assert "within the spread (600 to 1,200 against 500 to 1,000)" in words.doubt(wide, own)
    assert words.doubt(row(3000, wide.changes), own) == ""
    assert words.doubt(own, own) == words.doubt(wide, None) == ""


def test_the_written_preset_is_the_best_row_over_what_was_profiled(tmp_path):
    sections = resolve("laptop", None, ["learner.gamma=0.97", "matchmaker.max_saved=33"], environment={})
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


# -- processes ------------------------------------------------------------------------------------


def order(sections):
    settings = session_settings(sections)
    return Order(
        sections=sections,
        device="cpu",
        mix=mix_of(sections, settings),
        snapshots=(),
        blobs=Path("unused"),
        seconds=0.1,
        bursts=1,
    )


def test_a_process_that_is_killed_or_finds_no_memory_is_a_failure_and_no_end():
    assert len(measure(order(kuhn("deadly"))).bursts) == 1
    killed = measure(order(kuhn("deadly", "learner.matches=16")))
    assert "was killed, most likely because memory ran out" in killed.failure
    huge = measure(order(kuhn("", "learner.matches=1000000000000")))
    assert huge.failure.startswith("too little memory on cpu: Unable to allocate")
    assert killed.bursts == huge.bursts == []


def profile(*words):
    return league_command(["profile", *map(str, words)])


def flags(assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def test_one_configuration_from_the_command_line(tmp_path, capsys):
    trace, output = tmp_path / "trace.json.gz", tmp_path / "results.json"
    words_given = ["--preset", "smoke", "--cpu", "--seconds", 0.5, "--trace", trace, "--output", output]
    assert profile(*words_given, *flags(SMALL)) == 0
    told = capsys.readouterr().out
    lines = [line.split("\t") for line in told.splitlines()]
    parts = ["game", "opponents", "inference", "learning", "other", "end to end"]
    assert [line[0] for line in lines[1:7]] == parts
    assert sum(float(line[4].rstrip("%")) for line in lines[1:6]) == pytest.approx(100, abs=0.3)
    assert "bottleneck: " in told
    assert told.count("not measured: ") >= 3
    assert "ms a match assigned and reported, 8 at a time" in told
    with gzip.open(trace, "rt") as file:
        assert json.load(file)["traceEvents"]
    written = json.loads(output.read_text())
    (measured,) = written["rows"]
    assert written["recommended"] == 0
    assert written["league"] == {"snapshots_made": 6, "snapshots_of_a_run": 6}
    assert len(measured["bursts"]) == 5
    assert measured["settings"]["matches"] == written["settings"]["learner"]["matches"] == 8
    assert sum(part["share"] for part in measured["parts"].values()) == pytest.approx(1.0)
    speed = measured["steps_per_second"]
    assert 0 < speed["lowest"] <= speed["median"] <= speed["highest"]
    assert measured["memory"]["peak_resident_bytes"] > 50 << 20
    assert 0 < written["matchmaker_ms_per_match"]["median"] < 1000


def test_a_sweep_from_the_command_line_goes_on_where_memory_is_short(tmp_path, capsys):
    output, preset = tmp_path / "results.json", tmp_path / "fast.toml"
    words_given = [
        "--preset",
        "board",
        "--cpu",
        "--seconds",
        0.3,
        "--sweep",
        "--batch-size",
        32,
        "--threads",
        1,
    ]
    words_given += ["--matches", 8, 10**12, "--output", output, "--write-preset", preset]
    assert profile(*words_given, *flags(KUHN)) == 0
    written = json.loads(output.read_text())
    own, *huge = written["rows"]
    parts = [row["settings"]["gradient_parts"] for row in huge]
    assert parts == [1, 2, 4], "four sequences of a minibatch"
    for row in huge:
        assert row["settings"]["matches"] == 10**12
        assert row["failure"].startswith("too little memory")
        assert row["bursts"] == []
    assert len(own["bursts"]) == sweep.ROUNDS
    assert written["recommended"] == 0
    told = capsys.readouterr()
    table = [line.split("\t") for line in told.out.splitlines()[:3]]
    assert table[1][-1] == "recommended, as it is set"
    assert table[2][-1].startswith("failed: too little memory")
    assert f"bin/start-league --config {preset}" in told.err
    loaded = resolve(None, preset, environment={})
    assert loaded == written["settings"]


@pytest.mark.parametrize(
    ("words_given", "told"),
    [
        (["--seconds", "0"], "0 is no time to measure in: give seconds above 0"),
        (["--seconds", "-1"], "-1 is no time to measure in"),
        (["--seconds", "nan"], "nan is no time to measure in"),
        (["--seconds", "soon"], "soon is no time to measure in"),
        (["--preset", "laptp"], "there is no preset 'laptp': did you mean 'laptop'?"),
        (["--config", "none.toml"], "there is no settings file none.toml"),
        (["--set", "learner.batch_size=7"], "batch_size must be a multiple of n_steps"),
        (["--output", "nowhere/results.json"], "there is no folder nowhere: make it, or name another place"),
        (["--output", "."], ". is a folder: name a file in it"),
        (["--write-preset", "fast.toml"], "--write-preset is for a sweep: add --sweep"),
        (["--matches", "8"], "--matches is for a sweep"),
        (["--sweep", "--matches", "0"], "--matches 0 can't be measured: give 1 or more"),
        (
            ["--sweep", "--write-preset", "mine.toml"],
            "mine.toml exists already: name another file, or add --force",
        ),
        (["--sweep", "--trace", "t.json"], "--trace is of one configuration: leave --sweep out"),
        (
            ["--sweep", "--batch-size", "33"],
            "no configuration that can be: matches 64, batch_size 33, threads 1",
        ),
        (["--gpu", "99"], "there is no GPU 99"),
    ],
)
def test_wrong_input_is_one_sentence_before_anything_is_measured(
    tmp_path, monkeypatch, capsys, words_given, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("precious")
    monkeypatch.setattr("learner.profile.profile.measure", None)
    assert profile(*words_given) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("league: ") == 1
    assert (tmp_path / "mine.toml").read_text() == "precious"


def test_where_nothing_can_be_measured_the_command_fails_and_says_why(tmp_path, capsys):
    words_given = ["--preset", "board", "--cpu", "--seconds", 0.1, "--output", tmp_path / "r.json"]
    assert profile(*words_given, *flags([*KUHN, f"learner.matches={10**12}"])) == 1
    assert "nothing could be measured: too little memory" in capsys.readouterr().err
    assert json.loads((tmp_path / "r.json").read_text())["recommended"] is None


# -- GPUs -----------------------------------------------------------------------------------------


def test_the_busy_share_of_a_trace_counts_overlapping_work_once():
    events = [
        {"cat": "cpu_op", "ts": 0, "dur": 10},
        {"cat": "kernel", "ts": 1, "dur": 3},
        {"cat": "kernel", "ts": 2, "dur": 1},
        {"cat": "gpu_memcpy", "ts": 3, "dur": 2},
        {"cat": "gpu_user_annotation", "ts": 0, "dur": 20},
        {"cat": "gpu_memset", "ts": 12, "dur": 4},
        {"ph": "M"},
    ]
    assert gpu_busy_share(events) == pytest.approx((4 + 4) / 20)
    assert gpu_busy_share(events[:1]) is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_the_gpu_benchmark_says_that_there_is_no_gpu(tmp_path):
    script = Path(__file__).resolve().parents[1] / "bench" / "gpu.sh"
    done = subprocess.run([script, tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "gpu.sh: there is no CUDA GPU 0 that torch can use on this machine: run it on one that has."
    )
    assert not (tmp_path / "out").exists()
