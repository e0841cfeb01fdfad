"""Trains for a short time with the parts of a normal learner, and judges the numbers that it logs.

There are two trainings. The first makes a few updates on fewer matches, to judge the agent and the
settings of the set-up. The second (`--emergency`) trains the minimal agent. It keeps the game and
the rewards, and replaces everything else: the network is the smallest, the settings learn quickly
(docs/benchmarks.md), and the matches are many and short. The opponent is the easiest bot that
random play does not already beat. If this agent learns nothing, the game or the rewards are at
fault.

A reason such as 11 or M is an entry of `learner.doctor.findings.REASONS`, which lists the reasons
why an agent may not learn.

Shape suffixes: X rows (history and then T steps), T steps, B matches, O observation, A actions.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import cast

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.games.base import CHOICE
from league.runs.alarms import ENTROPY_LOW, ENTROPY_SHARE, KL_LARGEST
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.game import random_play
from learner.doctor.setup import SetUp, build_model, smaller
from learner.ppo.league_ppo import LeaguePPO
from learner.ppo.loss import weighted_mean
from learner.rollout.buffer import Minibatch
from learner.rollout.mix_source import MixSource
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings

UPDATES = 5
TOO_NARROW, NARROW = 8, 16
"""Widths of the narrowest layer below which the check fails, and below which it warns. An LSTM of
width 3 learnt 70 % of simple facts about its input, and an LSTM of width 8 less than 80 %. The
narrowest layer of the smallest agent has width 64.
"""
VANISHED, EXPLODED, STILL_LARGE = 1e-6, 100.0, 30.0
STUCK = 1e-7
"""KL divergence below which a policy has not moved at all."""
MANY_WEIGHTS = 20_000.0
"""Number of weights per decision of a rollout above which a network memorises the rollout. After an
agent of the size `base` was trained on two matches of 16 decisions, its accuracy on these matches
was 20 percentage points higher than on other matches."""
EMERGENCY_SECONDS = 40.0
"""Processor time for which the minimal agent trains, in seconds. On a busy machine the training
takes longer, but the agent makes as many steps.
"""
EASY = 0.75
"""If random play scores at least this much against a bot, the bot leaves nothing to learn."""
MATCH_SECONDS = 30.0
FEWEST_COMPARED, MOST_COMPARED = 128, 2048
"""Smallest and largest number of matches that are compared from each end of the training. The
smallest number is also the number of matches that the minimal agent plays at once.
"""
SIGNIFICANT = 3.0
"""The mean reward of the last matches must exceed the mean reward of the first matches by this many
standard errors.
"""
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
"""The minimal agent's settings of [learner]. They replace all settings that matter except gamma,
which belongs to the rewards."""
OF_WEIGHTS = frozenset({"11", "12", "16", "18", "20", "V", "M"})
"""The reasons that depend on the weights with which the training begins. (M does not, but it
follows from anything.)"""
NEED_TRAINING = ("11", "12", "13", "14", "15", "16", "18", "20", "B", "V")


def optimizer_steps(learner: LearnerSettings) -> int:
    """Returns the number of optimizer steps for each rollout."""
    return learner.n_epochs * -(-learner.matches * learner.n_steps // learner.batch_size)


def examine_training(set_up: SetUp, updates: int = UPDATES) -> list[Finding]:
    """Trains on the CPU for a few updates against the mix's bots. Judges reasons 11 to 18, 20, B
    and V.
    """
    learner, watch, few = set_up.settings.learner, _Watch(set_up), smaller(set_up)
    model, fault = _trained(set_up, few, updates * few.learner.matches * few.learner.n_steps, watch)
    if not fault:
        watch.read_update()
    steps, noisy = optimizer_steps(learner), learner.batch_size < 32
    findings = [
        *watch.findings,
        judged(
            "17",
            f"{learner.batch_size} decisions, {steps} optimizer steps a rollout",
            failure=learner.batch_size < 8,
            warning=noisy or steps < 4,
            fix="raise learner.batch_size"
            if noisy
            else "lower learner.batch_size, or raise learner.n_epochs",
        ),
    ]
    if fault:
        fix = "lower learner.learning_rate tenfold"
        findings.append(judged("16", fault, failure=True, fix=fix))
    source = cast(MixSource, model.env.source)
    if not fault and not source.failed:
        due = watch.due + float(model.env.terms_NK.sum())  # plus matches in progress
        findings.append(
            judged(
                "B",
                f"matches paid {due:.4g} by their accounts, {watch.arrived:.4g} arrived",
                failure=abs(watch.arrived - due) > 1e-3 * watch.absolute,
                fix="clip no reward on its way: the learner scales wins and steps alike",
            )
        )
    if watch.updates:
        findings += _gradients(model.policy.network, watch.updates)
        findings += _updates(set_up, watch.updates, float(model.buffer.target_TN.std()))
    measured = {finding.key for finding in findings}
    why = fault or "a match failed"
    return findings + [unknown(key, why) for key in NEED_TRAINING if key not in measured]


def _trained(
    set_up: SetUp, settings: SessionSettings, steps: int, callback: BaseCallback
) -> tuple[LeaguePPO, str]:
    """Trains for `steps` steps. Returns the model and the fault that stopped the training (""
    without a fault).
    """
    fault = ""
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(set_up, settings, Path(folder))
        try:
            model.learn(steps, callback=callback)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
    return model, fault


class _Watch(BaseCallback):
    """Reads the logs between updates, and judges the network after the first rollout."""

    model: LeaguePPO

    def __init__(self, set_up: SetUp) -> None:
        super().__init__()
        self.set_up = set_up
        self.updates: list[dict[str, float]] = []
        self.findings: list[Finding] = []
        self.arrived = self.absolute = self.due = 0.0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        if self.findings:
            self.read_update()

    def read_update(self) -> None:
        """Keeps the numbers that the last update logged."""
        self.updates.append(dict(self.model.logger.name_to_value))

    def _on_rollout_end(self) -> None:
        rewards_TN = self.model.buffer.reward_TN.astype(np.float64)
        self.arrived += float(rewards_TN.sum())
        self.absolute += float(np.abs(rewards_TN).sum())
        self.due += sum(match.reward for match in self.model.env.finished)
        self.model.env.finished = []
        if not self.findings:
            batch = next(self.model.buffer.minibatches(self.model.n_envs, np.random.default_rng(0)))
            self.findings += _size(self.set_up, self.model)
            self.findings += [_leak(self.model, batch), _entropy(self.model, batch)]


def _size(set_up: SetUp, model: LeaguePPO) -> Iterator[Finding]:
    """Judges reasons 13 and 14, by the network's narrowest layer and by its number of weights for
    each decision of a rollout.
    """
    network, learner = model.policy.network, set_up.settings.learner
    weights = sum(parameter.numel() for parameter in network.parameters())
    narrowest = min(model.agent.width, model.agent.memory, *model.agent.head_widths)
    yield judged(
        "13",
        f"{weights:,} weights; the narrowest layer holds {narrowest} numbers",
        failure=narrowest < TOO_NARROW,
        warning=narrowest < NARROW,
        fix="choose a larger agent.size (tiny, base, large)",
    )
    rollout = learner.matches * learner.n_steps
    yield judged(
        "14",
        f"{weights / rollout:,.0f} weights for each of {rollout:,} decisions of a rollout",
        warning=weights / rollout > MANY_WEIGHTS,
        fix="choose a smaller agent.size, or larger rollouts (learner.matches, learner.n_steps)",
    )


@torch.no_grad()
def _leak(model: LeaguePPO, batch: Minibatch) -> Finding:
    """Judges reason 15 (LSTM states not reset). Sets an episode start in the middle of the rollout,
    and changes all inputs before this start. The outputs after the start must stay the same.
    """
    prefix, half = model.buffer.context, model.n_steps // 2
    starts, changed = batch.starts_XB.clone(), batch.obs_XBO.clone()
    starts[prefix + half] = True
    changed[: prefix + half] = changed[: prefix + half].flip(1) * -0.5
    noise = torch.linspace(-1, 1, batch.h_BH.numel()).view_as(batch.h_BH)
    other = replace(batch, obs_XBO=changed, h_BH=batch.h_BH + noise, c_BH=batch.c_BH + noise)
    first, second = (model.unroll(replace(sample, starts_XB=starts)) for sample in (batch, other))
    leak = max(
        float((a[half:] - b[half:]).abs().max())
        for a, b in [(first.logits_TBA, second.logits_TBA), (first.value_TB, second.value_TB)]
    )
    return judged(
        "15",
        f"the past moves outputs after a start by {leak:.1g}",
        failure=leak > 1e-3,
        fix="clear LSTM and history wherever an episode starts, and pass on every match's end",
    )


@torch.no_grad()
def _entropy(model: LeaguePPO, batch: Minibatch) -> Finding:
    """Judges reason 18 (entropy too low). Measures the entropy as a share of the largest possible
    entropy over the legal actions.
    """
    logits = model.unroll(batch).logits_TBA
    now, most = (
        weighted_mean(
            action_distribution(model.agent.action_kind, x_TBA, batch.legal_TBA).entropy(),
            batch.decided_TB(),
        )
        for x_TBA in (logits, torch.zeros_like(logits))
    )
    share, coefficient = float(now / most) if most > 0 else 0.0, model.settings.ent_coef
    return judged(
        "18",
        f"{share:.0%} of the largest entropy; ent_coef {coefficient:g}",
        failure=share < ENTROPY_SHARE,
        warning=share < ENTROPY_LOW or coefficient == 0.0,
        fix="raise learner.ent_coef (0.003 to 0.02 learnt here); start from a policy that still "
        "explores",
    )


def _gradients(network: AgentNetwork, updates: list[dict[str, float]]) -> Iterator[Finding]:
    """Judges reasons 11 and 12 (vanishing and exploding gradients), by the gradient of each part of
    the network in the first minibatch, and by the gradient norms of later updates.
    """
    norms = {
        name: updates[0].get(f"gradient/{name}", 0.0)
        for name, module in network.named_children()
        if next(module.parameters(), None) is not None
    }
    norm = math.hypot(*norms.values())
    lost = [name for name, size in norms.items() if not size > VANISHED]
    least, most = min(norms, key=norms.__getitem__), max(norms, key=norms.__getitem__)
    yield judged(
        "11",
        f"norm {norm:.3g} over {len(norms)} parts, least {norms[least]:.2g} in {least}"
        + (f"; without gradient: {', '.join(lost)}" if lost else ""),
        failure=bool(lost),
        fix="connect the part to the loss: no detach, no dead activation, orthogonal start",
    )
    usual = median(update["learning/gradient_norm"] for update in updates)
    large = norm > EXPLODED  # alone it is no failure, because the gradient is clipped
    yield judged(
        "12",
        f"norm {norm:.3g} at first (most in {most}), then {usual:.3g}",
        failure=not math.isfinite(norm) or (large and usual > EXPLODED),
        warning=large and usual > STILL_LARGE,
        fix="lower game.reward_weights and the start of the part named",
    )


def _updates(set_up: SetUp, updates: list[dict[str, float]], spread: float) -> Iterator[Finding]:
    """Judges reasons 16 and 20, by how far updates move the policy, and reason V, by whether the
    critic fits its targets.
    """
    learner = set_up.settings.learner
    kls = [update["policy/approx_kl"] for update in updates]
    # The KL divergence is measured before each optimizer step, so it is 0 in the first step.
    stuck = max(kls) < STUCK and optimizer_steps(learner) > 1
    yield judged(
        "16",
        f"at {learner.learning_rate:g} an update moves the policy by a KL of {fmean(kls):.2g}, "
        f"at most {max(kls):.2g}",
        failure=max(kls) > 2.0 * KL_LARGEST or stuck,
        warning=max(kls) > KL_LARGEST,
        fix=f"{'raise' if stuck else 'lower'} learner.learning_rate tenfold",
    )
    clipped = fmean(update["policy/clip_fraction"] for update in updates)
    yield judged(
        "20",
        f"{clipped:.0%} of ratios clipped at {learner.clip_range:g} while KL is {fmean(kls):.1g}",
        failure=clipped > 0.5 and fmean(kls) < 0.01,
        fix="raise learner.clip_range to 0.2",
    )
    explained = [update["value/explained_variance"] for update in updates]
    yield judged(
        "V",
        f"explained variance {explained[0]:.2f} at first, {explained[-1]:.2f} after "
        f"{len(explained)} updates; targets deviate by {spread:.2g}",
        failure=not spread > 1e-6 or math.isnan(explained[-1]),
        warning=explained[-1] < -0.3,
        fix="fix the rewards (6 to 8): a critic can only learn what is paid; else lower "
        "learner.learning_rate",
    )


def minimal(set_up: SetUp) -> SetUp:
    """Returns a set-up with the same game and rewards, the minimal agent and a single opponent."""
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
    if not set_up.bots:
        return replace(short, mix={})
    scores_N = np.nan_to_num(random_play(short, set_up.bots, seed=7).first_scores(), nan=0.5)
    bots = len(set_up.bots)
    means = {name: float(scores_N[n::bots].mean()) for n, name in enumerate(set_up.bots)}
    hard = {name: mean for name, mean in means.items() if mean < EASY} or means
    return replace(short, mix={max(hard, key=hard.__getitem__): 1.0})


def train_minimal_agent(
    set_up: SetUp, seconds: float = EMERGENCY_SECONDS
) -> tuple[Finding, tuple[float, ...]]:
    """Trains the minimal agent and compares the rewards of its first and its last matches.

    Args:
        set_up: the game and the rewards.
        seconds: processor time to train for.

    Returns:
        The finding on reason M (the minimal agent learns nothing), and for each rollout the mean
        reward of the matches that ended in it.
    """
    small, curve = minimal(set_up), _Curve(seconds)
    model, fault = _trained(small, small.settings, small.settings.learner.steps, curve)
    subject = f"{model.num_timesteps:,} steps against {next(iter(small.mix), 'itself')}"
    return compare(curve.matches, subject, fault), tuple(curve.rewards)


class _Curve(BaseCallback):
    """Keeps the rewards of the matches that ended in each rollout, and ends the training when the
    time is up.
    """

    model: LeaguePPO

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.matches: list[tuple[float, float]] = []
        self.rewards: list[float] = []
        self._until = time.process_time() + seconds

    def _on_step(self) -> bool:
        return time.process_time() < self._until

    def _on_rollout_end(self) -> None:
        ended, self.model.env.finished = self.model.env.finished, []
        self.matches += [(match.reward, match.score) for match in ended]
        if ended:
            self.rewards.append(float(np.mean([match.reward for match in ended])))


def compare(matches: Sequence[tuple[float, float]], subject: str, fault: str) -> Finding:
    """Judges reason M, by whether the last matches have higher rewards than the first matches.

    Compares equally many matches from the start and from the end of the training. Of the matches
    that are played at once, short matches end first. So the number of compared matches is at least
    the number of matches played at once (`FEWEST_COMPARED`). Otherwise long matches would be
    missing at the start.

    Args:
        matches: the reward and score of each match, in the order in which the matches ended.
        subject: the game and the opponent, in words.
        fault: the fault that stopped the training, "" without a fault.
    """
    compared = min(MOST_COMPARED, len(matches) // 2)
    if fault or compared < FEWEST_COMPARED:
        measured = fault or f"only {len(matches)} matches ended in this time"
        fix = "fix what stopped it first"
        return judged("M", measured, failure=bool(fault), warning=True, fix=fix)
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
