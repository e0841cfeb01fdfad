"""What references cost: their share of the learner's time, by size, number and share of the
matches.

    OMP_NUM_THREADS=1 python tests/bench/references.py [--size tiny] [--references 1 5] [--shares 1
    0.5 0.25]

The learner of preset `laptop` (tiny) or `test` (large) plays bots of the built-in game; its time is
that of inference, references and learning, without game and opponents. Rollouts of all variants
take turns, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py in this folder is not the package
from practice import BotSource

from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig, AgentSettings
from league.agent.device import keep_memory
from league.games.settings import GameSettings
from league.settings.base import build, resolve
from learner.ppo import references as references_module
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import LearnerSettings, RegularisationSettings

PRESETS = {"tiny": "laptop", "large": "test"}


class Silent(BaseCallback):
    def _on_step(self) -> bool:
        return True


def make(size: str, device: str, **regularisation: Any) -> LeaguePPO:
    sections = resolve(PRESETS[size], environment={})
    game = build(GameSettings, "game", sections["game"])
    learner = build(LearnerSettings, "learner", sections["learner"])
    batched = game.make(learner.matches)
    spec = batched.spec
    env = LeagueVecEnv(
        batched,
        BotSource({"based": 1.0}, seed=0),
        BatchedPolicy(
            learner.matches, lambda _: None, seed=0, action_size=spec.action_size, device=device
        ),  # type: ignore[arg-type,return-value]
        frame_skip=game.frame_skip,
        reward_weights=np.ones(len(spec.reward_terms), np.float32) * 0.01,
    )
    model = LeaguePPO(
        "LeaguePolicy",
        env,
        policy_kwargs={
            "agent": AgentConfig.of(build(AgentSettings, "agent", sections["agent"]), spec)
        },
        settings=learner.model_copy(update={"seed": 0}),
        device=device,
        regularisation=RegularisationSettings(**regularisation),
    )
    model._setup_learn(10**9, None)
    return model


def filled(size: str, device: str, references: int, share: float) -> LeaguePPO:
    """A learner whose portfolio is full before the first measured rollout."""
    references_module.MATCH_SHARE, references_module.PORTFOLIO_INTERVAL = share, 1
    model = make(size, device, portfolio_size=references, reference_interval=1)
    epochs, model.n_epochs = model.n_epochs, 1
    for _ in range(references - 1):
        play_and_learn(model)
    model.n_epochs = epochs
    assert model.references is not None
    model.references.settings = model.references.settings.model_copy(
        update={"reference_interval": 0}
    )
    return model


def play_and_learn(model: LeaguePPO) -> None:
    callback = Silent()
    callback.init_callback(model)
    model.collect_rollouts(model.env, callback, None, model.n_steps)
    model.train()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=PRESETS, default="tiny")
    parser.add_argument("--references", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.5, 0.25])
    parser.add_argument("--rollouts", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    keep_memory()
    variants = [(count, share) for count in options.references for share in options.shares]
    models = [filled(options.size, options.device, count, share) for count, share in variants]
    spent: dict[int, list[tuple[float, float]]] = {index: [] for index in range(len(models))}
    for _ in range(options.rollouts):
        for index, model in enumerate(models):
            assert model.references is not None
            before = model.references.seconds, model.inference_seconds + model.learning_seconds
            play_and_learn(model)
            after = model.references.seconds, model.inference_seconds + model.learning_seconds
            spent[index].append((after[0] - before[0], after[1] - before[1]))
    for index, (count, share) in enumerate(variants):
        ratios = [references / (references + rest) for references, rest in spent[index]]
        low, middle, high = np.percentile(ratios, [10, 50, 90])
        print(
            f"{options.size}, {count} references in {share:.0%} of the matches: "
            f"{middle:.1%} of the time "
            f"({low:.1%} to {high:.1%})",
            flush=True,
        )


if __name__ == "__main__":
    main()
