"""Whether fast means different: learning curves of ours and of plain sb3-contrib, seed by seed.

    OMP_NUM_THREADS=1 python tests/bench/overlap.py FOLDER [--steps 300000] [--seeds 1 2 3] [--jobs
    2]
        [--kinds ours slow detached plain]      # trains what FOLDER has no result of yet
    python tests/bench/overlap.py FOLDER --report [--plot overlap.png]

All learn brawl from matches against `constant`, as the preset `laptop` begins: size tiny, 128
matches, the same settings of PPO with a fixed step size, the same initial key bias, rewards divided
by the running deviation of the return on all sides.
    ours      `LeaguePPO`, streaming encoder slow      `sb3_contrib.RecurrentPPO` (its rollouts,
    buffer, minibatches, updates) that trains the same
              network, windowed: what is left between the two is how it is computed
    detached  as slow, but the critic's gradient ends at its head, as with sb3-contrib's shared LSTM
    plain     `RecurrentPPO` with its own LSTM and heads behind the windowed encoder, as users would
    build it
Curves are shares of wins and mean rewards of the training matches that ended in each tenth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
from plain import Windows, plain_agent, plain_windowed
from practice import BotSource, practice_env

from league.agent.config import SIZES, AgentConfig
from learner.ppo.league_ppo import LeaguePPO
from learner.settings import LearnerSettings

MATCHES, TENTHS = 128, 10
KINDS = {
    "ours": ("LeaguePPO", "#1f4e8c"),
    "slow": ("sb3-contrib, the same network", "#3a9d6e"),
    "detached": ("the same, critic detached", "#8a6fb0"),
    "plain": ("sb3-contrib, its own network", "#d1862c"),
}
PPO: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 1024,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "gamma": 0.98,
    "gae_lambda": 0.95,
    "clip_range": 0.2,
    "ent_coef": 0.003,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
OURS = {name: value for name, value in PPO.items() if name in LearnerSettings.model_fields}
CONFIG = {
    **SIZES["tiny"],
    "observation_size": 64,
    "own_size": 32,
    "action_size": 10,
    "sequence_length": 17,
}


class Finished(BaseCallback):
    """Wins and rewards of the matches that ended, with the step at which they did."""

    def __init__(self, env: Any) -> None:
        super().__init__()
        self.league, self.rows = env, []

    def _on_step(self) -> bool:
        self.rows += [
            (self.num_timesteps, match.score == 1.0, match.reward) for match in self.league.finished
        ]
        self.league.finished = []
        return True


def learn(kind: str, seed: int, steps: int) -> dict[str, Any]:
    """One training; its curve by tenths of the steps."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    league = practice_env(
        BotSource({"constant": 1.0}, seed), MATCHES, frame_skip=4, reward="laptop"
    )
    finished = Finished(league)
    if kind == "ours":
        agent = AgentConfig(**CONFIG)
        model: Any = LeaguePPO(
            "LeaguePolicy",
            league,
            LearnerSettings(matches=league.num_envs, seed=seed, **OURS),
            device="cpu",
            policy_kwargs={"agent": agent},
        )
    else:
        agent = AgentConfig(encoder="window", **CONFIG)
        scaled = VecNormalize(
            Windows(league, agent), norm_obs=False, gamma=PPO["gamma"], clip_reward=1e9
        )
        if kind in ("slow", "detached"):
            model = plain_agent(scaled, agent, detached=kind == "detached", seed=seed, **PPO)
        else:
            model = plain_windowed(scaled, agent, key_bias=agent.key_bias, seed=seed, **PPO)
    started = time.perf_counter()
    model.learn(steps, callback=finished)
    seconds = time.perf_counter() - started
    at = np.minimum([int(TENTHS * step / (steps + 1)) for step, _, _ in finished.rows], TENTHS - 1)
    wins, rewards = (np.array([row[column] for row in finished.rows], float) for column in (1, 2))
    curve = {
        name: [
            float(values[at == tenth].mean()) if (at == tenth).any() else None
            for tenth in range(TENTHS)
        ]
        for name, values in (("wins", wins), ("reward", rewards))
    }
    return {"kind": kind, "seed": seed, "seconds": seconds, "matches": len(wins), **curve}


def work(folder: Path, kind: str, seed: int, steps: int) -> None:
    out = folder / f"{kind}-{seed}-{steps}.json"
    if not out.exists():
        result = learn(kind, seed, steps)
        out.write_text(json.dumps(result))
        wins = [share for share in result["wins"] if share is not None]
        print(
            f"{kind} seed {seed}: {result['seconds']:,.0f} s, wins at the end {wins[-1:]}",
            flush=True,
        )


def report(folder: Path, steps: int) -> None:
    """Prints mean and range over the seeds, tenth by tenth, and the mean over each curve."""
    runs = {
        kind: [
            json.loads(path.read_text()) for path in sorted(folder.glob(f"{kind}-*-{steps}.json"))
        ]
        for kind in KINDS
    }
    runs = {kind: some for kind, some in runs.items() if some}
    heads = [f"{name}: {kind}" for name in ("wins", "reward") for kind in runs]
    print(f"| steps | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for tenth in range(TENTHS):
        cells = [f"{int(steps * (tenth + 1) / TENTHS):,}"]
        for name, form in (("wins", "{:.0%}"), ("reward", "{:.1f}")):
            for kind in runs:
                values = [run[name][tenth] for run in runs[kind] if run[name][tenth] is not None]
                if not values:
                    cells.append("no match has ended")
                    continue
                low, high = form.format(min(values)), form.format(max(values))
                cells.append(f"{form.format(statistics.mean(values))} [{low}, {high}]")
        print(f"| {' | '.join(cells)} |")
    for kind, some in runs.items():
        over = [
            statistics.mean(share for share in run["wins"] if share is not None) for run in some
        ]
        deviation = statistics.stdev(over) if len(over) > 1 else float("nan")
        speed = statistics.median(steps / run["seconds"] for run in some)
        print(
            f"{kind}: {len(some)} trainings, wins over the curve {statistics.mean(over):.1%} "
            f"(deviation between seeds {deviation:.1%}), {speed:,.0f} steps/s"
        )


def plot(folder: Path, steps: int, out: Path) -> None:
    """Every training as a line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    middles = [steps * (tenth + 0.5) / TENTHS / 1000 for tenth in range(TENTHS)]
    for kind, (name, colour) in KINDS.items():
        for number, path in enumerate(sorted(folder.glob(f"{kind}-*-{steps}.json"))):
            run = json.loads(path.read_text())
            # None: NaN
            shares, rewards = (np.array(run[column], float) for column in ("wins", "reward"))
            axes[0].plot(middles, 100 * shares, color=colour, label=name if number == 0 else None)
            axes[1].plot(middles, rewards, color=colour)
    axes[0].set_ylabel("wins against constant (%)")
    axes[1].set_ylabel("reward of a match")
    figure.legend(
        *axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    for axis in axes:
        axis.set_xlabel("steps (thousands)")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(out, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not options.report:
        train_all(options)
    report(options.folder, options.steps)
    if options.plot:
        plot(options.folder, options.steps, options.plot)


def train_all(options: argparse.Namespace) -> None:
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        jobs = [
            pool.submit(work, options.folder, kind, seed, options.steps)
            for seed in options.seeds
            for kind in options.kinds
        ]
        for job in jobs:
            job.result()


if __name__ == "__main__":
    main()
