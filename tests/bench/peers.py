"""Compares several trainers on the same work: their speed, and their skill after equal time.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/peers.py [--puffer PYTHON] [--rounds 3]
    [--seconds 180] [--seeds 1 2 3]

All trainers train in `brawl` against only `based`, in both seats: 256 matches, rollouts of 32
steps, 4 epochs, minibatches of 2,048 samples, an LSTM of 128, float32, the rewards of preset
`laptop`, and one torch thread per process.

    Kumite       the whole product, with matchmaker, evaluator and snapshots. Also without the
                 evaluator, because other trainers play no clean matches. Also with the epochs and
                 minibatches of preset `laptop`, which take less time
    sb3-contrib  RecurrentPPO with its own LSTM policy, as in skill.py
    PufferLib    version 3.0.0: its trainer and LSTM wrapper with our layers, on the game as a
                 native PufferEnv (peers_puffer.py), with our optimizer and with its own

Speeds are steps (decisions) per second of wall-clock time, learning included, without the first
seconds. The trainers take turns, on one core and then on two. Skill is won-drawn-lost in 100 clean
matches against `based`, after the same number of seconds of training on two cores.

PufferLib needs a separate interpreter, because it needs older packages. Its setup.py downloads
games that are not needed here. Without them it fails, unless a line is changed:

    python -m venv venv && export PATH=$PWD/venv/bin:/usr/bin:/bin  # without an nvcc
    pip install torch==2.13.0 'numpy<2' setuptools Cython wheel numba pydantic-settings
    sed -i 's/^c_extensions = .*/c_extensions = c_extension_paths = []/' pufferlib-3.0.0/setup.py
    NO_OCEAN=1 pip install --no-build-isolation ./pufferlib-3.0.0
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

import numpy as np
import torch
from practice import BotSource, clean_scores_by, practice_env
from skill import FRAME_SKIP, MATCHES, PPO, judged, plain_model, wins_of
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.config import AgentConfig, AgentSettings
from league.agent.heads import BernoulliKeys
from league.agent.network import AgentNetwork
from league.games.registry import game_spec
from league.runs.records import read_rows

ROOT, BOT, PAIRS = Path(__file__).parents[2], "based", 50
STEPS = 10_000_000  # over which learning rates fall, as in `laptop`
ALONE = (
    f"matchmaker.mixes.alone={{{BOT}=1.0}}",
    'curriculum.stages=[{name="alone", mix="alone"}]',
    f"learner.ent_coef_final={PPO['ent_coef']}",
    f"learner.steps={STEPS}",
)
SAME_UPDATES = (f"learner.n_epochs={PPO['n_epochs']}", f"learner.batch_size={PPO['batch_size']}")
NO_EVALUATOR = "supervisor.evaluators=0"
NOTES = """
- Kumite also plays clean matches of its snapshots, rates them, leases each match, and writes
  metrics and checkpoints, on the same cores. This makes it slower. It steers its learning rate by
  the KL divergence, which nobody else does. On two cores it has two ranks.
- sb3-contrib has two LSTMs (actor, critic), no layers before them, no waves of positions, and a
  constant learning rate. As a single process with one thread it leaves a second core idle.
- PufferLib clears the memory before each rollout but not when a match ends, so its LSTM needs no
  resets: quicker, but it remembers 32 decisions at most. Its clean matches in brackets clear the
  memory every 32 decisions, as in training; those before only clear it before a match.
