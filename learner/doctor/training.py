"""A short piece of real training, watched closely: the main job's own parts on fewer matches.

Shape suffixes: X rows of history and rollout, T steps, B matches, O observation, A actions.
"""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork, UnrollOutput
from league.errors import LeagueError
from league.runs.alarms import ENTROPY_LOW, ENTROPY_SHARE, KL_LARGEST
from learner.doctor.findings import Finding, judged, unknown
from learner.doctor.setup import SetUp, build_model
from learner.ppo.divergence import kl_to_fixed
from learner.ppo.league_ppo import LeaguePPO
from learner.ppo.loss import weighted_mean
from learner.rollout.buffer import Minibatch
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings

UPDATES = 5
TOO_NARROW, NARROW = 8, 16
"""Numbers in a layer: an LSTM of three learnt 70 % of simple facts of what it saw, one of eight not
80 %, and the smallest agent's narrowest layer holds 64."""
VANISHED, EXPLODED, STILL_LARGE = 1e-6, 100.0, 30.0
STUCK = 1e-7
"""KL divergence below which a policy has not moved at all."""
MANY_WEIGHTS = 20_000.0
"""Weights for each decision of a rollout, above which a network learns it by heart: on two matches
of 16 decisions, `base` knew 20 points more of them than of others."""
MISREAD = 0.05
"""Deviations of the targets by which the learner may read other values than the actor did; rounding
to 16 bits stays below 0.01."""
NEED_TRAINING = ("11", "12", "13", "14", "15", "16", "18", "20", "V")


