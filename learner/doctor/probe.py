"""A short piece of real training, watched closely: the main job's own parts on fewer matches.

Shape suffixes: X rows of history and rollout, T steps, B matches, O observation, A actions.
"""

from __future__ import annotations

import copy
import math
import tempfile
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from torch import Tensor, nn
from torch.nn import functional

from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork, UnrollOutput
from league.errors import LeagueError
from learner.doctor.setup import SetUp, build_model
from learner.ppo.divergence import kl_to_fixed
from learner.ppo.league_ppo import LeaguePPO
from learner.ppo.loss import (
    advantage_sums,
    clipped_policy_loss,
    normalised,
    value_loss,
    weighted_mean,
)
from learner.rollout.buffer import Minibatch
from learner.settings import LearnerSettings
from learner.train.build import SessionSettings

UPDATES = 5
LARGE = 1_000_000
"""Weights above which a network gets the shorter supervised fit."""
FIT = {False: (80, 5e-3), True: (45, 1e-3)}
"""Optimizer steps and step size of the supervised fit, by whether the network is large."""
LOGGED = {
    "kl": "policy/approx_kl",
    "clip_fraction": "policy/clip_fraction",
    "explained_variance": "value/explained_variance",
    "gradient_norm": "learning/gradient_norm",
}


@dataclass(frozen=True, kw_only=True)
class UpdateLog:
    """What one update of the probe logged."""

    kl: float
    clip_fraction: float
    explained_variance: float
    gradient_norm: float
    minibatches: int


@dataclass(frozen=True, kw_only=True)
class NetworkEvidence:
    """What one rollout shows of a network before its first update.

    Attributes:
        parameters: their number.
        gradients: norm of the loss's gradient by part of the network.
        norm: of all parts together, before clipping.
        noise_scale: tr(Σ)/|G|² of the loss's gradient in decisions (McCandlish et al. 2018, arXiv
            1812.06162, eq. 2.8); a batch far below it points anywhere. None for one sequence.
        sensitivity: by input, how far logits and value move when it is another match's.
        leak: how far what came before an episode's start moves the outputs after it; 0 if sound.
        entropy_share: entropy as a share of the largest that the action space allows.
        fit_train, fit_held_out: share of right answers about simple facts of the observation after
            a short supervised training, on its rows and on other matches; a guess has 0.5.
        value_gap: mean distance of the values that the learner reads from those the actor noted.
        adam_epsilon: what Adam adds to the root of a squared gradient.
    """

    parameters: int
    gradients: dict[str, float]
    norm: float
    noise_scale: float | None
    sensitivity: dict[str, float]
    leak: float
    entropy_share: float
    fit_train: float
    fit_held_out: float
    value_gap: float
    adam_epsilon: float


@dataclass(frozen=True, kw_only=True)
class ProbeEvidence:
    """What a short training showed.

    Attributes:
        learner: the settings it ran with: those of the set-up on fewer matches.
        updates: logs in order; fewer than asked for when `fault` stopped the training.
        fault: the error that refused an update; empty when none did.
        planned_minibatches: minibatches of an update that is not cut short.
        target_spread: standard deviation of the values' targets in the last rollout.
        network: measurements on the first rollout; None when there was none.
        moved: KL divergence of the last policy from the first, on the last rollout.
    """

    learner: LearnerSettings
    updates: tuple[UpdateLog, ...]
    fault: str
    planned_minibatches: int
    target_spread: float
    network: NetworkEvidence | None
    moved: float


