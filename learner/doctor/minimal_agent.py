"""The minimal agent (`--emergency`): can the smallest network learn against the easiest opponent?

About a minute. It keeps the game and the rewards and replaces all else: a tiny network, many short
matches, settings that learnt quickly here (docs/benchmarks.md), and the bot that random play does
best against without beating it.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback

from league.errors import LeagueError
from league.games.base import CHOICE
from learner.doctor.findings import Finding, judged
from learner.doctor.game import random_play
from learner.doctor.setup import SetUp, build_model
from learner.ppo.league_ppo import LeaguePPO

SECONDS = 40.0
"""Of processor time, so that a busy machine takes longer and finds the same."""
EASY = 0.75
"""Score of random play from which on there is nothing to learn against a bot."""
MATCH_SECONDS = 30.0
FEWEST_COMPARED, MOST_COMPARED = 128, 2048
"""Matches from the beginning and the end of the training; at least one for each of the batch."""
SIGNIFICANT = 3.0
"""Standard errors by which the last matches must pay more than the first."""
MINIMAL_LEARNER = {
    "matches": 128,
    "n_steps": 32,
    "batch_size": 1024,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "learning_rate_final": None,
    "ent_coef": 0.003,
    "ent_coef_final": None,
    "clip_range": 0.2,
    "desired_kl": 0.03,
    "forecast_coef": 0.0,
    "steps": 100_000_000,
}
"""All of the learner's settings that matter but gamma, which belongs to the rewards."""


def minimal(set_up: SetUp) -> SetUp:
    """The same game and rewards with the minimal agent and the one opponent."""
    settings, spec, game = set_up.settings, set_up.spec, set_up.settings.game
    if spec.action_kind != CHOICE and spec.max_frames > MATCH_SECONDS * spec.frames_per_second:
        game = game.model_copy(update={"match_seconds": MATCH_SECONDS})
    small = replace(
        settings,
        learner=settings.learner.model_copy(update=MINIMAL_LEARNER),
        agent=settings.agent.model_copy(update={"size": "tiny", "sequence_length": 17}),
        game=game,
    )
    make = game.make if set_up.game == settings.game.make else set_up.game
    short = replace(set_up, settings=small, game=make)
    return replace(short, mix={easiest(short): 1.0} if set_up.bots else {})


def easiest(set_up: SetUp) -> str:
    """The bot that random play does best against, of those that it does not beat."""
    scores_N = np.nan_to_num(random_play(set_up, set_up.bots, seed=7).first_scores(), nan=0.5)
    bots = len(set_up.bots)
    means = {name: float(scores_N[n::bots].mean()) for n, name in enumerate(set_up.bots)}
    hard = {name: mean for name, mean in means.items() if mean < EASY} or means
    return max(hard, key=hard.__getitem__)


def emergency(
    set_up: SetUp, on_step: Callable[[str], None] = lambda _: None, seconds: float = SECONDS
) -> tuple[Finding, tuple[float, ...]]:
    """Trains the minimal agent and compares what its first and its last matches pay.

    Args:
        set_up: what to examine.
        on_step: called with a line about each update.
        seconds: of processor time to train for.

    Returns:
        The finding M, and the mean reward of the matches that ended, update by update.
    """
    small = minimal(set_up)
    fault = ""
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(small, small.settings, Path(folder))
        curve = _Curve(time.process_time() + seconds, on_step)
        try:
            model.learn(small.settings.learner.steps, callback=curve)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
    subject = f"{model.num_timesteps:,} steps against {next(iter(small.mix), 'itself')}"
    return compare(curve.matches, subject, fault), tuple(curve.rewards)


class _Curve(BaseCallback):
    """Notes what the matches of each rollout paid, and ends the training when time is over."""

    def __init__(self, until: float, on_update: Callable[[str], None]) -> None:
        super().__init__()
        self.matches: list[tuple[float, float]] = []
        self.rewards: list[float] = []
        self._until, self._on_update = until, on_update

    def _on_step(self) -> bool:
        return time.process_time() < self._until

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        ended, model.env.finished = model.env.finished, []
        if ended:
            self.matches += [(match.reward, match.score) for match in ended]
            self.rewards.append(float(np.mean([match.reward for match in ended])))
            said = f"{self.num_timesteps:,} steps, reward {self.rewards[-1]:.2f}"
            self._on_update(f"minimal agent: {said}")


def compare(matches: Sequence[tuple[float, float]], subject: str, fault: str) -> Finding:
    """The finding M: whether the last matches (reward and score of each) pay more than the first.

    Quick matches end first, so the first of every row of the batch are compared together.
    """
    compared = min(MOST_COMPARED, len(matches) // 2)
    if fault or compared < FEWEST_COMPARED:
        said = fault or f"only {len(matches)} matches ended in this time"
        fix = "fix what stopped it first"
        return judged("M", said, failure=bool(fault), warning=not fault, fix=fix)
    before, after = np.array(matches[:compared]), np.array(matches[-compared:])
    (first, score), (last, final) = before.mean(0), after.mean(0)
    error = math.sqrt((before[:, 0].var() + after[:, 0].var()) / compared)
    return judged(
        "M",
        f"{subject}: a match paid {first:.3g} at first, {last:.3g} at last; score {score:.0%} to "
        f"{final:.0%}",
        failure=not last - first > SIGNIFICANT * error,
        fix="the game or its rewards are broken, and no setting cures it: look at reasons 1 to 10",
    )
