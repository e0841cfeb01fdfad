"""The minimal agent: the smallest network against the easiest opponent: can anything be learnt at
all?

About a minute. It keeps the game and the rewards that are examined and replaces all else: a tiny
network, many short matches, settings that learnt quickly here (docs/benchmarks.md), and of the bots
that one which random play does best against without beating it.
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
from learner.doctor.evidence import first_scores
from learner.doctor.findings import Finding, judged
from learner.doctor.game_evidence import match_play
from learner.doctor.probe import build_model, make_environment
from learner.doctor.setup import SetUp
from learner.ppo.league_ppo import LeaguePPO

SECONDS = 40.0
"""Of processor time, so that a busy machine takes longer and finds the same."""
EASY = 0.75
"""Random play that scores as much has nothing to learn against this bot."""
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
    "clip_range_final": None,
    "target_kl": None,
    "desired_kl": 0.03,
    "gae_lambda": 0.95,
    "vf_coef": 0.5,
    "forecast_coef": 0.0,
    "max_grad_norm": 0.5,
    "normalize_returns": True,
    "steps": 100_000_000,
}
"""All of the learner's settings that matter but gamma, which belongs to the rewards."""
Curve = tuple[tuple[int, float, float], ...]
"""(steps, mean reward, score) of the matches that ended, update by update."""


def minimal(set_up: SetUp, opponent: str) -> SetUp:
    """The same game and rewards with the minimal agent and the one opponent."""
    settings = set_up.settings
    learner = settings.learner.model_copy(update=MINIMAL_LEARNER)
    game = settings.game
    keys = set_up.spec.action_kind != CHOICE
    agent = settings.agent.model_copy(update={"size": "tiny", "sequence_length": 17})
    long = keys and set_up.spec.max_frames > MATCH_SECONDS * set_up.spec.frames_per_second
    if long:
        game = game.model_copy(update={"match_seconds": MATCH_SECONDS})
    make = game.make if set_up.game == settings.game.make else set_up.game
    return replace(
        set_up,
        settings=replace(settings, learner=learner, agent=agent, game=game),
        mix={opponent: 1.0},
        game=make,
    )


def easiest(set_up: SetUp) -> str:
    """The bot that random play does best against, of those that it does not beat."""
    scores: dict[str, list[float]] = {}
    trace, names = match_play(set_up, set_up.bots, seed=7)
    for name, score in zip(names, first_scores(trace), strict=True):
        scores.setdefault(name, []).append(0.5 if math.isnan(score) else float(score))
    means = {name: float(np.mean(values)) for name, values in scores.items()}
    hard = {name: mean for name, mean in means.items() if mean < EASY} or means
    return max(hard, key=lambda name: hard[name])


class _Curve(BaseCallback):
    """Notes what the matches of each rollout paid, and ends the training when the time is over."""

    def __init__(self, until: float, on_update: Callable[[str], None]) -> None:
        super().__init__()
        self.points: list[tuple[int, float, float]] = []
        self._until, self._on_update = until, on_update

    def _on_step(self) -> bool:
        return time.process_time() < self._until

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        env = model.env
        matches, env.finished = env.finished, []
        if matches:
            reward = float(np.mean([match.reward for match in matches]))
            score = float(np.mean([match.score for match in matches]))
            self.points.append((self.num_timesteps, reward, score))
            said = f"{self.num_timesteps:,} steps, reward {reward:.2f}, score {score:.0%}"
            self._on_update(f"minimal agent: {said}")


def emergency(
    set_up: SetUp, on_step: Callable[[str], None] = lambda _: None, seconds: float = SECONDS
) -> tuple[Finding, Curve]:
    """Trains the minimal agent for `seconds`; the finding says whether its matches came to pay
    more.

    The same matches are played whole before and after: those that end first in training tell
    little.
    """
    opponent = easiest(minimal(set_up, "")) if set_up.bots else ""
    small = minimal(set_up, opponent)
    fault = ""
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(small, small.settings, Path(folder))
        before = after = np.empty((0, 2))
        curve = _Curve(time.process_time() + seconds, on_step)
        try:
            before = test_matches(small, model.policy.network)
            model.learn(small.settings.learner.steps, callback=curve)
            after = test_matches(small, model.policy.network)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
    return _verdict(before, after, model.num_timesteps, opponent, fault), tuple(curve.points)


@torch.inference_mode()
def test_matches(set_up: SetUp, network: AgentNetwork) -> NDArray[np.float64]:
    """Rewards and scores of whole matches, sampled play from the same seeds each time: [matches,
    2].
    """
    env = make_environment(set_up, TEST_MATCHES, seed=5)
    kind, generator = set_up.spec.action_kind, torch.Generator().manual_seed(0)
    state, starts = network.initial_state(TEST_MATCHES), torch.ones(TEST_MATCHES, dtype=torch.bool)
    results: dict[str, tuple[float, float]] = {}
    env.opponent_policy.set_live(network)
    observations = env.reset()
    try:
        for _ in range(set_up.spec.max_frames):
            left = torch.as_tensor(env.time_left())
            out = network.step(torch.as_tensor(observations), starts, state, left)
            legal = env.legal()
            actor = action_distribution(
                kind, out.logits_BA, None if legal is None else torch.as_tensor(legal)
            )
            state = out.state
            observations, _, ended = env.step_arrays(actor.sample(generator).numpy())
            starts = torch.as_tensor(ended)
            for match in env.finished:
                results.setdefault(match.assignment.match_id, (match.reward, match.score))
            env.finished = []
            if sum(int(name.rpartition("-")[2]) < TEST_MATCHES for name in results) == TEST_MATCHES:
                break
    finally:
        env.game.close()
    first = [f"doctor-{number}" for number in range(TEST_MATCHES)]
    return np.array([results[name] for name in first if name in results], np.float64).reshape(-1, 2)


def _verdict(
    before: NDArray[np.float64], after: NDArray[np.float64], steps: int, opponent: str, fault: str
) -> Finding:
    if fault or min(len(before), len(after)) < TEST_MATCHES // 2:
        said = fault or "most matches did not end in their time"
        return judged(
            "M", said, failure=bool(fault), warning=not fault, fix="mend what stopped it first"
        )
    (first, score), (last, final) = before.mean(0), after.mean(0)
    error = math.sqrt(before[:, 0].var() / len(before) + after[:, 0].var() / len(after))
    return judged(
        "M",
        f"{steps:,} steps against {opponent or 'itself'}: a match paid {first:.3g} before, {last:.3g} after; "
        f"score {score:.0%} to {final:.0%}",
        failure=not last - first > SIGNIFICANT * error,
        fix="the game or its rewards are broken, and no setting cures it: look at reasons 1 to 10",
    )
