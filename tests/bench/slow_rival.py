"""Compares training with a slow rival in a tenth of the matches to training without it.

    OMP_NUM_THREADS=1 python tests/bench/slow_rival.py [--rival sleeps] [--milliseconds 5]

Two learners of the preset take turns. Both play against themselves and bots. The mix of the second
learner also names a rival that takes the given time for a decision. The rival either sleeps, as if
it had its own core, or computes. A step only counts if a match is played in it, not if the match
waits for the rival. The rival's shares are shares of these steps.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package

import numpy as np
import torch

from league.agent.config import AgentConfig
from league.agent.device import keep_memory
from league.agent.rival_bundles import bundles, pack, trust
from league.players import Player, PlayerKind
from league.runs.blobs import BlobFolder
from league.settings.base import resolve
from learner.rollout.mix_source import MixSource
from learner.train.build import SessionSettings, make_env, make_game, make_model
from learner.train.join import live_player

AGENT = """
import time
from environment.agent import Agent

class SubmittedAgent(Agent):
    def predict(self, obs):
        {wait}
        return [float(obs[0] < obs[32]), 0, 0, float(obs[0] >= obs[32]), 0, 0, 0, 0, 0, 0]
"""
WAITS = {
    "sleeps": "time.sleep({seconds})",
    "computes": "end = time.thread_time() + {seconds}"
    "\n        while time.thread_time() < end: pass",
}
OTHERS = {"self": 80.0, "based": 5.0, "constant": 5.0}


class Training:
    """Trains a learner that plays `mix` without a league."""

    def __init__(
        self, settings: SessionSettings, blobs: BlobFolder, mix: dict[str, float], rivals: list
    ) -> None:
        game, live = make_game(settings), live_player("main", make_game(settings))
        source, stage = MixSource(mix, game.spec, live, rivals, 0), settings.curriculum.stages[-1]
        device = torch.device("cpu")
        self.env = make_env(settings, game, source, blobs, stage, device, live)
        config = AgentConfig.of(settings.agent, game.spec)
        self.model = make_model(settings, config, self.env, blobs.root, device, lambda: False)
        _, self._callback = self.model._setup_learn(settings.learner.steps, None)

    def turn(self, seconds: float) -> dict[str, float]:
        """Makes whole updates for about `seconds`. Returns the played steps per second of
        wall-clock and CPU time, the share of steps against the rival, and these steps per second.
        """
        model, env = self.model, self.env
        begun, cpu, played, across = time.perf_counter(), time.process_time(), 0, 0
        step = type(env).step_arrays

        def counted(actions_NA):
            nonlocal played, across
            before_N = env.steps_N.copy()
            rival_N = np.array([a.opponent.kind is PlayerKind.RIVAL for a in env.assignments])
            out = step(env, actions_NA)
            moved_N = (env.steps_N != before_N) | out[2]
            played, across = played + moved_N.sum(), across + (moved_N & rival_N).sum()
            return out

        env.step_arrays = counted
        while time.perf_counter() - begun < seconds:
            model.collect_rollouts(env, self._callback, None, model.n_steps)
            env.finished = []
            model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
            model.train()
        took = time.perf_counter() - begun
        return {
            "rate": played / took,
            "cpu_rate": played / (time.process_time() - cpu),
            "across": across / played,
            "across_rate": across / took,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--rival", choices=WAITS, default="sleeps")
    parser.add_argument("--milliseconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--share", type=float, default=10.0, help="of the mix, in percent")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    sections = resolve(options.preset)
    settings = SessionSettings.of(sections)
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobFolder(Path(folder) / "blobs")
        file = Path(folder) / "slow.py"
        wait = WAITS[options.rival].format(seconds=options.milliseconds / 1000)
        file.write_text(AGENT.format(wait=wait))
        digest = bundles(blobs).put(pack(file))
        trust(digest)
        slow = Player(name="slow", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
        weight = 90.0 * options.share / (100.0 - options.share)
        alone = Training(settings, blobs, OTHERS, [])
        beside = Training(settings, blobs, {**OTHERS, "slow": weight}, [slow])
        for training in (alone, beside):
            training.turn(1.0)
        rounds = []
        for number in range(1, options.rounds + 1):
            without, with_it = alone.turn(options.seconds), beside.turn(options.seconds)
            rounds.append((without, with_it))
            print(
                f"round {number}: {without['rate']:,.0f} steps/s without, {with_it['rate']:,.0f} "
                f"with the rival ({with_it['across']:.1%} of them against it, "
                f"{with_it['across_rate']:,.0f}/s); {without['cpu_rate']:,.0f} and "
                f"{with_it['cpu_rate']:,.0f} steps per CPU second of the learner",
                flush=True,
            )
        for key, unit in (("rate", "steps/s"), ("cpu_rate", "steps per CPU second")):
            ratio = statistics.median(b[key] / a[key] for a, b in rounds)
            print(f"with the rival {ratio:.0%} of the {unit}, median of {len(rounds)} rounds")
        beside.env.opponent_policy._rivals.close()


if __name__ == "__main__":
    main()
