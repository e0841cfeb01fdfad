"""What an update's diagnostics and the rollout's guards cost, by clocks around their calls in real
updates.

    OMP_NUM_THREADS=1 python tests/bench/diagnostics.py [--preset laptop] [--updates 20] [--device
    cpu]

Matches are against the bot `constant`. Prints the time of an update (the optimizer's passes alone,
and with its rollout), of each call inside it, and the shares: means over the updates, in CPU time
of the process.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package
from practice import BotSource

import learner.ppo.playing as playing
import learner.rollout.league_vec_env as environment
from league.agent.batched_policy import BatchedPolicy
from league.agent.config import AgentConfig, AgentSettings
from league.agent.device import keep_memory
from league.games.registry import make_batched, reward_weights
from league.games.settings import GameSettings
from league.settings.base import build, resolve
from learner.ppo.diagnostics import Diagnostics
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import LearnerSettings

SPENT: Counter[str] = Counter()


def clocked(place: Any, name: str) -> None:
    """Replaces `place.name` by itself with a clock around it."""
    inner: Callable[..., object] = getattr(place, name)

    def timed(*args: object, **kwargs: object) -> object:
        started = time.process_time()
        try:
            return inner(*args, **kwargs)
        finally:
            SPENT[name] += time.process_time() - started

    setattr(place, name, timed)


def make_model(
    preset: str, device: str, bot: str = "constant", forecast_coef: float = 0.0
) -> LeaguePPO:
    """A learner of the preset's sizes, in matches against one bot."""
    sections = resolve(preset, None, [])
    settings = build(LearnerSettings, "learner", sections["learner"])
    game_settings = build(GameSettings, "game", sections["game"])
    game = make_batched("brawl", settings.matches)
    config = AgentConfig.of(build(AgentSettings, "agent", sections["agent"]), game.spec)
    weights_K = reward_weights(game.spec, "laptop", {})
    batched_policy = BatchedPolicy(settings.matches, lambda digest: None, seed=0, action_size=10)  # type: ignore[arg-type, return-value]
    source = BotSource({bot: 1.0}, seed=0)
    env = LeagueVecEnv(
        game, source, batched_policy, frame_skip=game_settings.frame_skip, reward_weights=weights_K
    )
    return LeaguePPO(
        "LeaguePolicy",
        env,
        policy_kwargs={"agent": config},
        n_steps=settings.n_steps,
        batch_size=settings.batch_size,
        n_epochs=settings.n_epochs,
        learning_rate=settings.learning_rate,
        forecast_coef=forecast_coef,
        seed=0,
        device=device,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    model = make_model(options.preset, options.device)
    rollout = model.n_steps * model.n_envs
    model.learn(2 * rollout)  # compiles the game, warms up
    diagnostics, guards = ("rollout_ends", "gradient", "update_ends"), (
        "check_outputs", "check_observations", "check_rewards"
    )  # fmt: skip
    for name in diagnostics:
        clocked(Diagnostics, name)
    clocked(playing, "check_outputs")
    clocked(environment, "check_observations")
    clocked(environment, "check_rewards")
    clocked(LeaguePPO, "train")
    started = time.process_time()
    model.learn(options.updates * rollout, reset_num_timesteps=False)
    whole = (time.process_time() - started) / options.updates
    update = SPENT["train"] / options.updates
    print(f"{'an update with its rollout':30s} {whole * 1e3:9.2f} ms")
    print(f"{'its passes alone':30s} {update * 1e3:9.2f} ms")
    for title, names, base in (("diagnostics", diagnostics, update), ("guards", guards, whole)):
        for name in names:
            print(f"  {name:28s} {SPENT[name] / options.updates * 1e3:9.2f} ms")
        share = sum(SPENT[name] for name in names) / options.updates / base
        print(f"{title:30s} {share:9.2%} of {'the passes' if base is update else 'the whole'}")


if __name__ == "__main__":
    main()