- PufferLib clips values, draws sequences by their advantages, corrects these by V-trace, and has no
  advantage for the last of 32 steps. Its rewards are divided by 16, since it clips them at 1. Its
  critic doesn't see the time left. Its dashboard is off, which makes it quicker. On two cores it
  has two processes of torchrun: its Multiprocessing, and two threads of torch, were slower."""


class Task(NamedTuple):
    """Describes a training: it takes `seconds` and uses the first `cores` of the allowed cores."""

    seed: int
    seconds: float
    cores: int
    is_judged: bool


class Found(NamedTuple):
    """Holds a trainer's results: steps at times, the number of weights, and counts of wins, draws
    and losses for each way to play the clean matches.
    """

    points: list[tuple[float, int]]
    weights: int
    clean: list[list[int]]

    def speed(self, warmup: float) -> float:
        """Returns the steps per second after the first `warmup` seconds."""
        first, before = next(point for point in self.points if point[0] >= warmup)
        last, after = self.points[-1]
        return (after - before) / (last - first)


def agent() -> AgentConfig:
    """Returns the configuration of the agent of preset `laptop`."""
    settings = AgentSettings(size="tiny", encoder="none", sequence_length=17)
    return AgentConfig.of(settings, game_spec("brawl"))


def weights_of(network: torch.nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def processor_seconds() -> float:
    """Returns the CPU time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours(settings: tuple[str, ...], task: Task) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        run, log = Path(folder) / "run", Path(folder) / "log.txt"
        command = ["bin/start-league", "--headless", "--cpu", "--ranks", str(task.cores)]
        command += ["--run-dir", str(run), "--set", f"learner.seed={task.seed}"]
        command += [word for one in (*ALONE, *settings) for word in ("--set", one)]
        monitor = run / "learner-main" / "monitor.csv"
        with log.open("w") as output:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        try:
            while not (rows := read_rows(monitor)) and process.poll() is None:
                time.sleep(0.2)
            time.sleep(max(0.0, task.seconds - float(rows[-1]["t"])) if rows else 0.0)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)
        if not rows:
            raise SystemExit(f"the league ended by itself: {log.read_text()[-2000:]}")
        points = [(float(row["t"]), int(row["step"])) for row in read_rows(monitor)]
        clean = [judged(run, [BOT], PAIRS)[BOT]] if task.is_judged else []
    return Found(points, weights_of(AgentNetwork(agent())), clean)


