"""Measures how a learner's speed grows with its game workers.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/game_workers.py [--step sleeps computes]

The game is leduc with an artificial step of 5 ms for each match. It either sleeps, as if the match
ran on a core of another machine, or computes. The learner is that of preset `board`, and plays its
matches in 0 (itself), 1, 2 and 4 workers of this machine, in turns. Rates are decisions per second:
of the workers, while the learner waits for them, of the rollouts, and of rollouts and updates. The
share of the linear rate compares the workers with a single worker, times their number, but at most
the cores where the step computes. The last figure is the share of the rollouts in which the learner
waits for the game. The rest bounds what could be gained if the learner decided for some matches
while others step.

With `--game NAME` another game is measured, such as
`--game pettingzoo:pettingzoo.classic.connect_four_v3`. With `--quickest NAME` the script only
measures the quickest of 60 steps of 128 matches, without a learner.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

import numpy as np
import torch

from league.agent.config import AgentConfig
from league.games.settings import GameSettings
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.rollout.mix_source import MixSource
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.join import live_player

WORKERS = (0, 1, 2, 4)
MIX = {"self": 0.8, "random": 0.2}


class Training:
    """Trains a learner without a league."""

    def __init__(self, settings: tuple[str, ...], folder: Path) -> None:
        sections = SessionSettings.of(resolve("board", None, settings, environment={}))
        self.game = make_game(sections)
        live, device = live_player("main", self.game), torch.device("cpu")
        source = MixSource(MIX, self.game.spec, live, [], 0)
        blobs, stage = BlobFolder(folder / "blobs"), sections.curriculum.stages[-1]
        self.env = make_env(sections, self.game, source, blobs, stage, device, live)
        config = AgentConfig.of(sections.agent, self.game.spec)
        self.model = make_model(sections, config, self.env, folder, device, lambda: False)
        _, self._callback = self.model._setup_learn(sections.learner.steps, None)

    def turn(self, seconds: float) -> tuple[float, ...]:
        """Makes whole updates for about `seconds`. Returns the decisions per second of the game, of
        rollouts, and of rollouts and updates.
        """
        model, env = self.model, self.env
        began, waited, decisions, rolled = time.perf_counter(), env.game_seconds, 0, 0.0
        while (now := time.perf_counter()) - began < seconds:
            model.collect_rollouts(env, self._callback, None, model.n_steps)
            rolled += time.perf_counter() - now
            env.finished = []
            model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
            model.train()
            decisions += model.n_steps * env.num_envs
        took = time.perf_counter() - began
        return tuple(decisions / span for span in (env.game_seconds - waited, rolled, took))


def show_quickest(name: str, workers: Sequence[int]) -> None:
    """Prints the time of the quickest step of a game in this process and in workers."""
    settings = [
        resolve("board", None, (f"game.workers={number}",), environment={}).of(GameSettings)
        for number in workers
    ]
    games = [one.model_copy(update={"name": name}).make(128, training=True) for one in settings]
    times: list[list[float]] = [[] for _ in games]
    for game in games:
        game.reset(np.arange(128, dtype=np.uint64))
    for _ in range(60):
        for game, found in zip(games, times, strict=True):
            actions_N2A, began = game.idle_actions(), time.perf_counter()
            game.step(actions_N2A)
            found.append(time.perf_counter() - began)
    for number, found in zip(workers, times, strict=True):
        print(f"{name}, {number} workers: {1e3 * min(found):.2f} ms", flush=True)
    for game in games:
        game.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--step", nargs="+", default=["sleeps", "computes"])
    parser.add_argument("--game", help="measure this game instead")
    parser.add_argument("--quickest", metavar="NAME", help="measure only steps of this game")
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--set", nargs="*", default=[], help="further settings")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quickest:
        show_quickest(options.quickest, options.workers)
        return
    os.environ["KUMITE_PATH"] = str(Path(__file__).parent)  # has slow_games.py
    small = ("learner.n_steps=16", "learner.batch_size=512")
    for step in [""] if options.game else options.step:
        name = options.game or f"python:slow_games:{step}"
        with tempfile.TemporaryDirectory() as folder:
            own = options.set if options.game else (*small, *options.set)
            trainings = {
                workers: Training(
                    (f"game.name={name}", f"game.workers={workers}", *own), Path(folder)
                )
                for workers in options.workers
            }
            turns: dict[int, list[tuple[float, ...]]] = {n: [] for n in trainings}
            for number in range(options.rounds + 1):
                for workers, training in trainings.items():
                    found = training.turn(options.seconds if number else 0.1)
                    if number:
                        turns[workers].append(found)
            for training in trainings.values():
                training.game.close()
        print(name, f"on {len(os.sched_getaffinity(0))} cores")
        medians = {
            n: [statistics.median(column) for column in zip(*rows, strict=True)]
            for n, rows in turns.items()
        }
        for workers, (rate, rollouts, whole) in medians.items():
            most = workers if step == "sleeps" else min(workers, len(os.sched_getaffinity(0)))
            linear = medians[1][0] * most if 1 in medians else 0.0
            share = f", {rate / linear:.0%} of linear" if workers and linear else ""
            spread = " ".join(f"{rate:,.0f}" for rate, *_ in turns[workers])
            print(
                f"{workers} workers: {rate:,.0f}/s of the game ({spread}){share}, "
                f"{rollouts:,.0f}/s of rollouts, {whole:,.0f}/s with updates, "
                f"waits {rollouts / rate:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