def optimizer_steps(learner: LearnerSettings) -> int:
    """Optimizer steps made on one rollout."""
    return learner.n_epochs * -(-learner.matches * learner.n_steps // learner.batch_size)


def examine_training(set_up: SetUp, updates: int = UPDATES) -> Iterator[Finding]:
    """11 to 18, 20 and V: trains for a few updates against the mix's bots, on the CPU."""
    settings, learner = _smaller(set_up), set_up.settings.learner
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(set_up, settings, Path(folder))
        watch, fault = _Watch(set_up), ""
        try:
            model.learn(updates * model.n_envs * model.n_steps, callback=watch)
            watch.read_update(model)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
        yield from watch.findings
        yield _batch_size(learner)
        if fault:
            fix = "lower learner.learning_rate tenfold"
            yield judged("16", fault, failure=True, fix=fix)
        judged_keys = {finding.key for finding in watch.findings} | ({"16"} if fault else set())
        if not watch.updates:
            fix = "fix what stopped the training first"
            for key in NEED_TRAINING:
                if key not in judged_keys and fault:
                    yield judged(key, f"not measured: {fault}", warning=True, fix=fix)
                elif key not in judged_keys:
                    yield unknown(key, "no update was made")
            return
        yield from _gradients(watch)
        moved = 0.0 if fault else _distance(model, watch.first)
        yield from _updates(set_up, model, watch, moved, fault)


def _smaller(set_up: SetUp) -> SessionSettings:
    """The settings with fewer matches and steps, and the same number of minibatches if it fits."""
    learner = set_up.settings.learner
    tiny = set_up.settings.agent.size == "tiny"
    matches = min(learner.matches, 64 if tiny else 8)
    steps = min(learner.n_steps, 32 if tiny else 16)
    minibatches = max(1, learner.matches * learner.n_steps // learner.batch_size)
    sequences = max(1, matches // min(minibatches, matches))
    changed = {
        "matches": matches,
        "n_steps": steps,
        "batch_size": sequences * steps,
        "n_epochs": learner.n_epochs if tiny else min(learner.n_epochs, 2),
    }
    return replace(set_up.settings, learner=learner.model_copy(update=changed))


class _Watch(BaseCallback):
    """Reads the logs between updates, and judges the network after the first rollout."""

    def __init__(self, set_up: SetUp) -> None:
        super().__init__()
        self.set_up = set_up
        self.updates: list[dict[str, float]] = []
        self._read = 0  # optimizer steps
        self.findings: list[Finding] = []
        self.first: AgentNetwork | None = None
        self.value_gap = 0.0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self.read_update(self.model)  # type: ignore[arg-type]

    def read_update(self, model: LeaguePPO) -> None:
        """Keeps what the last update logged, if there was one since the last call."""
        if model._n_updates > self._read:
            self._read = model._n_updates
            self.updates.append(dict(model.logger.name_to_value))

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        model.env.finished = []
        if self.first is None:
            self.first = copy.deepcopy(model.policy.network)
            rng_state = torch.get_rng_state()
            batch = _rollout(model)
            with torch.no_grad():
                values_TB = _unroll(model, self.first, batch).value_TB
            self.value_gap = float((values_TB - batch.value_TB).abs().mean())
            self.findings += [
                *_size(self.set_up, self.first),
                _leak(model, batch),
                _entropy(model, batch),
            ]
            torch.set_rng_state(rng_state)


def _rollout(model: LeaguePPO) -> Minibatch:
    """The whole rollout in the model's buffer."""
    return next(model.buffer.minibatches(model.n_envs, np.random.default_rng(0)))


def _unroll(model: LeaguePPO, network: AgentNetwork, batch: Minibatch) -> UnrollOutput:
    return network.unroll(
        batch.obs_XBO,
        batch.starts_XB,
        batch.h_BH,
        batch.c_BH,
        batch.time_left_TB,
        prefix=model.buffer.context,
    )


@torch.no_grad()
def _distance(model: LeaguePPO, first: AgentNetwork | None) -> float:
    """KL divergence of the model's policy from that of `first`, mean over the rollout."""
    batch = _rollout(model)
    assert first is not None
    now, before = (
        _unroll(model, network, batch).logits_TBA for network in (model.policy.network, first)
    )
    apart_TB = kl_to_fixed(model.agent.action_kind, now, before, batch.legal_TBA)
    return float(weighted_mean(apart_TB, batch.decided_TB()))


def _size(set_up: SetUp, network: AgentNetwork) -> Iterator[Finding]:
    """13 and 14: the narrowest layer, and the weights for each decision of a rollout."""
    config, learner = network.config, set_up.settings.learner
    weights = sum(parameter.numel() for parameter in network.parameters())
    narrowest = min(config.width, config.memory, *config.head_widths)
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
    """15: how far another past moves outputs after an episode's start in mid-rollout."""
    prefix, half = model.buffer.context, model.n_steps // 2
    starts, changed = batch.starts_XB.clone(), batch.obs_XBO.clone()
    starts[prefix + half] = True
    changed[: prefix + half] = changed[: prefix + half].flip(1) * -0.5
    noise = torch.linspace(-1, 1, batch.h_BH.numel()).view_as(batch.h_BH)
    other = replace(batch, obs_XBO=changed, h_BH=batch.h_BH + noise, c_BH=batch.c_BH + noise)
    one, another = (
        _unroll(model, model.policy.network, replace(each, starts_XB=starts))
        for each in (batch, other)
    )
    leak = max(
        float((a[half:] - b[half:]).abs().max())
        for a, b in [(one.logits_TBA, another.logits_TBA), (one.value_TB, another.value_TB)]
    )
    return judged(
        "15",
        f"the past moves outputs after a start by {leak:.1g}",
        failure=leak > 1e-3,
        fix="clear LSTM and history wherever an episode starts, and pass on every match's end",
    )


@torch.no_grad()
def _entropy(model: LeaguePPO, batch: Minibatch) -> Finding:
    """18: the entropy as a share of the largest that the legal actions allow."""
    logits = _unroll(model, model.policy.network, batch).logits_TBA
    now, most = (
        weighted_mean(
            action_distribution(model.agent.action_kind, each, batch.legal_TBA).entropy(),
            batch.decided_TB(),
        )
        for each in (logits, torch.zeros_like(logits))
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


def _batch_size(learner: LearnerSettings) -> Finding:
    steps, noisy = optimizer_steps(learner), learner.batch_size < 32
    return judged(
        "17",
        f"{learner.batch_size} decisions, {steps} optimizer steps a rollout",
        failure=learner.batch_size < 8,
        warning=noisy or steps < 4,
        fix="raise learner.batch_size"
        if noisy
        else "lower learner.batch_size, or raise learner.n_epochs",
    )


def _gradients(watch: _Watch) -> Iterator[Finding]:
    """11 and 12: gradients of the first minibatch by part of the network, and of later ones."""
    assert watch.first is not None
    first = watch.updates[0]
    norms = {
        name: first.get(f"gradient/{name}", 0.0)
        for name, part in watch.first.named_children()
        if any(True for _ in part.parameters())
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
    usual = median(update["learning/gradient_norm"] for update in watch.updates)
    large = norm > EXPLODED  # a first gradient alone is held by clipping
    yield judged(
        "12",
        f"norm {norm:.3g} at first (most in {most}), then {usual:.3g}",
        failure=not math.isfinite(norm) or (large and usual > EXPLODED),
        warning=large and usual > STILL_LARGE,
        fix="lower game.reward_weights and the start of the part named",
    )


def _updates(
    set_up: SetUp, model: LeaguePPO, watch: _Watch, moved: float, fault: str
) -> Iterator[Finding]:
    """16, 20 and V: how far an update moves, and whether values follow."""
    learner, updates = set_up.settings.learner, watch.updates
    kls = [update["policy/approx_kl"] for update in updates]
    stuck = max(*kls, moved) < STUCK
    if not fault:
        yield judged(
            "16",
            f"at {learner.learning_rate:g} an update moves the policy by a KL of {fmean(kls):.2g}, "
            f"at most {max(kls):.2g}; {len(kls)} of them by {moved:.2g}",
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
    spread, last = float(model.buffer.target_TN.std()), explained[-1]
    flat = not spread > 1e-6
    misread = not flat and watch.value_gap > MISREAD * spread
    if flat:
        fix = "fix the rewards: a critic can only learn what is paid"
    elif misread:
        fix = "let unroll compute what step did: the same weights, views and memory"
    else:
        fix = "lower learner.learning_rate, and look at the rewards (6 to 8)"
    yield judged(
        "V",
        f"explained variance {explained[0]:.2f} at first, {last:.2f} after {len(explained)} "
        f"updates; targets deviate by {spread:.2g}"
        + (f"; the learner reads values {watch.value_gap:.2g} from the actor's" * misread),
        failure=flat or misread or math.isnan(last),
        warning=last < -0.3,
        fix=fix,
    )
