"""A learner that runs out of memory for real, in its first update or in its second rollout.

python starved_learner.py update|rollout [the learner's own flags]
"""

import resource
import sys

import numpy as np

from learner.main import main
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv

HEADROOM = 4 << 20


def starve_update():
    """The process may hold hardly more than before its first update, whose activations do not
    fit.
    """
    train = LeaguePPO.train

    def limited(model):
        with open("/proc/self/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + HEADROOM, resource.RLIM_INFINITY))
        train(model)

    LeaguePPO.train = limited


def starve_rollout():
    """The 48th step wants more memory than any machine has."""
    step, calls = LeagueVecEnv.step_arrays, []

    def greedy(env, actions_NA):
        calls.append(1)
        if len(calls) == 48:
            np.ones(1 << 48)
        return step(env, actions_NA)

    LeagueVecEnv.step_arrays = greedy


if __name__ == "__main__":
    {"update": starve_update, "rollout": starve_rollout}[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
