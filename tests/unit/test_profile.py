"""`bin/league profile` measures the pipeline, names what is slow, and finds faster settings."""

import gzip
import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from profiled_games import NAP

from league.agent.snapshot import load_snapshot
from league.cli.main import main
from league.errors import ConfigError
from league.games.registry import game_spec
from league.players import PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.profile import measuring, opponents, sweep
from learner.profile.measuring import Burst, Measured, Order, Pipeline, Spread
from learner.profile.opponents import make_snapshots
from learner.rollout.mix_source import MixSource
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings
from learner.train.join import live_player

SMALL = ["learner.matches=8", "learner.n_steps=8", "learner.batch_size=32"]
KUHN = [*SMALL, "agent.sequence_length=17", "curriculum.stages=[{name='league', mix='league'}]"]
KUHN += ["matchmaker.mixes={league={self=1.0, random=1.0}}"]


def profile(*words):
    return main(["profile", *map(str, words)])


def flags(assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def kuhn(factory="", *more):
    name = f"python:profiled_games:{factory}" if factory else "kuhn"
    return resolve("board", None, [f'game.name="{name}"', *KUHN, *more], environment={})


def order(sections, folder):
    return Order(sections=sections, device="cpu", snapshots=(), blobs=folder, seconds=0.1, bursts=1)


def test_one_configuration_from_the_command_line(tmp_path, capsys):
    trace, output = tmp_path / "trace.json.gz", tmp_path / "results.json"
    files = ["--trace", trace, "--output", output]
    one_step = [*SMALL[:2], "learner.batch_size=64", "learner.n_epochs=1"]
    assert profile("--preset", "smoke", "--cpu", "--seconds", 0.1, *files, *flags(one_step)) == 0
    printed = capsys.readouterr().out
    lines = [line.split("\t") for line in printed.splitlines()]
    parts = ["game", "opponents", "inference", "learning", "other"]
    assert [line[0] for line in lines[1:6]] == parts
    assert sum(float(line[2].rstrip("%")) for line in lines[1:6]) == pytest.approx(100, abs=0.3)
    assert "\nbottleneck: " in printed
    with gzip.open(trace, "rt") as file:
        assert json.load(file)["traceEvents"]
    written = json.loads(output.read_text())
    (measured,) = written["rows"]
    assert written["recommended"] == 0
    assert written["snapshots"] == 6
    assert len(measured["bursts"]) == 5
    assert measured["changes"]["matches"] == written["settings"]["learner"]["matches"] == 8
    speed = measured["steps_per_second"]
    assert 0 < speed["lowest"] <= speed["median"] <= speed["highest"]
    assert measured["memory"]["peak_resident_bytes"] > 50 << 20


def test_a_sweep_continues_where_memory_is_short(tmp_path, capsys):
    output, preset = tmp_path / "results.json", tmp_path / "fast.toml"
    sizes = ["--batch-size", 32, "--threads", 1, "--matches", 8, 10**12]
    files = ["--output", output, "--write-preset", preset]
    words = ["--preset", "board", "--cpu", "--seconds", 0.1, "--sweep", *sizes, *files]
    assert profile(*words, *flags(KUHN)) == 0
    written = json.loads(output.read_text())
    own, huge = written["rows"]
    assert huge["changes"]["matches"] == 10**12
    assert "memory" in huge["failure"]
    assert (len(own["bursts"]), huge["bursts"], written["recommended"]) == (3, [], 0)
    printed = capsys.readouterr()
    table = [line.split("\t") for line in printed.out.splitlines()[:3]]
    assert table[1][-1] == "recommended, unchanged"
    assert huge["failure"] in table[2][-1]
    assert resolve(None, preset, environment={}) == written["settings"]
    preset.chmod(0o444)
    before = preset.read_text()
    assert profile(*words) == 2
    assert "exists already" in capsys.readouterr().err
    assert preset.read_text() == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--seconds", "0"], "--seconds"),
        (["--preset", "laptp"], "'laptop'"),
        (["--set", "learner.batch_size=7"], "batch_size"),
        (["--output", "nowhere/results.json"], "nowhere"),
        (["--write-preset", "fast.toml"], "--sweep"),
        (["--matches", "8"], "--sweep"),
        (["--sweep", "--trace", "t.json"], "--trace"),
        (["--sweep", "--batch-size", "33"], "batch_size 33"),
        (["--gpu", "99"], "99"),
    ],
)
def test_wrong_input_is_one_sentence_before_anything_is_measured(
    tmp_path, monkeypatch, capsys, words, named
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measuring, "measure", None)
    assert profile(*words) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("league: ") == 1


