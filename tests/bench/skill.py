"""Measures how long `bin/start-league` and plain RecurrentPPO take to beat two bots.

    python tests/bench/skill.py FOLDER [--seeds 1 2 3 4 5] [--parts ours plain]
    python tests/bench/skill.py FOLDER --report
    python tests/bench/skill.py FOLDER --engine ray --cpus 16   # a seed on 16 cores of a cluster

"Ours" is the whole product with preset `laptop` on all cores, with matchmaker and evaluator. It
runs until the estimated win rate of the current learner is at least 90 % against `constant` and
70 % against `based`, or until the minutes are over. Each estimate needs at least 200 matches. After
that, the last snapshot plays 400 clean matches against each bot.

"Plain" is `sb3_contrib.RecurrentPPO` with its own LSTM policy of the same widths. It plays the same
batched game with the same number of matches, rewards, curriculum and settings, except for a
constant learning rate and 4 epochs of minibatches of 2,048 steps. Its rewards are scaled, and its
keys have the same initial bias as ours. It uses torch on all cores and no league, and trains for as
many seconds as ours did. Its stages end by the win rate in the last 200 training matches.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from on_nodes import run_seeds
from plain import plain_lstm
from practice import BotSource, clean_scores, clean_scores_by, load_network, practice_env

from league.contest.league import League
from league.errors import LeagueError
from league.games.registry import game_spec, reward_weights
from league.metrics import wilson_interval
from league.players import Book, PlayerKind
from league.stats.climb import win_rate_now
from learner.rollout.league_vec_env import LeagueVecEnv

GOALS = (("constant", 0.9), ("based", 0.7))
MATCHES, FRAME_SKIP, PAIRS, WINDOW = 256, 4, 200, 200
PPO: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 2048,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "gamma": 0.98,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.003,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}


def wins_of(scores: np.ndarray) -> list[int]:
    """Returns the numbers of wins, draws and losses."""
    return [int((scores == value).sum()) for value in (1.0, 0.5, 0.0)]


def ours(folder: Path, seed: int, minutes: float) -> dict[str, Any]:
    """Runs the product until both goals are reached."""
    run = folder / f"run-{seed}"
    command = [
        "bin/start-league",
        "--headless",
        "--run-dir",
        str(run),
        "--set",
        f"learner.seed={seed}",
    ]
    with (folder / f"run-{seed}.log").open("w") as log:
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=log, stderr=log)
    started = time.monotonic()
    try:
        reached = watched(run, process, 60 * minutes)
    finally:
        seconds = time.monotonic() - started
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    return {"reached": reached, "seconds": seconds, "clean": judged(run)}


def watched(
    run: Path, process: subprocess.Popen[bytes], most_seconds: float
) -> dict[str, dict[str, Any]]:
    """Watches a run until all goals are reached or the time is over. Returns when each goal was
    reached.
    """
    started, started_at = time.monotonic(), time.time()
    reached: dict[str, dict[str, Any]] = {}
    while (
        process.poll() is None
        and len(reached) <= len(GOALS)
        and time.monotonic() - started < most_seconds
    ):
        time.sleep(1.0)
        step, rates = win_rates(run)
        met = [bot for bot, goal in GOALS if rates.get(bot, 0.0) >= goal]
        for goal in [*met, *(["both"] if len(met) == len(GOALS) else [])]:
            found = {"seconds": time.time() - started_at, "step": step, "shares": rates}
            reached.setdefault(goal, found)
    return reached


def win_rates(run: Path) -> tuple[int, dict[str, float]]:
    """Returns the learner's step, and its estimated win rate against both bots at this step."""
    try:
        with League(run_dir=run).connect() as client:
            (step,) = (one.step for one in client.status().workers if one.player == "main")
            bots = [bot for bot, _ in GOALS]
            clean = client.payoff(columns=bots)
            training = client.payoff(Book.TRAIN, columns=bots, climb=True)
    except (LeagueError, ValueError):
        return 0, {}  # it has only just been started
    rates = {}
    for bot in bots:
        of_bot = ([cell for cell in cells if cell.column == bot] for cells in (clean, training))
        found = win_rate_now("main", *of_bot, step, least=WINDOW)
        if found is not None and found.matches >= WINDOW:
            rates[bot] = found.estimate
    return step, rates


