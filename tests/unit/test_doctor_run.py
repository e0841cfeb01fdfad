"""The doctor on the run folder of a healthy training, unchanged and changed as illness would."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sick
import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.network import AgentNetwork
from league.cli.main import main
from league.errors import NotFound
from league.games.registry import game_spec, reward_weights
from league.runs.alarms import Alarm
from league.runs.columns import EVALUATION
from league.runs.finding import FORMAT
from league.runs.folder import write_config
from league.runs.records import Series
from league.settings.base import resolve
from learner.doctor.findings import REASONS, SYSTEMS, judged, ordered, primary_causes
from learner.doctor.run import judge_run, read_run
from learner.doctor.setup import build_model
from learner.train.checkpoint import CheckpointFolder, algorithm_state
from learner.train.monitor import MatchMonitor

UPDATES = 32


class Write(BaseCallback):
    """What the session does with the matches of a rollout."""

    def __init__(self, monitor):
        super().__init__()
        self.monitor = monitor

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        env = self.model.env
        matches, env.finished = env.finished, []
        self.monitor.write(matches, self.num_timesteps)


def train(folder, *flags):
    """Trains for some updates with the main job's own parts, which write the files that they
    always write.
    """
    flags = ("game.match_seconds=3", *flags)
    set_up = sick.set_up(*flags)
    learner = folder / "learner-main"
    model = build_model(set_up, set_up.settings, learner)
    monitor = MatchMonitor(learner, set_up.spec, 0)
    try:
        model.learn(UPDATES * model.n_envs * model.n_steps, callback=Write(monitor))
    finally:
        monitor.close()
        model.env.game.close()
    values = {"algorithm": algorithm_state(model), "curriculum": {"index": 0, "since_step": 0}}
    CheckpointFolder(learner / "checkpoints").write(model.num_timesteps, values)
    write_config(folder / "config.toml", resolve("smoke", assignments=flags, environment={}))
    (folder / "run.json").write_text(
        json.dumps({"format": FORMAT, "version": "0.1.0", "preset": "smoke"})
    )
    return folder


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """In three seconds no player hits twice in a row: a weight of `combo` would be warned of."""
    return train(tmp_path_factory.mktemp("runs") / "healthy", "game.reward_weights.combo=0")


@pytest.fixture(scope="module")
def evidence(healthy):
    return read_run(healthy)


@pytest.fixture
def run(healthy, tmp_path):
    """A copy of the healthy run, to be changed."""
    return shutil.copytree(healthy, tmp_path / "run")


def causes(evidence):
    """Every cause with its verdict, and what stands under it."""
    found = primary_causes(ordered(judge_run(evidence)))
    return {
        cause.finding.key: (cause.finding.verdict.value, {one.key for one in cause.consequences})
        for cause in found
    }


def with_values(evidence, **changes):
    """The evidence with some scalars changed; `policy__entropy` is policy/entropy."""
    changed = {}
    for name, change in changes.items():
        series = evidence.scalars[name.replace("__", "/")]
        values = np.broadcast_to(change(series.values.copy()), series.values.shape)
        changed[name.replace("__", "/")] = Series(series.steps, values)
    return replace(evidence, scalars={**evidence.scalars, **changed})


def from_update(number, factor, first=None):
    """Multiplies from an update (counted from 0) on; `first` replaces the values before it."""

    def change(values):
        before = values if first is None else first
        return np.where(np.arange(len(values)) < number, before, factor * values)

    return change


@pytest.mark.parametrize(
    ("key", "verdict", "changes"),
    [
        ("18", "warning", {"policy__entropy": lambda v: np.geomspace(v[0], 0.3, len(v))}),
        ("E", "warning", {"policy__entropy": from_update(20, 0.4)}),
        ("V", "warning", {"value__explained_variance": lambda v: np.where(v == v[0], 0.6, 0.01)}),
        ("A", "failure", {"reward__scale": from_update(20, 20.0)}),
        ("A", "warning", {"reward__scale": from_update(20, 5.0)}),
        ("16", "failure", {"policy__approx_kl": lambda v: 0.3}),
        ("16", "failure", {"policy__approx_kl": lambda v: 0.0}),
        ("16", "failure", {"policy__approx_kl": from_update(28, 1e5)}),
    ],
)
def test_what_the_scalars_say_is_named_alone(evidence, key, verdict, changes):
    assert causes(evidence) == {}
    assert causes(with_values(evidence, **changes)) == {key: (verdict, set())}


KL, ENTROPY = "policy__approx_kl", "policy__entropy"


@pytest.mark.parametrize(
    ("changes", "cause", "follows"),
    [
        # the first update broke the policy, as a learning rate of 0.1 does
        (
            {KL: from_update(1, 0.0, first=226.0), ENTROPY: from_update(1, 0.0, first=1.1)},
            "16",
            "E 18",
        ),
        ({KL: from_update(1, 1.0, first=226.0), ENTROPY: lambda v: 0.0 * v}, "16", "18"),
        ({KL: from_update(20, 1e6), ENTROPY: from_update(20, 0.1)}, "16", "E 18"),
        # the entropy had fallen before the update
        (
            {KL: from_update(28, 1e6), ENTROPY: lambda v: np.geomspace(v[0], 0.001, len(v))},
            "18",
            "16",
        ),
        ({ENTROPY: from_update(20, 0.1)}, "E", "18"),
    ],
)
def test_the_first_to_break_is_the_cause_of_what_came_later(evidence, changes, cause, follows):
    found = causes(with_values(evidence, **changes))
    assert found == {cause: ("failure", set(follows.split()))}


def test_what_the_newest_weights_show_follows_from_the_update_that_broke_them(evidence):
    broken = with_values(evidence, **{KL: from_update(1, 0.0, first=5.3)})
    probed = [
        judged(key, "by the probe", failure=True, fix="", since=since)
        for key, since in (("11", UPDATES), ("18", UPDATES), ("12", UPDATES), ("17", 0))
    ]
    found = {
        cause.finding.key: {one.key for one in cause.consequences}
        for cause in primary_causes(ordered([*judge_run(broken), *probed]))
    }
    assert found == {"17": {"16", "11", "12", "18"}}  # a setting was wrong before the first update
    without = ordered([*judge_run(broken), *probed[:-1]])
    assert [cause.finding.key for cause in primary_causes(without)] == ["16"]


@pytest.mark.parametrize(("update", "words"), [(0, "start a new run"), (28, "--from")])
def test_a_broken_run_starts_anew_or_from_a_snapshot_of_before(evidence, update, words):
    few = replace(evidence, set_up=sick.set_up("learner.snapshot_interval=2000"))
    broken = with_values(few, **{KL: lambda v: np.where(np.arange(len(v)) == update, 9.0, v)})
    (finding,) = [one for one in judge_run(broken) if one.key == "16"]
    assert "lower learner.learning_rate" in finding.fix
    assert words in finding.fix


@pytest.mark.parametrize(
    ("key", "verdict", "alarm"),
    [
        ("18", "failure", Alarm("entropy_collapse", "", 0.02)),
        ("V", "failure", Alarm("value_unexplained", "", -0.4)),
        ("16", "warning", Alarm("kl_too_high", "", 0.05)),
        ("9", "warning", Alarm("term_silent", "combo", 600.0)),
        ("9", "warning", Alarm("term_dominates", "damage", 0.9)),
        ("9", "failure", Alarm("term_dominates", "damage", 0.97)),
        ("C", "warning", Alarm("clipped", "left/3/0/1", 300.0)),
        ("W", "warning", Alarm("never_won", "based", 300.0)),
        ("W", "warning", Alarm("always_won", "", 500.0)),
    ],
)
def test_what_the_alarms_say_is_named_alone(evidence, key, verdict, alarm):
    ill = replace(evidence, alarms=[alarm])
    assert causes(ill) == {key: (verdict, set())}
    (finding,) = [one for one in judge_run(ill) if one.key == key]
    assert all(part in finding.measured for part in alarm.subject.split("/"))
    assert finding.fix


def test_lost_matches_stand_under_the_entropy_that_made_them(evidence):
    alarms = [Alarm("never_won", "based", 300.0), Alarm("entropy_collapse", "", 0.02)]
    assert causes(replace(evidence, alarms=alarms)) == {"18": ("failure", {"W"})}


def test_one_minibatch_an_update_is_no_stuck_policy(evidence):
    """Its KL is measured before the only step, and 0."""
    one_step = sick.set_up("learner.batch_size=256", "learner.n_epochs=1")
    still = with_values(evidence, policy__approx_kl=lambda values: 0.0)
    assert causes(replace(still, set_up=one_step)) == {}


def test_a_run_of_too_few_updates_is_not_judged(evidence):
    few = {
        name: Series(*(part[:5] for part in series)) for name, series in evidence.scalars.items()
    }
    found = {one.key: one.verdict.value for one in judge_run(replace(evidence, scalars=few))}
    assert found == {"9": "ok", "C": "ok", "W": "ok", "A": "unknown", "E": "unknown"}
    broken = with_values(replace(evidence, scalars=few), **{KL: from_update(1, 1.0, first=226.0)})
    assert causes(broken) == {"16": ("failure", set())}  # this shows at once


def change_rows(path, change, times=1):
    """Changes every row of a CSV with a dictionary of its fields; writes each `times` times."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerows([row | change(row)] * times)