def test_a_missing_gpu_is_told_before_torch_is_loaded():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from league.settings import device_flags; device_flags._GPU_DEVICES = ()\n"
        "from league.cli.main import main; sys.exit(main(['profile', '--gpu', '0']))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert "GPU 0" in ended.stderr
    assert "docs/gpu.md" in ended.stderr


def test_where_nothing_can_be_measured_the_command_fails_and_says_why(
    tmp_path, capsys, monkeypatch
):
    failed = Measured(failure="too little memory on cpu")
    monkeypatch.setattr(measuring, "measure", lambda order: failed)
    words = ["--preset", "board", "--cpu", "--output", tmp_path / "r.json", *flags(KUHN)]
    assert profile(*words) == 1
    assert failed.failure in capsys.readouterr().err
    assert json.loads((tmp_path / "r.json").read_text())["recommended"] is None


def test_the_parts_of_a_burst_add_up_and_a_slow_games_time_is_the_games(tmp_path):
    torch.set_num_threads(1)
    more = ("learner.n_epochs=1", "learner.batch_size=64", "regularisation.alpha=0.01")
    pipeline = Pipeline(order(kuhn("slow", *more), tmp_path / "blobs"), tmp_path)
    burst = pipeline.burst(0.01)
    assert burst.steps % (8 * 8) == 0
    assert pipeline.model.num_timesteps == burst.steps > 0
    assert math.isclose(sum(burst.parts.values()), burst.seconds, rel_tol=1e-9)
    assert [*burst.parts] == ["game", "opponents", "inference", "learning", "references", "other"]
    assert burst.cpu_seconds > 0
    assert burst.parts["game"] >= NAP * burst.steps / 8


def test_a_process_that_is_killed_is_a_reported_failure(tmp_path):
    killed = measuring.measure(order(kuhn("deadly", "learner.matches=16"), tmp_path))
    assert "killed" in killed.failure
    assert killed.bursts == []