def optimizer_steps(learner: LearnerSettings) -> int:
    """Optimizer steps made on one rollout."""
    return learner.n_epochs * -(-learner.matches * learner.n_steps // learner.batch_size)


def probe(set_up: SetUp, updates: int = UPDATES) -> ProbeEvidence:
    """Trains for a few updates against the mix's bots, on the CPU; seconds with the tiny agent."""
    settings = _smaller(set_up)
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(set_up, settings, Path(folder))
        watch, fault = _Watch(), ""
        try:
            model.learn(updates * model.n_envs * model.n_steps, callback=watch)
        except (LeagueError, ValueError) as error:
            fault = str(error).splitlines()[0]
        finally:
            model.env.game.close()
        watch.read_update(model)
        with np.errstate(all="ignore"):
            target_spread = float(model.buffer.target_TN.std())
        return ProbeEvidence(
            learner=settings.learner,
            updates=tuple(watch.updates),
            fault=fault,
            planned_minibatches=optimizer_steps(settings.learner),
            target_spread=target_spread,
            network=watch.network,
            moved=0.0 if watch.first is None or fault else _distance(model, watch.first),
        )


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
    """Reads the logs between updates, and looks at the network after the first rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[UpdateLog] = []
        self.network: NetworkEvidence | None = None
        self.first: AgentNetwork | None = None
        self._minibatches = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self.read_update(self.model)  # type: ignore[arg-type]

    def read_update(self, model: LeaguePPO) -> None:
        """Takes in the last update, if there was one since the last call."""
        if not hasattr(self, "model"):  # the first reset failed
            return
        values, made = model.logger.name_to_value, model._n_updates - self._minibatches
        if made and LOGGED["kl"] in values:
            self._minibatches = model._n_updates
            logged = {name: float(values[tag]) for name, tag in LOGGED.items()}
            self.updates.append(UpdateLog(minibatches=made, **logged))

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        model.env.finished = []
        if self.network is None:
            self.first = copy.deepcopy(model.policy.network)
            self.network = look_at_network(model)


def look_at_network(model: LeaguePPO) -> NetworkEvidence:
    """Measures on the rollout in the model's buffer; restores weights and random state."""
    network, buffer, prefix = model.policy.network, model.buffer, model.buffer.context
    rng_state = torch.get_rng_state()
    sequences = list(buffer.minibatches(1, np.random.default_rng(0)))
    whole = _rollout(model)
    by_part = _gradients(model, whole)
    norm = math.sqrt(sum(by_part.values()))
    fit_train, fit_held_out = _fit(network, whole, prefix)
    with torch.no_grad():
        values_TB = _unroll(network, whole, prefix).value_TB
    evidence = NetworkEvidence(
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        gradients={name: math.sqrt(square) for name, square in by_part.items()},
        norm=norm,
        noise_scale=_noise_scale(model, sequences, norm),
        sensitivity=_sensitivity(network, whole, prefix),
        leak=_leak(network, whole, prefix),
        entropy_share=_entropy_share(model, whole),
        fit_train=fit_train,
        fit_held_out=fit_held_out,
        value_gap=float((values_TB - whole.value_TB).abs().mean()),
        adam_epsilon=float(model.policy.optimizer.defaults["eps"]),
    )
    network.zero_grad(set_to_none=True)
    torch.set_rng_state(rng_state)
    return evidence


def _rollout(model: LeaguePPO) -> Minibatch:
    """The whole rollout in the model's buffer."""
    return next(model.buffer.minibatches(model.n_envs, np.random.default_rng(0)))


@torch.no_grad()
def _distance(model: LeaguePPO, first: AgentNetwork) -> float:
    """KL divergence of the model's policy from that of `first`, mean over the rollout."""
    batch = _rollout(model)
    now, before = (
        _unroll(network, batch, model.buffer.context).logits_TBA
        for network in (model.policy.network, first)
    )
    apart_TB = kl_to_fixed(model.agent.action_kind, now, before, batch.legal_TBA)
    return float(weighted_mean(apart_TB, batch.decided_TB()))


def _unroll(network: AgentNetwork, batch: Minibatch, prefix: int) -> UnrollOutput:
    return network.unroll(
        batch.obs_XBO, batch.starts_XB, batch.h_BH, batch.c_BH, batch.time_left_TB, prefix=prefix
    )


def _loss(model: LeaguePPO, batch: Minibatch) -> Tensor:
    """PPO's loss of a minibatch with the weights that the learner's settings give its terms."""
    out = _unroll(model.policy.network, batch, model.buffer.context)
    actor = action_distribution(model.agent.action_kind, out.logits_TBA, batch.legal_TBA)
    decided_TB = batch.decided_TB()
    policy = clipped_policy_loss(
        actor.log_prob(batch.actions_TBA),
        batch.log_prob_TB,
        normalised(batch.advantage_TB, advantage_sums(batch.advantage_TB, decided_TB)),
        1.0,  # the ratio is 1 before the first update, so nothing is clipped
        decided_TB,
    )
    value = value_loss(out.value_TB, batch.target_TB, batch.weight_TB)
    entropy = weighted_mean(actor.entropy(), decided_TB)
    return policy.loss + model.vf_coef * value - model.entropy_weight * entropy


def _gradients(model: LeaguePPO, batch: Minibatch) -> dict[str, float]:
    """Squared norm of the loss's gradient by part of the network."""
    network, squares = model.policy.network, dict[str, float]()
    network.zero_grad(set_to_none=True)
    _loss(model, batch).backward()
    for name, parameter in network.named_parameters():
        words = name.split(".")
        if words[:2] == ["encoder", "layers"]:
            part = ".".join(words[:3])
        else:
            part = ".".join(words[: 1 + (words[0] == "encoder")])
        grad = parameter.grad
        square = 0.0 if grad is None else float(grad.double().square().sum())
        squares[part] = squares.get(part, 0.0) + square
    return squares


def _noise_scale(model: LeaguePPO, sequences: list[Minibatch], norm: float) -> float | None:
    """tr(Σ)/|G|² from gradients of single sequences and of all together (eq. A.2 and A.3)."""
    if len(sequences) < 4 or not math.isfinite(norm):
        return None
    squares = [sum(_gradients(model, batch).values()) for batch in sequences[:16]]
    small = sum(squares) / len(squares)
    b, big = float(model.n_steps), float(model.n_steps * len(sequences))
    signal = (big * norm**2 - b * small) / (big - b)
    noise = (small - norm**2) / (1.0 / b - 1.0 / big)
    return float(noise / max(signal, 1e-12)) if signal > 0 else math.inf


@torch.no_grad()
def _sensitivity(network: AgentNetwork, batch: Minibatch, prefix: int) -> dict[str, float]:
    """Mean movement of the outputs when one input is another match's at the same step."""
    own = network.config.own_size
    usual = _unroll(network, batch, prefix)

    def moved(obs_XBO: Tensor) -> float:
        out = _unroll(network, replace(batch, obs_XBO=obs_XBO), prefix)
        logits = (out.logits_TBA - usual.logits_TBA).abs().mean()
        return float(logits + (out.value_TB - usual.value_TB).abs().mean())

    alone = batch.obs_XBO.shape[1] == 1  # then another time of the same match
    other = batch.obs_XBO.flip(0) if alone else batch.obs_XBO.roll(1, 1)
    own_changed, rest_changed = batch.obs_XBO.clone(), batch.obs_XBO.clone()
    own_changed[..., :own], rest_changed[..., own:] = other[..., :own], other[..., own:]
    return {"own state": moved(own_changed), "opponent": moved(rest_changed)}


@torch.no_grad()
def _leak(network: AgentNetwork, batch: Minibatch, prefix: int) -> float:
    """Largest movement of outputs after an episode's start by what was before it.

    Measured with `unroll` over sequences and with `step`.
    """
    rows, steps = batch.obs_XBO.shape[0], batch.obs_XBO.shape[0] - prefix
    half = steps // 2
    starts = batch.starts_XB.clone()
    starts[prefix + half] = True
    changed = batch.obs_XBO.clone()
    changed[: prefix + half] = changed[: prefix + half].flip(1) * -0.5
    noise = torch.linspace(-1, 1, batch.h_BH.numel()).view_as(batch.h_BH)

    def tail(obs_XBO: Tensor, h: Tensor, c: Tensor) -> Tensor:
        out = network.unroll(obs_XBO, starts, h, c, batch.time_left_TB, prefix=prefix)
        return torch.cat([out.logits_TBA[half:].flatten(), out.value_TB[half:].flatten()])

    usual = tail(batch.obs_XBO, batch.h_BH, batch.c_BH)
    unrolled = usual - tail(changed, batch.h_BH + noise, batch.c_BH + noise)
    fresh = network.initial_state(starts.shape[1])
    used = fresh._replace(
        layers_BLSE=fresh.layers_BLSE + 1.0,
        pool_BPE=fresh.pool_BPE + 1.0,
        age_B=fresh.age_B + 50,
        h_BH=noise,
        c_BH=noise,
    )
    first = torch.ones(starts.shape[1], dtype=torch.bool)
    one, other = (
        network.step(batch.obs_XBO[rows - 1], first, state, batch.time_left_TB[-1]).logits_BA
        for state in (fresh, used)
    )
    return float(torch.maximum(unrolled.abs().max(), (one - other).abs().max()))


@torch.no_grad()
def _entropy_share(model: LeaguePPO, batch: Minibatch) -> float:
    logits = _unroll(model.policy.network, batch, model.buffer.context).logits_TBA
    now, most = (
        weighted_mean(
            action_distribution(model.agent.action_kind, each, batch.legal_TBA).entropy(),
            batch.decided_TB(),
        )
        for each in (logits, torch.zeros_like(logits))
    )
    return float(now / most) if most > 0 else 0.0


def _fit(network: AgentNetwork, batch: Minibatch, prefix: int) -> tuple[float, float]:
    """Trains a copy to say on which side of fixed planes an observation lies, one per action.

    The answers depend on what is seen alone, so what can't be learnt is the network's doing.

    Returns:
        Share of right answers on half of the matches, which it trains on, and on the others.
    """
    labels_TBA, asked_A = _questions(batch.obs_XBO[prefix:], network.config.action_size)
    trained = copy.deepcopy(network).requires_grad_(True)
    trained.actor.last.bias.data.zero_()  # today's preferred action says nothing of the size
    steps, rate = FIT[sum(p.numel() for p in trained.parameters()) > LARGE]
    optimizer = torch.optim.Adam(trained.parameters(), lr=rate)
    half = max(1, batch.obs_XBO.shape[1] // 2)
    train, held = _matches(batch, slice(0, half)), _matches(batch, slice(half, None))
    for _ in range(steps):
        logits = _unroll(trained, train, prefix).logits_TBA[..., asked_A]
        loss = functional.binary_cross_entropy_with_logits(logits, labels_TBA[:, :half, asked_A])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
    scores = []
    for part, labels in ((train, labels_TBA[:, :half]), (held, labels_TBA[:, half:])):
        with torch.no_grad():
            right = (_unroll(trained, part, prefix).logits_TBA > 0) == (labels > 0.5)
        scores.append(float(right[..., asked_A].float().mean()) if right.numel() else math.nan)
    return scores[0], scores[1]


def _questions(obs_TBO: Tensor, actions: int) -> tuple[Tensor, Tensor]:
    """Labels 0 or 1 `[T, B, A]`, about half of each, and which of the A have both answers."""
    flat = obs_TBO.flatten(0, 1).double()
    spread = flat.std(0)
    unit = torch.where(spread > 1e-6, (flat - flat.mean(0)) / spread.clamp_min(1e-6), 0.0)
    generator = torch.Generator().manual_seed(0)
    planes = torch.randn(unit.shape[1], actions, generator=generator, dtype=unit.dtype)
    sides = unit @ planes
    labels = (sides > sides.median(0).values).float()
    share = labels.mean(0)
    asked_A = torch.nonzero((share > 0.2) & (share < 0.8)).flatten()
    return labels.unflatten(0, obs_TBO.shape[:2]), asked_A


def _matches(batch: Minibatch, chosen: slice) -> Minibatch:
    """Some matches of a minibatch; the suffix of a field's name says which axis they are on."""
    taken = {}
    for each in fields(batch):
        value, suffix = getattr(batch, each.name), each.name.rpartition("_")[2]
        if value is not None:
            taken[each.name] = value[chosen] if suffix.startswith("B") else value[:, chosen]
    return replace(batch, **taken)
