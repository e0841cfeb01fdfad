"""Compares training on PettingZoo's connect four with the PPO of RLlib and of PufferLib.

    OMP_NUM_THREADS=1 .venv/bin/python tests/bench/connect_four.py [--rllib PYTHON]
    [--puffer PYTHON] [--rounds 3]

All train in self-play: rollouts of 4,096 turns, 4 epochs, minibatches of 1,024, one torch thread
in each process, about 145,000 weights. They take turns on the same cores. Speeds are turns per
second of wall-clock time, learning included, without the first iteration.

    Kumite    the learner of preset `board` without a league: 128 matches at once in PettingZoo's
              worker processes, an LSTM of 128. It learns from the turns of one seat in each match
    RLlib     PPO of the new API stack with the given number of env runners, and two networks of
              two layers of 224 without memory. It learns from all turns
    PufferLib version 3.0.0: PPO with Adam, and its default policy with an LSTM of 128. 128 matches
              at once in its own process (Serial), or in the given number of worker processes
              (Multiprocessing), where it decides for a worker's matches while the others step. It
              learns from all turns but the last of each match's 32 in a rollout

RLlib needs an interpreter of its own, in which Ray starts:

    python -m venv venv && venv/bin/pip install 'ray[rllib]==2.60.0' torch pettingzoo pygame-ce

PufferLib needs another. `peers.py` says how to make it. Then give it the game in our version,
although PufferLib asks for an older one:

    pip install --no-deps pettingzoo==1.27.0 pygame-ce
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

import torch
from game_workers import Training

GAME = "pettingzoo:pettingzoo.classic.connect_four_v3"
OURS = (
    *(f"game.name={GAME}", "learner.matches=128", "learner.n_steps=32", "learner.n_epochs=4"),
    *("learner.batch_size=1024", "regularisation.alpha=0"),
)
THEIRS = {"minibatch": 1024, "epochs": 4}
RLLIB = {"batch": 4096, "hidden": [224, 224]}
PUFFER = {"matches": 128, "horizon": 32, "width": 128, "at_once": 1}


def theirs(script: str, python: str, given: dict[str, Any]) -> str:
    """Returns the turns per second and the number of weights, in words."""
    command = [os.path.abspath(python), str(Path(__file__).with_name(script))]
    with tempfile.TemporaryDirectory() as folder:  # PufferLib makes a link in its working directory
        done = subprocess.run(
            [*command, json.dumps({**THEIRS, **given})],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            cwd=folder,
        )
    found = json.loads(done.stdout.splitlines()[-1])
    (began, first), (ended, last) = found["points"][1], found["points"][-1]
    return f"{(last - first) / (ended - began):,.0f} turns/s, {found['weights']:,} weights"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rllib", metavar="PYTHON", help="an interpreter with ray[rllib]")
    parser.add_argument("--puffer", metavar="PYTHON", help="an interpreter with PufferLib")
    parser.add_argument("--runners", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--envs", type=int, default=1, help="environments of an env runner")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2], help="of PufferLib")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            training = Training(OURS, Path(folder))
            weights = sum(one.numel() for one in training.model.policy.network.parameters())
            training.turn(0.1)
            game, rollouts, rate = training.turn(options.seconds)
            training.game.close()
        words = f"waits for the game in {rollouts / game:.0%} of its rollouts"
        print(f"round {number}: Kumite {rate:,.0f} turns/s, {weights:,} weights, {words}")
        sys.stdout.flush()
        for runners in options.runners if options.rllib else []:
            given = {"runners": runners, "envs": options.envs, "seconds": options.seconds, **RLLIB}
            found = theirs("peers_rllib.py", options.rllib, given)
            print(f"  RLlib, {runners} env runners: {found}", flush=True)
        for workers in options.workers if options.puffer else []:
            given = {"workers": workers, "seconds": options.seconds, **PUFFER}
            found = theirs("peers_puffer_four.py", options.puffer, given)
            print(f"  PufferLib, {workers} workers: {found}", flush=True)


if __name__ == "__main__":
    main()