def test_snapshots_are_different_and_bounded_in_size(tmp_path, monkeypatch):
    settings = SessionSettings.of(kuhn())
    made = make_snapshots(tmp_path, settings, 5)
    assert len({player.digest for player in made}) == len({player.name for player in made}) == 5
    assert load_snapshot(BlobFolder(tmp_path), made[0].digest)[1].step == made[0].step
    size = next(tmp_path.rglob("*.safetensors")).stat().st_size
    monkeypatch.setattr(opponents, "LARGEST_POOL", 3 * size + size // 2)
    assert len(make_snapshots(tmp_path / "fewer", settings, 5)) == 3


def drawn_from(mix, matches, snapshots=(), **options):
    live = live_player("main", SessionSettings.of(kuhn()).game.make(1))
    source = MixSource(mix, game_spec("brawl"), live, snapshots, seed=0, **options)
    return [source.take() for _ in range(matches)]


def test_the_mix_is_played_by_its_weights_and_empty_categories_leave_theirs(tmp_path):
    snapshots = make_snapshots(tmp_path, SessionSettings.of(kuhn()), 2)
    mix = {"snapshots": 6.0, "based": 2.0, "self": 2.0, "exploiters": 30.0, "random": 0.0}
    drawn = drawn_from(mix, 4000, snapshots)
    shares = {name: n / 4000 for name, n in Counter(match.category for match in drawn).items()}
    assert shares == pytest.approx({"snapshots": 0.6, "based": 0.2, "self": 0.2}, abs=0.03)
    names = Counter(match.opponent.name for match in drawn if match.category == "snapshots")
    assert min(names.values()) / max(names.values()) > 0.85
    assert np.mean([match.learner_seat for match in drawn]) == pytest.approx(0.5, abs=0.03)
    assert len({match.seed for match in drawn}) == 4000
    held_out = next(bot.name for bot in game_spec("brawl").bots if bot.held_out)
    (alone,) = drawn_from({"exploiters": 1.0, held_out: 1.0}, 1)
    assert alone.opponent.kind is PlayerKind.LIVE


def test_matches_of_a_draw_are_in_a_row():
    mix = {"based": 1.0, "random": 1.0, "constant": 2.0}
    names = [match.opponent.name for match in drawn_from(mix, 400, matches_per_draw=4)]
    draws = [set(names[i : i + 4]) for i in range(0, 400, 4)]
    assert all(len(draw) == 1 for draw in draws)
    assert set.union(*draws) == set(mix)


# -- what a profile makes of its rows --------------------------------------------------------------

FACTS = {"device": "cpu", "cores": 2, "load_average": 0.5}
LEARNER = LearnerSettings(matches=8, n_steps=16, batch_size=64).model_dump()
OWN = {"matches": 8, "batch_size": 64, "threads": 1}


def row(steps=1000, changes=OWN, *, busy=0.9):
    """A row of two bursts; the second took twice as long."""
    parts = {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0.0}
    once = Burst(steps=steps, seconds=1.0, parts=parts, cpu_seconds=busy)
    twice = {kind: 2 * seconds for kind, seconds in parts.items()}
    slower = replace(once, seconds=2.0, parts=twice, cpu_seconds=2 * busy)
    return Measured(bursts=[once, slower], changes=changes)


def test_a_row_has_medians_spread_and_shares():
    made = row()
    assert made.speed() == Spread(750.0, 500.0, 1000.0)
    shares = {"game": 0.1, "opponents": 0.2, "inference": 0.3, "learning": 0.4, "other": 0}
    assert made.shares() == pytest.approx(shares)
    assert made.cpu_cores() == pytest.approx(0.9)
    assert made.steps_per_cpu_second() == pytest.approx(2000 / 2.7)
    assert sweep.bottleneck(made, FACTS).startswith("learning takes 40% ")


def test_a_process_that_waits_for_a_core_is_named():
    assert "0.40" in sweep.bottleneck(row(busy=0.4), FACTS)
    assert "0.90" not in sweep.bottleneck(row(), FACTS)


def test_a_lead_within_the_spread_is_doubted():
    own, wide = row(1000), row(1200, {**OWN, "matches": 16})
    assert "600 to 1,200" in sweep.doubt(wide, own)
    assert sweep.doubt(row(3000, wide.changes), own) == ""
    assert sweep.doubt(own, own) == sweep.doubt(wide, None) == ""


def settings_of(cells):
    return [(cell["matches"], cell["batch_size"], cell["threads"]) for cell in cells]


def test_a_sweep_goes_around_the_settings_and_begins_with_them():
    cells = settings_of(sweep.plan(LEARNER, {}, cores=2, gpu=False))
    assert cells[0] == (8, 64, 1)
    around = {(m, b, t) for m in (4, 8, 16) for b in (32, 64, 128) for t in (1, 2)}
    assert set(cells) == around - {(4, 128, 1), (4, 128, 2)}
    assert {t for _, _, t in settings_of(sweep.plan(LEARNER, {}, cores=1, gpu=False))} == {1}


@pytest.mark.parametrize("own", ["auto", "float32"])
def test_a_sweep_tries_precisions_on_a_gpu_alone(own):
    learner = {**LEARNER, "precision": own}
    tried = {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=True)}
    assert tried == {"auto", "float32"}
    assert {cell["precision"] for cell in sweep.plan(learner, {}, 2, gpu=False)} == {own}


def test_a_sweep_takes_the_values_asked_for():
    wanted = {"matches": [4, 8], "batch_size": [64, 70], "threads": [1]}
    assert settings_of(sweep.plan(LEARNER, wanted, 2, False)) == [(8, 64, 1), (4, 64, 1)]
    with pytest.raises(ConfigError, match="batch_size 70"):
        sweep.plan(LEARNER, {"batch_size": [70]}, 2, False)
    with pytest.raises(ConfigError, match="matches = 0"):
        sweep.plan(LEARNER, {"matches": [0]}, 2, False)


def test_the_fastest_is_recommended_and_of_equals_the_one_that_changes_least():
    def recommended(*speeds):
        return sweep.recommended([row(steps, changes) for steps, changes in speeds], OWN).changes

    wide, threads = {**OWN, "matches": 16}, {**OWN, "threads": 2}
    assert recommended((1000, OWN), (1100, wide), (1050, threads)) == wide
    assert recommended((1000, OWN), (1100, wide), (1090, threads)) == threads
    assert recommended((1090, OWN), (1100, wide), (1099, threads)) == OWN
    failed = Measured(failure="too large", changes=wide)
    assert sweep.recommended([failed], OWN) is None
    assert sweep.recommended([failed, row(10, OWN)], OWN).changes == OWN
