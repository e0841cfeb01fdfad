"""Computes metrics for the log, in addition to an update's losses. To save time, these metrics are
computed from samples.

Gradient norms come from the first minibatch. Metrics of the strategy latent (the encoder's summary
of the opponent) and of attention come from a single forward pass of the encoder over a sample of
the rollout's matches. With the sizes of the preset `laptop`, this pass takes 0.8 % of the time that
the update itself takes for its forward and backward passes.

Shape suffixes: T steps, B and N matches, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from league.agent.network import AgentNetwork, ages
from learner.rollout.buffer import SequenceBuffer

SAMPLE_SHARE = 16
"""Every 16th match is sampled, but at least `SAMPLE_LEAST` matches."""
SAMPLE_LEAST = 4


class Diagnostics:
    """Collects the metrics of an update. `take` returns them, and starts the next collection."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._steps = 0

    def rollout_ends(
        self, latent_ND: Tensor, age_N: Tensor, entries: int, kinds: Sequence[str]
    ) -> None:
        """Measures how well the latents after the rollout separate the kinds of opponents.

        Args:
            entries: number of entries in a full history. Only matches with a full history count.
            kinds: the kind of each match's opponent, "" without a match.
        """
        if not latent_ND.shape[1]:
            return
        old = [n for n, age in enumerate(age_N.tolist()) if age >= entries]
        share = separation(latent_ND.cpu().numpy()[old], [kinds[n] for n in old])
        self._put("latent/separation", share)

    def gradient(self, network: AgentNetwork, forecast: nn.Module | None = None) -> None:
        """Measures each module's gradient norm before clipping in the update's first minibatch."""
        self._steps += 1
        if self._steps > 1:
            return
        names, norms = [], []
        heads = [] if forecast is None else [("forecast", forecast)]
        for name, module in [*network.named_children(), *heads]:
            gradients = [p.grad for p in module.parameters() if p.grad is not None]
            if gradients:
                names.append(name)
                norms.append(torch.stack(torch._foreach_norm(gradients)).norm())
        if norms:
            for name, norm in zip(names, torch.stack(norms).tolist(), strict=True):
                self._put(f"gradient/{name}", norm)

    @torch.no_grad()
    def update_ends(
        self, network: AgentNetwork, buffer: SequenceBuffer, update: int, frame_skip: int
    ) -> None:
        """Measures the latents and the attention in a sample of the rollout's matches. Each update
        samples other matches.

        Args:
            network: the agent after the update.
            buffer: the rollout.
            update: number of updates so far.
            frame_skip: frames that a step lasts.
        """
        if network.config.encoder == "none":
            return
        matches = buffer.obs_XNO.shape[1]
        stride = max(1, min(SAMPLE_SHARE, matches // SAMPLE_LEAST))
        rows = slice(update % stride, None, stride)
        starts_XB = buffer.starts_XN[:, rows]
        pooled = network.encode(buffer.obs_XNO[:, rows], starts_XB, buffer.context)
        age_TB = ages(starts_XB)[buffer.context :]
        same_B = torch.logical_not(starts_XB[buffer.context + 1 :].any(0))
        slots, frames = pooled.latent_weights.shape[-2], frame_skip
        numbers = {
            "latent/norm": pooled.latent.norm(dim=-1).mean(),
            "latent/mean": pooled.latent.mean(),
            "latent/spread": spread(pooled.latent),
            "latent/drift": drift(pooled.latent, same_B),
            "attention/entropy": attention_entropy(pooled.latent_weights),
            "attention/age_frames": attention_age(pooled.latent_weights, frames),
            "context/entropy": attention_entropy(pooled.context_weights),
            "context/age_frames": attention_age(pooled.context_weights, frames),
            "largest": largest_entropy(age_TB, slots),
        }
        stacked = torch.stack([value.float() for value in numbers.values()])
        values = dict(zip(numbers, stacked.tolist(), strict=True))
        most = values.pop("largest")
        if most > 0:
            values["attention/entropy_share"] = values["attention/entropy"] / most
            values["context/entropy_share"] = values["context/entropy"] / most
        for name, value in values.items():
            self._put(name, value)

    def take(self) -> dict[str, float]:
        """Returns the metrics since the last call, without those that are not finite.

        `policy/lag_updates` is the mean number of optimizer steps between the weights that acted
        and the weights that learnt.
        """
        if self._steps:
            self._put("policy/lag_updates", (self._steps - 1) / 2)
        values, self._values, self._steps = self._values, {}, 0
        return values

    def _put(self, name: str, value: float) -> None:
        if math.isfinite(value):
            self._values[name] = value


def spread(latent_TBD: Tensor) -> Tensor:
    """Returns the square root of the mean variance of the latent's components. Each variance is
    over all steps and matches.
    """
    return latent_TBD.flatten(0, -2).var(0, unbiased=False).mean().sqrt()


def drift(latent_TBD: Tensor, same_B: Tensor) -> Tensor:
    """Measures how far latents move from the first to the last step of a rollout in the matches of
    `same_B`.

    The result is a ratio of two root mean square distances. The first is the distance between the
    first and the last latent of a match. The second is the distance between the latents of two
    random steps, which is sqrt(2 D) times `spread`. A ratio of 0 means that latents stay the same,
    and 1 means that the last latent is unrelated to the first.

    Args:
        latent_TBD: latents of whole rollouts.
        same_B: true for the matches in which no episode starts after the first step.

    Returns:
        The ratio, or NaN if `same_B` has no matches.
    """
    moved = (latent_TBD[-1] - latent_TBD[0]).square().sum(-1)[same_B].mean()
    return (moved / (2 * latent_TBD.shape[-1])).sqrt() / spread(latent_TBD).clamp_min(1e-12)


def attention_entropy(weights_TBPh: Tensor) -> Tensor:
    """Returns the entropy -sum_p w_p log w_p of the attention in nats, averaged over steps, matches
    and heads.
    """
    return torch.special.entr(weights_TBPh).sum(-2).mean()


def largest_entropy(age_TB: Tensor, slots: int) -> Tensor:
    """Returns the largest possible entropy of the attention: the mean of log n, where n is the
    number of entries that can be attended to.
    """
    return age_TB.clamp(1, slots).double().log().mean().float()


def attention_age(weights_TBPh: Tensor, stride: int) -> Tensor:
    """Returns the mean age in frames of the pooled outputs, weighted by attention. The last output
    is the newest and has the age 0.
    """
    slots = weights_TBPh.shape[-2]
    age_P = torch.arange(slots - 1, -1, -1, device=weights_TBPh.device, dtype=weights_TBPh.dtype)
    return (weights_TBPh.mean((0, 1, -1)) * age_P).sum() * stride


def separation(latent_ND: np.ndarray, kinds_N: Sequence[str]) -> float:
    """Measures the share of the latents' variance that lies between kinds, corrected for chance.

    The share is Kelley's epsilon squared (PNAS 21, 1935), 1 - (W / (n - k)) / (S / (n - 1)). There
    are n latents of k kinds. S is the sum of squared distances from the mean of all latents, and W
    the sum of squared distances from the mean of the latent's kind. Random labels give 0 on
    average. A share of 1 means that all latents of a kind are the same.

    Args:
        latent_ND: latents.
        kinds_N: their kinds. Kinds that occur once are left out.

    Returns:
        The share, NaN when fewer than two kinds are left.
    """
    latents_ND, kinds = np.asarray(latent_ND, np.float64), np.asarray(kinds_N, str)
    names, counts = np.unique(kinds, return_counts=True)
    groups = [latents_ND[kinds == name] for name in names[counts > 1]]
    if len(groups) < 2:
        return math.nan
    rows = np.concatenate(groups)
    total = np.square(rows - rows.mean(0)).sum()
    within = sum(np.square(group - group.mean(0)).sum() for group in groups)
    if total == 0:
        return 0.0
    return float(1 - (within / (len(rows) - len(groups))) / (total / (len(rows) - 1)))