def judged(
    run: Path, bots: Sequence[str] = tuple(bot for bot, _ in GOALS), pairs: int = PAIRS
) -> dict[str, list[int]]:
    """Plays clean matches of a run's last snapshot. Returns the counts of `wins_of` by bot."""
    with League(run_dir=run).connect() as client:
        last = max(client.players(kinds=[PlayerKind.SNAPSHOT]), key=lambda player: player.step)
    network = load_network(run, last.digest)
    return {
        bot: wins_of(clean_scores(network, bot, pairs=pairs, frame_skip=FRAME_SKIP)) for bot in bots
    }


class Curriculum(BaseCallback):
    """Runs the stages of `laptop` by the results of training matches, and ends the training by the
    clock.
    """

    def __init__(self, env: Any, source: BotSource, seconds: float) -> None:
        super().__init__()
        self.league, self.source, self.limit = env, source, time.monotonic() + seconds
        self.stage, self.reached = 0, {}

    def _on_step(self) -> bool:
        return time.monotonic() < self.limit

    def _on_rollout_end(self) -> None:
        if (
            self.stage < len(GOALS)
            and self.source.win_rate(GOALS[self.stage][0], WINDOW) >= GOALS[self.stage][1]
        ):
            self.reached[GOALS[self.stage][0]] = self.num_timesteps
            self.stage += 1
            self.source.mix = {"based": 7.0, "constant": 3.0}
            self.league.reward_weights_K = reward_weights(game_spec("brawl"), "duel", {})


def plain_model(league: LeagueVecEnv, seed: int) -> RecurrentPPO:
    """Makes a RecurrentPPO with scaled rewards."""
    scaled = VecNormalize(league, norm_obs=False, gamma=PPO["gamma"], clip_reward=1e9)
    return plain_lstm(scaled, memory=128, widths=[64, 64], key_bias=-1.5, seed=seed, **PPO)


def plain(seed: int, seconds: float) -> dict[str, Any]:
    """Trains a RecurrentPPO for `seconds`, and plays its clean matches."""
    torch.set_num_threads(os.cpu_count() or 1)
    source = BotSource({"constant": 1.0}, seed)
    league = practice_env(source, MATCHES, frame_skip=FRAME_SKIP, reward="laptop")
    model = plain_model(league, seed)
    curriculum = Curriculum(league, source, seconds)
    model.learn(10**9, callback=curriculum)
    clean = {
        bot: wins_of(clean_scores_by(model.predict, bot, pairs=PAIRS, frame_skip=FRAME_SKIP))
        for bot, _ in GOALS
    }
    return {"reached": curriculum.reached, "steps": model.num_timesteps, "clean": clean}


def shown(counts: list[int]) -> str:
    wins, matches = counts[0], sum(counts)
    interval = wilson_interval(wins, matches)
    return f"{wins / matches:.1%} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def report(folder: Path) -> None:
    """Prints the table in Markdown."""
    print(
        "| seed | constant 90 % | based 70 % | both at once | then clean: constant | based | "
        "plain, equal seconds: steps | constant | based |\n|---|---|---|---|---|---|---|---|---|"
    )
    for path in sorted(folder.glob("seed-*.json")):
        found = json.loads(path.read_text())
        cells = [str(found["seed"])]
        for stage in (*(bot for bot, _ in GOALS), "both"):
            goal = found["ours"]["reached"].get(stage)
            cells.append(
                f"{goal['seconds']:.0f} s, step {goal['step']:,}" if goal else "not in time"
            )
        cells += [shown(found["ours"]["clean"][bot]) for bot, _ in GOALS]
        if "plain" in found:
            cells.append(f"{found['plain']['steps']:,}")
            cells += [shown(found["plain"]["clean"][bot]) for bot, _ in GOALS]
        else:
            cells += ["", "", ""]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--parts", nargs="+", choices=("ours", "plain"), default=["ours", "plain"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--cpus", type=int, default=os.cpu_count(), help="with ray: of a seed")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.engine == "ray":
        run_seeds(folder, [__file__, *sys.argv[1:]], "--seeds", options.seeds, options.cpus)
    for seed in [] if options.report else options.seeds:
        out = folder / f"seed-{seed}.json"
        found = json.loads(out.read_text()) if out.exists() else {"seed": seed}
        for part in options.parts:
            if part in found:
                continue
            found[part] = (
                ours(folder, seed, options.minutes)
                if part == "ours"
                else plain(seed, found["ours"]["seconds"])
            )
            print(f"seed {seed}: {part} {found[part]}", flush=True)
            out.write_text(json.dumps(found))
    report(folder)


if __name__ == "__main__":
    main()