def test_alarms_and_what_falls_in_a_run_are_read_from_its_files(run):
    learner = run / "learner-main"
    change_rows(learner / "behavior_metrics.csv", lambda row: {"score": 0.0}, times=4)
    change_rows(learner / "reward_breakdown.csv", lambda row: {"damage": 1e6})
    config = resolve("smoke", assignments=["learner.learning_rate=0.5"], environment={})
    write_config(run / "config.toml", config)
    evidence = read_run(run)
    assert causes(evidence) == {"9": ("failure", set()), "W": ("warning", set())}
    now = evidence.set_up.settings.learner
    assert now.learning_rate == pytest.approx(evidence.scalars["learning/rate"].values[-1])
    assert now.learning_rate < 0.1
    assert now.learning_rate_final is None


def test_training_that_flatters_is_told_by_clean_matches(run):
    change_rows(run / "learner-main" / "monitor.csv", lambda row: {"score": 1.0})
    table = run / "evaluator" / "evaluation_results.csv"
    table.parent.mkdir()
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, EVALUATION, restval="0")
        writer.writeheader()
        row = {"opponent": "constant", "book": "eval", "matches": 100}
        writer.writerow({**row, "player": "main@4000", "step": 4000, "wins": 0})
        writer.writerow({**row, "player": "main@5000", "step": 5000, "wins": 30, "draws": 20})
        writer.writerow({**row, "player": "other@9000", "step": 9000, "wins": 0})
        writer.writerow({**row, "player": "main@5000", "step": 5000, "book": "greedy"})
    (finding,) = [one for one in judge_run(read_run(run)) if one.key == "14"]
    assert finding.verdict == "warning"
    assert "60% (constant)" in finding.measured


