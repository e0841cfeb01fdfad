"""Compares the speed of our learner and of plain sb3-contrib, on one CPU thread.

    OMP_NUM_THREADS=1 python tests/bench/learner.py [--size large] [--matches 16] [--sequences 8]

The figures are environment steps per second, learning included. Both learners play the same matches
through one `LeagueVecEnv`, with the same number of steps in a rollout, epochs and optimizer steps.
The plain learner is `sb3_contrib.RecurrentPPO`. Its features extractor is the windowed encoder of
the same size, and actor and critic share its LSTM. The two learners take turns, and the ratio is
the median over rounds. Times are CPU times of the process, because on a shared machine the wall
clock mostly measures other work.

Our learner computes an optimizer step from `--sequences` whole sequences. The plain learner is
fastest with small batches, so it accumulates the gradients of batches of `--plain-batch`, until
both make the same number of optimizer steps. sb3-contrib has no such setting, so only the plain
learner's speed is meaningful here, not what it learns.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # this file is not the package of the same name

import torch
from plain import WindowEncoder, Windows, plain_windowed
from practice import BotSource, practice_env
from sb3_contrib import RecurrentPPO

from league.agent.config import SIZES, AgentConfig
from league.agent.device import keep_memory
from league.agent.encoder import StreamingEncoder
from league.games.registry import game_spec
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import LearnerSettings
from learner.train.metrics import busy_seconds


def make_env(matches: int) -> LeagueVecEnv:
    """Makes matches against `based` in both seats."""
    return practice_env(BotSource({"based": 1.0}, seed=0), matches, frame_skip=1, reward="dense")


def make_plain(
    env: LeagueVecEnv, config: AgentConfig, options: argparse.Namespace, batch: int
) -> RecurrentPPO:
    torch.manual_seed(0)
    ppo = {"n_steps": options.steps, "batch_size": batch, "n_epochs": options.epochs, "seed": 0}
    plain = plain_windowed(Windows(env, config), config, **ppo)
    step_every(plain.policy.optimizer, max(1, options.batch // batch))
    return plain


def step_every(optimizer: torch.optim.Optimizer, batches: int) -> None:
    """Lets the optimizer step only after this number of batches, with their gradients
    accumulated.
    """
    step, zero_grad = optimizer.step, optimizer.zero_grad
    counted = itertools.count(1)

    def step_or_wait() -> None:
        if next(counted) % batches == 0:
            step()
            zero_grad()

    optimizer.step = step_or_wait  # type: ignore[method-assign,assignment]
    optimizer.zero_grad = lambda: None  # type: ignore[method-assign,assignment]


def make_ours(env: LeagueVecEnv, config: AgentConfig, options: argparse.Namespace) -> LeaguePPO:
    torch.manual_seed(0)
    return LeaguePPO(
        "LeaguePolicy",
        env,
        LearnerSettings(
            matches=env.num_envs,
            n_steps=options.steps,
            batch_size=options.batch,
            n_epochs=options.epochs,
        ),
        device="cpu",
        policy_kwargs={"agent": config},
    )


def seconds_of(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def compare_encoders(config: AgentConfig, window: AgentConfig, options: argparse.Namespace) -> None:
    """Prints the frames per second of both encoders alone, forward and backward."""
    ours, plain = StreamingEncoder(config), WindowEncoder(window)
    rows, batch = config.context + options.steps, max(1, options.batch // options.steps)
    entries_XBE = torch.rand(rows, batch, config.entry_size)
    own_TBO = torch.rand(options.steps, batch, config.own_size)
    ages_XB = torch.arange(1, rows + 1).unsqueeze(1).expand(rows, batch)
    some = min(options.steps, 128)  # windows in one pass: more only cost memory

    def stream() -> None:
        pooled = ours.unroll(entries_XBE, own_TBO, ages_XB)
        (pooled.latent.square().mean() + pooled.context.square().mean()).backward()

    def windowed() -> None:
        newest = entries_XBE[-(some + config.context) :]
        window = newest.unfold(0, config.sequence_length, 1).movedim(-1, -2)
        pooled = plain.encode(
            window.flatten(0, 1), own_TBO[-some:].flatten(0, 1), ages_XB[-some:].flatten()
        )
        (pooled.latent.square().mean() + pooled.context.square().mean()).backward()

    stream(), windowed()
    rates = [
        (options.steps * batch / seconds_of(stream), some * batch / seconds_of(windowed))
        for _ in range(options.rounds)
    ]
    fast, slow = (statistics.median(side) for side in zip(*rates, strict=True))
    print(
        f"encoder alone, forward and backward: ours {fast:,.0f} frames/s, windowed {slow:,.1f}: "
        f"{statistics.median(a / b for a, b in rates):.1f} times"
    )


def compare_agents(ours: LeaguePPO, plain: RecurrentPPO, options: argparse.Namespace) -> None:
    """Compares whole rollouts with their updates, in turns.

    Before the timed rollouts, our learner makes a rollout in which it compiles and allocates
    memory. The plain learner makes none: its rollouts take minutes, so its start hardly matters.
    """
    rollout = options.steps * options.matches
    rates: list[tuple[float, float]] = []
    ours.learn(rollout)
    for number in range(1, options.rounds + 1):
        before, begun = busy_seconds(ours), time.perf_counter()  # as the parts are timed
        fast = seconds_of(lambda: ours.learn(rollout, reset_num_timesteps=False))
        passed, after = time.perf_counter() - begun, busy_seconds(ours)
        slow = seconds_of(lambda: plain.learn(rollout, reset_num_timesteps=False))
        rates.append((rollout / fast, rollout / slow))
        shares = ", ".join(f"{kind} {(after[kind] - before[kind]) / passed:.0%}" for kind in after)
        print(
            f"round {number}: ours {rollout / fast:,.0f} steps/s ({shares}), "
            f"plain {rollout / slow:,.1f}: {slow / fast:.1f} times",
            flush=True,
        )
    print(
        f"whole agent: {statistics.median(a / b for a, b in rates):.1f} times, "
        f"median of {len(rates)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="large")
    parser.add_argument("--matches", type=int, default=16)
    parser.add_argument("--steps", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--sequences", type=int, default=8, help="of ours in an optimizer step")
    parser.add_argument("--plain-batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--length", type=int, default=65)
    options = parser.parse_args()
    options.sequences = min(options.sequences, options.matches)
    options.batch = options.steps * options.sequences
    torch.set_num_threads(1)
    keep_memory()
    game = game_spec("brawl")
    sizes = {
        "observation_size": game.observation_size,
        "own_size": game.own_size,
        "action_size": game.action_size,
        "sequence_length": options.length,
    }
    config = AgentConfig(**sizes, **SIZES[options.size])
    window = AgentConfig(**sizes, encoder="none", **SIZES[options.size])
    print(
        f"size {options.size}, {options.matches} matches x {options.steps} steps, "
        f"{options.epochs} epochs, "
        f"{options.matches // options.sequences} optimizer steps an epoch"
    )
    compare_encoders(config, window, options)
    compare_agents(
        make_ours(make_env(options.matches), config, options),
        make_plain(make_env(options.matches), window, options, options.plain_batch),
        options,
    )


if __name__ == "__main__":
    main()
