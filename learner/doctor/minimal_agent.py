"""The minimal agent (`--emergency`): can the smallest network learn against the easiest opponent?

About a minute. It keeps the game and the rewards and replaces all else: a tiny network, many short
matches, settings that learnt quickly here (docs/benchmarks.md), and the bot that random play does
best against without beating it.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.games.base import CHOICE
from learner.doctor.findings import Finding, judged
from learner.doctor.play import match_play
from learner.doctor.setup import SetUp, build_model, make_environment
from learner.ppo.league_ppo import LeaguePPO

SECONDS = 40.0
"""Of processor time, so that a busy machine takes longer and finds the same."""
EASY = 0.75
"""Score of random play from which on there is nothing to learn against a bot."""
MATCH_SECONDS = 30.0
TEST_MATCHES = 512
SIGNIFICANT = 3.0
"""Standard errors by which the trained agent's matches must pay more than the fresh one's."""
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
    "target_kl": None,
    "desired_kl": 0.03,
    "forecast_coef": 0.0,
    "max_grad_norm": 0.5,
    "normalize_returns": True,
    "steps": 100_000_000,
}
"""All of the learner's settings that matter but gamma, which belongs to the rewards."""


def minimal(set_up: SetUp, opponent: str) -> SetUp:
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
    return replace(set_up, settings=small, mix={opponent: 1.0}, game=make)


def easiest(set_up: SetUp) -> str:
    """The bot that random play does best against, of those that it does not beat."""
    trace, names = match_play(set_up, set_up.bots, seed=7)
    scores_N = np.nan_to_num(trace.first_scores(), nan=0.5)
    means = {name: float(scores_N[np.array(names) == name].mean()) for name in dict.fromkeys(names)}
    hard = {name: mean for name, mean in means.items() if mean < EASY} or means
    return max(hard, key=lambda name: hard[name])


def emergency(
    set_up: SetUp, on_step: Callable[[str], None] = lambda _: None, seconds: float = SECONDS
) -> tuple[Finding, tuple[float, ...]]:
    """Trains the minimal agent and compares what whole matches pay before and after.

    Args:
        set_up: what to examine.
        on_step: called with a line about each update.
        seconds: of processor time to train for.

    Returns:
        The finding M, and the mean reward of the matches that ended, update by update.
    """
    opponent = easiest(minimal(set_up, "")) if set_up.bots else ""
    small = minimal(set_up, opponent)
    before = after = np.empty((0, 2))
    fault, curve = "", _Curve(time.process_time() + seconds, on_step)
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(small, small.settings, Path(folder))
        try:
            before = play_whole_matches(small, model.policy.network)
            model.learn(small.settings.learner.steps, callback=curve)
            after = play_whole_matches(small, model.policy.network)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
    subject = f"{model.num_timesteps:,} steps against {opponent or 'itself'}"
    return compare(before, after, subject, fault), tuple(curve.rewards)


class _Curve(BaseCallback):
    """Notes what the matches of each rollout paid, and ends the training when time is over."""

    def __init__(self, until: float, on_update: Callable[[str], None]) -> None:
        super().__init__()
        self.rewards: list[float] = []
        self._until, self._on_update = until, on_update

    def _on_step(self) -> bool:
        return time.process_time() < self._until

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        matches, model.env.finished = model.env.finished, []
        if matches:
            self.rewards.append(float(np.mean([match.reward for match in matches])))
            said = f"{self.num_timesteps:,} steps, reward {self.rewards[-1]:.2f}"
            self._on_update(f"minimal agent: {said}")


@torch.inference_mode()
def play_whole_matches(set_up: SetUp, network: AgentNetwork) -> NDArray[np.float64]:
    """Plays matches to their end, sampled, from the same seeds each time.

    Those that end first in training would show too little.

    Returns:
        Reward and score of each match, `[matches, 2]`.
    """
    env = make_environment(set_up, TEST_MATCHES, seed=5)
    kind, generator = set_up.spec.action_kind, torch.Generator().manual_seed(0)
    state, starts = network.initial_state(TEST_MATCHES), torch.ones(TEST_MATCHES, dtype=torch.bool)
    wanted = [f"doctor-{number}" for number in range(TEST_MATCHES)]
    results: dict[str, tuple[float, float]] = {}
    env.opponent_policy.set_live(network)
    observations = env.reset()
    try:
        for _ in range(set_up.spec.max_frames):
            left = torch.as_tensor(env.time_left())
            out = network.step(torch.as_tensor(observations), starts, state, left)
            legal = env.legal()
            legal_NA = None if legal is None else torch.as_tensor(legal)
            actor = action_distribution(kind, out.logits_BA, legal_NA)
            state = out.state
            observations, _, ended = env.step_arrays(actor.sample(generator).numpy())
            starts = torch.as_tensor(ended)
            for match in env.finished:
                results.setdefault(match.assignment.match_id, (match.reward, match.score))
            env.finished = []
            if results.keys() >= set(wanted):
                break
    finally:
        env.game.close()
    played = [results[name] for name in wanted if name in results]
    return np.array(played, np.float64).reshape(-1, 2)


def compare(
    before: NDArray[np.float64], after: NDArray[np.float64], subject: str, fault: str
) -> Finding:
    """The finding M: whether matches `[matches, 2]` pay more after the training than before."""
    if fault or min(len(before), len(after)) < TEST_MATCHES // 2:
        said = fault or "most matches did not end in their time"
        fix = "fix what stopped it first"
        return judged("M", said, failure=bool(fault), warning=not fault, fix=fix)
    (first, score), (last, final) = before.mean(0), after.mean(0)
    error = math.sqrt(before[:, 0].var() / len(before) + after[:, 0].var() / len(after))
    return judged(
        "M",
        f"{subject}: a match paid {first:.3g} before, {last:.3g} after; score {score:.0%} to "
        f"{final:.0%}",
        failure=not last - first > SIGNIFICANT * error,
        fix="the game or its rewards are broken, and no setting cures it: look at reasons 1 to 10",
    )
