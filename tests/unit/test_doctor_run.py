"""The doctor on run folders that a real training wrote: a healthy one, and some that are ill on purpose."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sick
from stable_baselines3.common.callbacks import BaseCallback

from league.config import resolve
from league.config_file import write_config
from league.errors import NotFound
from learner.checkpoint import CheckpointFolder, algorithm_state
from learner.doctor.causes import primary_causes
from learner.doctor.checks_run import RUN_CHECKS
from learner.doctor.diagnosis import ordered
from learner.doctor.findings import Verdict
from learner.doctor.probe import build_model
from learner.doctor.run_evidence import read_run
from learner.monitor import MatchMonitor

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


def train(folder, *flags, **parts):
    """Trains for some updates with the main job's own parts, which write the files that they always write."""
    flags = ("game.match_seconds=3", *flags)
    set_up = replace(sick.set_up(*flags), **parts)
    learner = folder / "learner-main"
    model = build_model(set_up, set_up.settings, learner)
    monitor = MatchMonitor(learner, set_up.spec, 0)
    try:
        model.learn(UPDATES * model.n_envs * model.n_steps, callback=Write(monitor))
    finally:
        monitor.close()
        model.env.game.close()
    values = {"algorithm": algorithm_state(model), "curriculum": {"index": 0, "stage_start": 0}}
    CheckpointFolder(learner / "checkpoints").write(model.num_timesteps, values)
    write_config(folder / "config.toml", resolve("smoke", assignments=flags, environment={}))
    return folder


def findings(folder):
    evidence = read_run(folder)
    return ordered([check(evidence) for check in RUN_CHECKS])


def causes(folder):
    return [cause.finding.key for cause in primary_causes(findings(folder))]


def game(kind):
    return lambda matches: kind(matches, max_frames=90)


def test_a_run_that_trains_is_healthy(tmp_path):
    found = {finding.key: finding for finding in findings(train(tmp_path))}
    assert [(one.key, one.measured) for one in found.values() if one.verdict.is_bad] == []
    assert {key for key, one in found.items() if one.verdict is Verdict.OK} >= {
        "6",
        "9",
        "16",
        "18",
        "20",
        "V",
        "A",
    }


ILL = [
    ("18", "agent.key_bias=-10"),
    ("16", "learner.learning_rate=0.3"),
    ("20", "learner.clip_range=1e-7"),
    ("9", "game.reward_weights.toward_opponent=5000"),
]


@pytest.mark.parametrize(("key", "flag"), ILL, ids=[key for key, _ in ILL])
def test_what_a_setting_broke_shows_in_the_files(tmp_path, key, flag):
    extra = ["learner.learning_rate_final=0.3", "learner.desired_kl=none"] if key == "16" else []
    assert key in causes(train(tmp_path, flag, *extra))


def test_a_scale_that_never_settles_has_drifted(tmp_path):
    sick.Inflation.factor = 1.0
    assert "A" in causes(train(tmp_path, game=game(sick.Inflation)))


def test_a_folder_without_a_run_is_no_patient(tmp_path):
    with pytest.raises(NotFound, match=r"has no config\.toml"):
        read_run(tmp_path)
    write_config(tmp_path / "config.toml", resolve("smoke", environment={}))
    with pytest.raises(NotFound, match=r"has no learner-main yet"):
        read_run(tmp_path)
