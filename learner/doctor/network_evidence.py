"""What a network does with one rollout: gradients by part, what it looks at, whether it forgets and
fits.

Shape suffixes: X rows of history and rollout, T steps, B matches, O observation, A actions.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from league.agent.heads import action_distribution
from league.agent.network import AgentNetwork, UnrollOutput
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

FIT = {"small": (80, 5e-3), "large": (45, 1e-3)}
"""Optimizer steps and step size of the supervised fit, by whether the network has over a million
weights.
"""


def is_large(parameters: int) -> bool:
    """Whether a network of so many weights is only fitted for a short time."""
    return parameters > 1_000_000


@dataclass(frozen=True, kw_only=True)
class NetworkEvidence:
    """What one rollout told of a network before its first update.

    Attributes:
        parameters: their number.
        gradients: norm of the loss's gradient by part of the network.
        norm: of all parts together, before clipping.
        noise_scale: tr(Σ)/|G|² of the loss's gradient in decisions (McCandlish et al. 2018, arXiv
            1812.06162, eq. 2.8): a batch far below it points anywhere. None when there was one
            sequence.
        sensitivity: by input, how far logits and value move when the input is another match's.
        leak: how far what came before an episode's start moves the outputs after it; should be 0.
        entropy_share: entropy of the policy as a share of the largest that the action space allows.
        fit_train, fit_held_out: share of right answers, after a short supervised training to tell
        simple
            facts of the observation, on the rows trained on and on other matches; a guess has 0.5.
        value_gap: mean distance of the values that the learner reads from those that the actor
        noted; 0
            but for rounding, for both are of the same weights and views.
        adam_epsilon: what Adam adds to the root of a squared gradient: far smaller ones move
        nothing.
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


def look_at_network(model: LeaguePPO) -> NetworkEvidence:
    """Measures on the rollout in the model's buffer; leaves weights and random state as they
    were.
    """
    network, buffer = model.policy.network, model.buffer
    rng_state = torch.get_rng_state()
    batches = list(buffer.minibatches(1, np.random.default_rng(0)))
    whole = next(buffer.minibatches(model.n_envs, np.random.default_rng(0)))
    by_part, norm = _gradients(model, whole)
    fit_train, fit_held_out = _fit(network, whole, buffer.context)
    evidence = NetworkEvidence(
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        gradients=by_part,
        norm=norm,
        noise_scale=_noise_scale(model, batches, norm),
        sensitivity=_sensitivity(network, whole, buffer.context),
        leak=_leak(network, whole, buffer.context),
        entropy_share=_entropy_share(model, whole),
        fit_train=fit_train,
        fit_held_out=fit_held_out,
        value_gap=_value_gap(network, whole, buffer.context),
        adam_epsilon=float(model.policy.optimizer.defaults["eps"]),
    )
    network.zero_grad(set_to_none=True)
    torch.set_rng_state(rng_state)
    return evidence


@torch.no_grad()
def policy_distance(model: LeaguePPO, first: AgentNetwork) -> float:
    """KL divergence of the model's policy from that of `first`, mean over the rollout in its
    buffer.
    """
    batch = next(model.buffer.minibatches(model.n_envs, np.random.default_rng(0)))
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
    """PPO's loss of a minibatch as the learner's settings weigh its terms."""
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
    return (
        policy.loss
        + model.vf_coef * value
        - model.entropy_weight * weighted_mean(actor.entropy(), decided_TB)
    )


def _part(name: str) -> str:
    """The part of the network that a parameter belongs to."""
    words = name.split(".")
    if words[:2] == ["encoder", "layers"]:
        return ".".join(words[:3])
    return ".".join(words[: 1 + (words[0] == "encoder")])


def _backward(model: LeaguePPO, batch: Minibatch) -> dict[str, Tensor]:
    network = model.policy.network
    network.zero_grad(set_to_none=True)
    _loss(model, batch).backward()
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for name, parameter in network.named_parameters()
    }


def _gradients(model: LeaguePPO, batch: Minibatch) -> tuple[dict[str, float], float]:
    squares: dict[str, float] = {}
    for name, gradient in _backward(model, batch).items():
        squares[_part(name)] = squares.get(_part(name), 0.0) + float(
            gradient.double().square().sum()
        )
    return {name: math.sqrt(square) for name, square in squares.items()}, math.sqrt(
        sum(squares.values())
    )


def _noise_scale(model: LeaguePPO, batches: list[Minibatch], norm: float) -> float | None:
    """tr(Σ)/|G|² from gradients of single sequences and of all together (eq. A.2 and A.3 of the
    paper).
    """
    if len(batches) < 4 or not math.isfinite(norm):
        return None
    taken = batches[:16]
    squares = [
        sum(
            float(gradient.double().square().sum()) for gradient in _backward(model, batch).values()
        )
        for batch in taken
    ]
    small = sum(squares) / len(squares)
    b, big = float(model.n_steps), float(model.n_steps * len(batches))
    signal = (big * norm**2 - b * small) / (big - b)
    noise = (small - norm**2) / (1.0 / b - 1.0 / big)
    return float(noise / max(signal, 1e-12)) if signal > 0 else math.inf