def test_a_folder_without_a_run_is_no_patient(tmp_path):
    with pytest.raises(NotFound, match=r"config\.toml"):
        read_run(tmp_path)
    write_config(tmp_path / "config.toml", resolve("smoke", environment={}))
    with pytest.raises(NotFound, match="learner-main"):
        read_run(tmp_path)


def test_an_exploiter_is_examined_by_its_own_settings_and_its_newest_generation(run):
    """It plays one stage for another reward, and starts again in a folder for each
    generation.
    """
    own = '["learner.gamma=0.9", "game.reward=duel"]'
    learners = f'[{{name="main"}},{{name="rival",role="main_exploiter",set={own}}}]'
    flags = (f"supervisor.learners={learners}", "exploiter.mix=victims")
    sections = resolve(
        "smoke", assignments=(*flags, "matchmaker.mixes.victims.victims=1"), environment={}
    )
    write_config(run / "config.toml", sections)
    rival = (run / "learner-main").rename(run / "learner-rival")
    for number, step in (("9", 7000), ("10", 8192)):
        place = shutil.copytree(
            rival / "checkpoints", rival / f"generation-{number}" / "checkpoints"
        )
        folder = CheckpointFolder(place)
        saved = folder.read_newest()
        saved["algorithm"]["num_timesteps"] = step
        folder.write(8192, saved)
    shutil.rmtree(rival / "checkpoints")
    evidence = read_run(run, "rival")
    assert evidence.step == 8192
    assert evidence.set_up.settings.learner.gamma == 0.9
    assert evidence.set_up.mix == {"victims": 1.0}
    duel = reward_weights(game_spec("brawl"), "duel")
    assert evidence.set_up.weights_K.tolist() == duel.tolist()
    agent = evidence.set_up.agent
    trained, fresh = evidence.set_up.network(agent), AgentNetwork(agent)
    assert not torch.equal(trained.actor.last.bias, fresh.actor.last.bias)


