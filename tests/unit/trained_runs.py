"""Run folders that a short real training writes, and what the doctor makes of them."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import sick
from stable_baselines3.common.callbacks import BaseCallback
from torch.utils.tensorboard import SummaryWriter

from league.players import Book, MatchResult, Pairing, Player, PlayerKind, Role, SeatResult
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.runs.records import read_scalars
from league.settings.base import resolve
from league.settings.file import write_config
from learner.doctor.findings import ordered, primary_causes
from learner.doctor.run import judge_run, read_run
from learner.doctor.setup import build_model
from learner.train.checkpoint import CheckpointFolder, algorithm_state
from learner.train.monitor import MatchMonitor
from matchmaker.main import MatchmakerServer

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
    """Trains for some updates with the main job's own parts, which write the files that they
    always write.
    """
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
    values = {"algorithm": algorithm_state(model), "curriculum": {"index": 0, "since_step": 0}}
    CheckpointFolder(learner / "checkpoints").write(model.num_timesteps, values)
    write_config(folder / "config.toml", resolve("smoke", assignments=flags, environment={}))
    return folder


def findings(folder, clean=()):
    return ordered(judge_run(read_run(folder, clean=clean)))


def causes(folder, clean=()):
    """Every cause with its verdict, and what stands under it."""
    found = primary_causes(findings(folder, clean))
    return {
        cause.finding.key: (cause.finding.verdict.value, {one.key for one in cause.consequences})
        for cause in found
    }


def rewrite(folder, **changes: Callable[[np.ndarray], np.ndarray]):
    """Writes the scalars again, some of them changed; `policy__entropy` is policy/entropy."""
    tensorboard = folder / "learner-main" / "tensorboard"
    scalars = read_scalars(tensorboard)
    shutil.rmtree(tensorboard)
    changed = {name.replace("__", "/"): change for name, change in changes.items()}
    assert set(changed) <= set(scalars)
    with SummaryWriter(str(tensorboard)) as writer:
        for name, series in scalars.items():
            values = changed.get(name, lambda values: values)(series.values.copy())
            for step, value in zip(series.steps, values, strict=True):
                writer.add_scalar(name, float(value), int(step))


def change_rows(path, change, times=1):
    """Changes every row of a CSV with a dictionary of its fields; writes each `times` times."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    head = [line for line in lines if line.startswith("#")]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(head)
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        for row in rows:
            writer.writerows([row | change(row)] * times)


def all_score(folder, score, times=1):
    """Every match ends alike, and is paid for it as a win or a loss is."""
    for name in ("monitor.csv", "behavior_metrics.csv"):
        change_rows(folder / "learner-main" / name, lambda row: {"score": score}, times)
    paid = 20.0 * (score - 0.5)
    change_rows(folder / "learner-main" / "reward_breakdown.csv", lambda row: {"win": paid})
    rewrite(folder, reward__largest=lambda values: np.maximum(values, 10.0))


def write_league(folder, wins):
    """The log of a league in which the run's snapshot has played 40 clean matches against
    `constant`.
    """
    (folder / "run.json").write_text(
        json.dumps({"format": FORMAT, "version": "0.1.0", "preset": "smoke"})
    )
    snapshot = Player(
        name="main@8192",
        game="brawl",
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        digest="0" * 64,
        step=8192,
    )
    bot = Player(name="constant", game="brawl", kind=PlayerKind.BOT)
    pairing = Pairing(player=snapshot.name, opponent=bot.name, pairs=20, book=Book.EVAL, seed=1)
    with (
        MatchmakerServer(db=folder / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.register_players([snapshot, bot])
        number = client.open_incarnation("evaluator-0").number
        matches = client.acquire_pairings(number, [pairing])
        client.report_results(number, [_result(match, n < wins) for n, match in enumerate(matches)])
    return folder


def _result(match, is_won):
    """A clean match that the snapshot won or lost, whichever its seat."""
    seats = tuple(SeatResult(player=player.name, digest=player.digest) for player in match.seats)
    first = match.seats[0].kind is PlayerKind.SNAPSHOT
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome=float(is_won == first),
        frames=90,
        seats=seats,
    )
