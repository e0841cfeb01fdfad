"""Whether what the matches pay and when they end reaches the learner through its environment.

Shape suffixes: N matches, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from league.errors import LeagueError
from learner.doctor.play import decide
from learner.doctor.probe import make_environment
from learner.doctor.setup import SetUp

MATCHES = 16
STEPS_AT_MOST = 2700


@dataclass(frozen=True, kw_only=True)
class EnvironmentEvidence:
    """What an environment handed on of the matches that ended in it.

    Attributes:
        ended: matches that ended. told: how many of these ends the learner was told of.
        paid: sum of sizes of the matches' rewards as they arrived step by step.
        accounted: the same by the matches' own accounts.
        lost: the largest difference in one match.
        fault: the sentence with which the environment gave up; empty when it did not.
    """

    ended: int
    told: int
    paid: float
    accounted: float
    lost: float
    fault: str = ""


def look_at_environment(set_up: SetUp, seed: int = 0) -> EnvironmentEvidence:
    """Plays at random until every match has ended once."""
    env = make_environment(set_up, MATCHES, seed)
    game, spec = env.game, env.game.spec
    rng = np.random.default_rng(seed)
    told, arrived, lost, over_N = 0, np.zeros(MATCHES), 0.0, np.zeros(MATCHES, np.bool_)
    paid = accounted = 0.0
    ended, fault = 0, ""
    try:
        env.reset()
        for _ in range(STEPS_AT_MOST):
            luck = rng.random((MATCHES, 2, spec.action_size), np.float32)
            actions_NA = decide(game, luck)[np.arange(MATCHES), env.seat_N]
            _, rewards_N, told_N = env.step_arrays(actions_NA)
            arrived += rewards_N
            really_N = game.ended_N & ~env.failed_N
            for n, match in zip(np.flatnonzero(really_N), env.finished, strict=False):
                paid, accounted = paid + abs(arrived[n]), accounted + abs(match.reward)
                lost = max(lost, abs(arrived[n] - match.reward))
            ended, told = ended + int(really_N.sum()), told + int((told_N & really_N).sum())
            arrived[game.ended_N] = 0.0
            env.finished = []
            over_N |= game.ended_N
            if over_N.all():
                break
    except LeagueError as error:
        fault = str(error)
    finally:
        game.close()
    return EnvironmentEvidence(
        ended=ended, told=told, paid=paid, accounted=accounted, lost=lost, fault=fault
    )