def examine(run, out):
    """Exit status, everything that `--json` holds, and what is bad: by reason its measure."""
    status = main(["doctor", "--run-dir", str(run), "--json", str(out)])
    told = json.loads(out.read_text(encoding="utf-8"))
    bad = {
        one["reason"]: one["measured"]
        for one in told["findings"]
        if one["verdict"] in ("warning", "failure")
    }
    return status, told, bad


def test_a_run_that_trains_is_healthy_by_its_files_and_its_weights(healthy, tmp_path, capsys):
    status, told, bad = examine(healthy, tmp_path / "told.json")
    assert (status, bad, told["causes"]) == (0, {}, [])
    assert told["subject"] == f"{healthy.name} at step {UPDATES * 256:,}"
    assert told["systems"] == {name: "ok" for name in SYSTEMS if name != "game"}
    measured = {one["reason"]: one["measured"] for one in told["findings"]}
    assert measured.keys() == {*map(str, range(1, 21)), *"BCOVAWE"}
    assert measured["18"].startswith("entropy ")  # by its curve, where the probe says the same
    lines = capsys.readouterr().out.splitlines()
    assert "healthy" in lines[0]
    assert all(REASONS[key].title in lines[2 + n] for n, key in enumerate(measured))


def test_without_flags_the_newest_run_is_examined(healthy, tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    shutil.copytree(healthy, tmp_path / "runs" / "smoke-7")
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--json", "told.json"]) == 0
    told = json.loads(Path("told.json").read_text(encoding="utf-8"))
    assert told["subject"].startswith("smoke-7 at step ")


def test_a_run_of_too_few_updates_is_not_called_healthy(healthy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("learner.doctor.run.FEWEST_UPDATES", UPDATES + 1)
    status, told, bad = examine(healthy, tmp_path / "told.json")
    assert (status, bad, told["verdict"]) == (0, {}, "unknown")
    lines = capsys.readouterr().out.splitlines()
    assert "healthy" not in lines[0].removeprefix(healthy.name)
    assert f"of at least {UPDATES + 1} updates" in lines[0]
    assert lines[-1] == lines[0]


def test_what_its_weights_alone_show_fails_beside_healthy_files(run, tmp_path):
    folder = CheckpointFolder(run / "learner-main" / "checkpoints")
    saved = folder.read_newest()
    saved["algorithm"]["network"]["actor.last.bias"] -= 12.0
    folder.write(saved["algorithm"]["num_timesteps"], saved)
    status, told, bad = examine(run, tmp_path / "told.json")
    assert status == 1
    assert [cause["reason"] for cause in told["causes"]] == ["18"]
    assert bad["18"].startswith("0% of ")


FAST = ("learner.learning_rate=0.3", "learner.learning_rate_final=0.3", "learner.desired_kl=none")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "flags"),
    [
        ("9", ["game.reward_weights.toward_opponent=5000"]),
        ("16", FAST),
        ("18", ["agent.key_bias=-10"]),
    ],
)
def test_what_was_trained_ill_shows_in_its_files(tmp_path, key, flags):
    found = causes(read_run(train(tmp_path, *flags)))
    assert next(iter(found)) == key, found
    assert [one for one, (verdict, _) in found.items() if verdict == "failure"] == [key]
