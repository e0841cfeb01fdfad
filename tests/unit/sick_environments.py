"""Environments that lose or change what a learner should hear, for the tests of `league doctor`."""

from __future__ import annotations

import numpy as np

from learner.rollout.league_vec_env import LeagueVecEnv


class LosingTheLast(LeagueVecEnv):
    """What the last step of a match pays never arrives."""

    def _advance(self):
        rewards_N, ended_N = super()._advance()
        return np.where(ended_N, 0.0, rewards_N).astype(rewards_N.dtype), ended_N


class LateEnds(LeagueVecEnv):
    """The learner hears of a match's end one step too late."""

    def step_arrays(self, actions_NA):
        observations, rewards_N, ended_N = super().step_arrays(actions_NA)
        told_N = getattr(self, "_untold", np.zeros_like(ended_N))
        self._untold = ended_N.copy()
        return observations, rewards_N, told_N
