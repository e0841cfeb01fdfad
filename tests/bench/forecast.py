"""What the auxiliary head costs, and how well it predicts a bot.

    OMP_NUM_THREADS=1 python tests/bench/forecast.py [--bot based] [--coef 0.1] [--updates 40]

A learner with the head and one without learn in turns, in matches against the bot. Prints the CPU
time of a rollout with its update, median of each, and the head's loss on new rollouts compared
with that of each key's mean rate: in the first update, and as means over the last quarter.
"""

from __future__ import annotations

import argparse
import time
from statistics import fmean, median

import torch
from diagnostics import make_model

from league.agent.device import keep_memory

TOLD = ("forecast/first_loss", "forecast/marginal_loss")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--bot", default="based")
    parser.add_argument("--coef", type=float, default=0.1)
    parser.add_argument("--updates", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    coefs = {"without the head": 0.0, "with it": options.coef}
    models = {
        name: make_model(options.preset, "cpu", options.bot, coef) for name, coef in coefs.items()
    }
    spent: dict[str, list[float]] = {name: [] for name in models}
    told: list[list[float]] = []
    for _ in range(options.updates):
        for name, model in models.items():
            started = time.process_time()
            model.learn(model.n_steps * model.n_envs, reset_num_timesteps=False)
            spent[name].append(time.process_time() - started)
        told.append([models["with it"].logger.name_to_value[name] for name in TOLD])
    steps = models["with it"].num_timesteps
    for name, seconds in spent.items():
        print(f"a rollout and its update {name:17s} {median(seconds) * 1e3:8.1f} ms")
    late = told[-max(1, len(told) // 4) :]
    for name, first, last in zip(TOLD, told[0], zip(*late, strict=True), strict=True):
        print(f"{name:42s} {first:8.3f} nats at first, {fmean(last):.3f} by {steps:,} steps")


if __name__ == "__main__":
    main()
