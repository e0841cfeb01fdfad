"""Trains plain Stable-Baselines3 models in a league, and makes their policies members of the
league.

    env = league_env("127.0.0.1:50051", "runs/mine", name="sb3")
    model = PPO("MlpPolicy", env)
    model.learn(100_000)
    publish(model)

An `MlpPolicy` or `MlpLstmPolicy` is frozen as a `PerceptronNetwork` with the same weights and the
same outputs. The evaluator and other learners meet it like any other snapshot.
"""

from learner.sb3.environment import JoinedEnv, PublishEvery, league_env, publish
from learner.sb3.policy import perceptron_of

__all__ = ["JoinedEnv", "PublishEvery", "league_env", "perceptron_of", "publish"]