@torch.no_grad()
def _sensitivity(network: AgentNetwork, batch: Minibatch, prefix: int) -> dict[str, float]:
    """Mean movement of the outputs when one input is replaced by that of another match at the
    same step.
    """
    own = network.config.own_size
    usual = _unroll(network, batch, prefix)

    def moved(obs_XBO: Tensor) -> float:
        out = _unroll(network, replace(batch, obs_XBO=obs_XBO), prefix)
        parts = zip((out.logits_TBA, out.value_TB), (usual.logits_TBA, usual.value_TB), strict=True)
        return float(sum((a - b).abs().mean() for a, b in parts))

    alone = batch.obs_XBO.shape[1] == 1  # then another time of the same match
    other = batch.obs_XBO.flip(0) if alone else batch.obs_XBO.roll(1, 1)
    own_changed, rest_changed = batch.obs_XBO.clone(), batch.obs_XBO.clone()
    own_changed[..., :own], rest_changed[..., own:] = other[..., :own], other[..., own:]
    return {"own state": moved(own_changed), "opponent": moved(rest_changed)}


@torch.no_grad()
def _leak(network: AgentNetwork, batch: Minibatch, prefix: int) -> float:
    """Movement of outputs behind an episode's start by what was before it: by sequence and by
    step.
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

    apart = tail(batch.obs_XBO, batch.h_BH, batch.c_BH) - tail(
        changed, batch.h_BH + noise, batch.c_BH + noise
    )
    fresh = network.initial_state(starts.shape[1])
    used = fresh._replace(
        layers_BLSE=fresh.layers_BLSE + 1.0,
        pool_BPE=fresh.pool_BPE + 1.0,
        age_B=fresh.age_B + 50,
        h_BH=noise,
        c_BH=noise,
    )
    first = torch.ones(starts.shape[1], dtype=torch.bool)
    step = [
        network.step(batch.obs_XBO[rows - 1], first, state, batch.time_left_TB[-1])
        for state in (fresh, used)
    ]
    stepped = (step[0].logits_BA - step[1].logits_BA).abs().max()
    return float(torch.maximum(apart.abs().max(), stepped))


@torch.no_grad()
def _value_gap(network: AgentNetwork, batch: Minibatch, prefix: int) -> float:
    return float((_unroll(network, batch, prefix).value_TB - batch.value_TB).abs().mean())


@torch.no_grad()
def _entropy_share(model: LeaguePPO, batch: Minibatch) -> float:
    out = _unroll(model.policy.network, batch, model.buffer.context)
    weight = batch.decided_TB()
    actor = action_distribution(model.agent.action_kind, out.logits_TBA, batch.legal_TBA)
    even = action_distribution(
        model.agent.action_kind, torch.zeros_like(out.logits_TBA), batch.legal_TBA
    )
    most = float(weighted_mean(even.entropy(), weight))
    return float(weighted_mean(actor.entropy(), weight)) / most if most > 0 else 0.0


def _fit(network: AgentNetwork, batch: Minibatch, prefix: int) -> tuple[float, float]:
    """Trains a copy to tell which side of fixed planes an observation lies on, one for each action.

    The answers are functions of what is seen alone, so what can't be learnt is the network's doing.
    Half of the matches are held out.
    """
    labels_TBA, asked_A = _questions(batch.obs_XBO[prefix:], network.config.action_size)
    trained = copy.deepcopy(network).requires_grad_(True)
    # which action is preferred so far says nothing of the size
    trained.actor.last.bias.data.zero_()
    steps, rate = FIT[
        "large" if is_large(sum(p.numel() for p in trained.parameters())) else "small"
    ]
    optimizer = torch.optim.Adam(trained.parameters(), lr=rate)
    half = max(1, batch.obs_XBO.shape[1] // 2)
    train, held = _rows(batch, slice(0, half)), _rows(batch, slice(half, None))
    for _ in range(steps):
        logits = _unroll(trained, train, prefix).logits_TBA[..., asked_A]
        loss = functional.binary_cross_entropy_with_logits(logits, labels_TBA[:, :half, asked_A])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        scores = []
        for part, labels in ((train, labels_TBA[:, :half]), (held, labels_TBA[:, half:])):
            right = (_unroll(trained, part, prefix).logits_TBA > 0) == (labels > 0.5)
            scores.append(float(right[..., asked_A].float().mean()) if right.numel() else math.nan)
    return scores[0], scores[1]


def _questions(obs_TBO: Tensor, actions: int) -> tuple[Tensor, Tensor]:
    """Labels 0 or 1 `[T, B, A]`, about half of each, and which of the A have both answers."""
    flat = obs_TBO.flatten(0, 1).double()
    spread = flat.std(0)
    unit = torch.where(spread > 1e-6, (flat - flat.mean(0)) / spread.clamp_min(1e-6), 0.0)
    weights = torch.randn(
        unit.shape[1], actions, generator=torch.Generator().manual_seed(0), dtype=unit.dtype
    )
    answers = unit @ weights
    labels = (answers > answers.median(0).values).float()
    share = labels.mean(0)
    return labels.unflatten(0, obs_TBO.shape[:2]), torch.nonzero(
        (share > 0.2) & (share < 0.8)
    ).flatten()


def _rows(batch: Minibatch, rows: slice) -> Minibatch:
    """Some matches of a minibatch; the suffix of each field tells where its matches are."""
    taken = {}
    for each in fields(batch):
        value, suffix = getattr(batch, each.name), each.name.rpartition("_")[2]
        if value is not None:
            taken[each.name] = value[rows] if suffix.startswith("B") else value[:, rows]
    return replace(batch, **taken)