class Clock(BaseCallback):
    """Records when each rollout begins, and ends the training."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.started = seconds, time.monotonic()
        self.points: list[tuple[float, int]] = []

    def _on_rollout_start(self) -> None:
        self.points.append((time.monotonic() - self.started, self.num_timesteps))

    def _on_step(self) -> bool:
        return time.monotonic() - self.started < self.seconds


def trained_plain(task: Task) -> Found:
    torch.set_num_threads(1)
    source = BotSource({BOT: 1.0}, task.seed)
    env = practice_env(source, MATCHES, frame_skip=FRAME_SKIP, reward="laptop")
    model, clock = plain_model(env, task.seed), Clock(task.seconds)
    model.learn(10**9, callback=clock)
    play = functools.partial(clean_scores_by, model.predict, BOT)
    clean = [wins_of(play(pairs=PAIRS, frame_skip=FRAME_SKIP))] if task.is_judged else []
    return Found(clock.points, weights_of(model.policy), clean)


def plain(task: Task) -> Found:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(trained_plain, task).result()


def clearing(network: AgentNetwork, every: int) -> Callable[..., Any]:
    """Returns a `predict` that clears the memory before each match and after each `every`
    decisions.

    A subclass of the network can't do this, because the evaluator's players build a new network
    from its configuration.
    """

    def predict(
        observations: np.ndarray, state: Any, episode_start: np.ndarray, deterministic: bool
    ) -> tuple[np.ndarray, Any]:
        count, before = state or (0, network.initial_state(len(observations)))
        starts = torch.as_tensor(episode_start | (count % every == 0))
        with torch.inference_mode():
            out = network.step(torch.as_tensor(observations), starts, before, None)
            return BernoulliKeys(out.logits_BA).sample().numpy(), (count + 1, out.state)

    return predict


def puffer(python: str, optimizer: str, task: Task) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        train = {"device": "cpu", "use_rnn": True, "env": "brawl", "data_dir": folder}
        train |= {"optimizer": optimizer, "seed": task.seed, "total_timesteps": STEPS}
        train |= {"gamma": PPO["gamma"], "gae_lambda": PPO["gae_lambda"]}
        train |= {"clip_coef": PPO["clip_range"], "ent_coef": PPO["ent_coef"]}
        train |= {"bptt_horizon": PPO["n_steps"], "minibatch_size": PPO["batch_size"]}
        train |= {"update_epochs": PPO["n_epochs"]}
        if optimizer == "adam":  # the other optimizer is PufferLib's, with its default settings
            train |= {"learning_rate": PPO["learning_rate"], "adam_beta1": 0.9, "adam_eps": 1e-5}
            train |= {"max_grad_norm": PPO["max_grad_norm"], "vf_coef": 2 * PPO["vf_coef"]}
        given = {"train": train, "agent": agent().to_dict(), "matches": MATCHES, "bot": BOT}
        given |= {"frame_skip": FRAME_SKIP, "reward": "laptop", "divisor": 16.0}
        given |= {"seconds": task.seconds}
        several = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={task.cores}"]
        command = [python, *(several if task.cores > 1 else [])]
        command += [str(Path(__file__).with_name("peers_puffer.py")), json.dumps(given)]
        # in this folder, because PufferLib makes a link in the working directory
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if done.returncode:
            raise SystemExit(f"PufferLib failed: {done.stderr[-2000:]}")
        found, clean = json.loads(done.stdout.splitlines()[-1]), []
        network = AgentNetwork(agent())
        network.load_state_dict(torch.load(Path(folder) / "agent.pt", weights_only=True))
        for every in (sys.maxsize, PPO["n_steps"]) if task.is_judged else ():
            play = clearing(network, every)
            scores = clean_scores_by(play, BOT, pairs=PAIRS, frame_skip=FRAME_SKIP)
            clean.append(wins_of(scores))
    return Found(found["points"], found["weights"], clean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--puffer", help="interpreter that has PufferLib")
    parser.add_argument("--rounds", type=int, default=3, help="of speeds; 0: none")
    parser.add_argument("--warmup", type=float, default=8.0, help="seconds that don't count")
    parser.add_argument("--window", type=float, default=20.0, help="seconds that count")
    parser.add_argument("--seconds", type=float, default=180.0, help="of training before skill")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1], help="of skill")
    options = parser.parse_args()
    trainers: dict[str, Callable[[Task], Found]] = {
        "Kumite": functools.partial(ours, SAME_UPDATES),
        "Kumite without an evaluator": functools.partial(ours, (*SAME_UPDATES, NO_EVALUATOR)),
        "Kumite, laptop's updates": functools.partial(ours, ()),
        "sb3-contrib": plain,
    }
    for optimizer in ("adam", "muon") if options.puffer else ():
        trainer = functools.partial(puffer, options.puffer, optimizer)
        trainers[f"PufferLib, {optimizer.capitalize()}"] = trainer
    speeds, cores = options.warmup + options.window, sorted(os.sched_getaffinity(0))
    tasks = [
        *(Task(n, speeds, k + 1, False) for n in range(options.rounds) for k in range(2)),
        *(Task(seed, options.seconds, 2, True) for seed in options.seeds),
    ]
    cells: dict[str, list[Any]] = {name: [0, [], [], []] for name in trainers}
    for task in (task for task in tasks if task.cores <= len(cores)):
        os.sched_setaffinity(0, cores[: task.cores])  # a trainer's processes inherit this
        for name, trainer in trainers.items():
            before, cell = processor_seconds(), cells[name]
            found, used = trainer(task), processor_seconds() - before
            cell[0], rate = found.weights, found.speed(options.warmup)
            matches = ["-".join(map(str, counts)) for counts in found.clean]
            if task.is_judged:
                steps = f"after {found.points[-1][1] / 1e6:.1f}M steps, {used:.0f} processor s"
                cell[3].append(" ".join([matches[0], *(f"({one})" for one in matches[1:]), steps]))
            else:
                cell[task.cores].append(rate)
            words = f"{name}, {task.cores} cores, seed {task.seed}: {rate:,.0f} steps/s, load"
            print(words, *os.getloadavg(), *matches, flush=True)
    print("\n| trainer | weights | one core, steps/s | two cores, steps/s | clean matches |")
    print("|---|---|---|---|---|")
    for name, (weights, *rates, skills) in cells.items():
        shown = [
            f"{statistics.median(one):,.0f} ({min(one):,.0f} to {max(one):,.0f})" if one else ""
            for one in rates
        ]
        print(f"| {name} | {weights:,} | {' | '.join(shown)} | {'; '.join(skills)} |")
    print(NOTES)


if __name__ == "__main__":
    main()
