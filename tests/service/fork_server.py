"""Loads, once in the server that forks tests' learners, what each of them would load again."""

import importlib
import os

import numpy as np

from league.garbage import collect_rarely

os.environ["PYTHONPATH"] = os.environ["PYTHONPATH"].partition(os.pathsep)[2]
collect_rarely()
for name in (
    "learner.exploiter.attempt",
    "learner.exploiter.generations",
    "learner.profile.measuring",
    "learner.train.session",
    "matchmaker.main",
    "torch.utils.tensorboard",
):
    importlib.import_module(name)
game = importlib.import_module("league.games.brawl.game").BrawlGame(1)
game.reset(np.zeros(1, np.uint64))
game.step(game.idle_actions())  # reads the compiled step
