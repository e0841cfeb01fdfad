"""Run folders that a short real training writes, and what the doctor makes of them."""

from __future__ import annotations

from dataclasses import replace

import sick
from stable_baselines3.common.callbacks import BaseCallback

from league.config import resolve
from league.config_file import write_config
from learner.checkpoint import CheckpointFolder, algorithm_state
from learner.doctor.causes import primary_causes
from learner.doctor.checks_run import RUN_CHECKS
from learner.doctor.diagnosis import ordered
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


def findings(folder, clean=()):
    evidence = read_run(folder, clean=clean)
    return ordered([check(evidence) for check in RUN_CHECKS])


def causes(folder, clean=()):
    """Every cause with its verdict, and what stands under it."""
    found = primary_causes(findings(folder, clean))
    return {
        cause.finding.key: (cause.finding.verdict.value, {one.key for one in cause.consequences})
        for cause in found
    }
