"""Makes members of the league of what plain Stable-Baselines3 has trained."""

from __future__ import annotations

import dataclasses

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from league.errors import InvalidInput
from league.players import Player
from learner.sb3.environment import JoinedEnv
from learner.sb3.policy import perceptron_of


def publish(
    model: BaseAlgorithm, env: JoinedEnv | None = None, *, milestone: bool = False
) -> Player:
    """Freezes the current policy of `model` and makes it a member, ``NAME@steps``.

    Args:
        model: whose policy.
        env: the environment that joined the league; default: the one it trains in.
        milestone: whether the member never retires.

    Raises:
        InvalidInput: the policy is no `MlpPolicy` of this game.
        Fenced: another process has taken the name.
    """
    joined = _joined(model.get_env() if env is None else env)
    network = perceptron_of(model.policy)
    spec, config = joined.game.spec, network.config
    mine = (config.observation_size, config.action_size, config.action_kind)
    if mine != (spec.observation_size, spec.action_size, spec.action_kind):
        raise InvalidInput(
            f"the policy sees {mine[0]} numbers and has {mine[1]} {mine[2]}; {spec.name} has "
            f"{spec.observation_size} and {spec.action_size} {spec.action_kind}: train it without "
            "wrappers that change observations or actions"
        )
    scale = _reward_scale(model)
    joined.broker.flush()
    card = joined.publisher.card(model.num_timesteps, scale, joined.progress.metrics())
    card = dataclasses.replace(card, agent=config)
    return joined.publisher.publish(network, card, milestone)


class PublishEvery(BaseCallback):
    """Publishes the model every `steps` steps, and as a milestone when training ends."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self._published = 0

    def _on_training_start(self) -> None:
        self._published = self.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:  # the weights are those of a whole update
        if self.num_timesteps // self.steps > self._published // self.steps:
            publish(self.model)
            self._published = self.num_timesteps

    def _on_training_end(self) -> None:
        publish(self.model, milestone=True)


def _joined(env: VecEnv | None) -> JoinedEnv:
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    if not isinstance(env, JoinedEnv):
        raise InvalidInput(
            "the model does not train in a league: make its environment by league_env"
        )
    return env


def _reward_scale(model: BaseAlgorithm) -> float:
    """What rewards were divided by. Raises `InvalidInput` when observations were changed, too."""
    normalised = model.get_vec_normalize_env()
    if normalised is None:
        return 1.0
    assert isinstance(normalised, VecNormalize)
    if normalised.norm_obs:
        raise InvalidInput(
            "the policy was trained on normalised observations, which the league does not show: "
            "use VecNormalize(env, norm_obs=False); observations are in [-1, 1] without it"
        )
    if not normalised.norm_reward:
        return 1.0
    return float(np.sqrt(normalised.ret_rms.var + normalised.epsilon))
