"""What an update tells beyond its losses, from samples small enough that nobody waits for them.

Gradient norms come from the first minibatch, the latent and the attention from one forward pass of
the encoder over a sample of the rollout's matches. `tests/bench/diagnostics.py` measures what it
all costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from league.agent.network import AgentNetwork, ages
from learner.ppo import latent
from learner.rollout.buffer import SequenceBuffer

SAMPLE_SHARE = 16
"""One in so many matches is sampled, at least `SAMPLE_LEAST`: a forward pass of the encoder over
them is far below a hundredth of an update's forward and backward passes over all.
"""
SAMPLE_LEAST = 4


class Diagnostics:
    """Collects one update's readings; `take` hands them over and begins the next."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._descents = 0

    def rollout_ends(
        self, latent_ND: Tensor, age_N: Tensor, entries: int, kinds: Sequence[str]
    ) -> None:
        """Tells kinds of opponents apart by the latents at a rollout's end.

        Only matches with a full history of `entries` count: a young one has seen too little.
        """
        old = [n for n, age in enumerate(age_N.tolist()) if age >= entries]
        share = latent.separation(latent_ND.cpu().numpy()[old], [kinds[n] for n in old])
        self._put("latent/separation", share)

    def gradient(self, network: AgentNetwork, forecast: nn.Module | None = None) -> None:
        """Takes the gradient's norm in each module, before clipping, of the update's first
        minibatch.
        """
        self._descents += 1
        if self._descents > 1:
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
    def update_ends(self, network: AgentNetwork, buffer: SequenceBuffer, update: int) -> None:
        """Reads latent and attention of some matches of the rollout; others at each `update`."""
        config, matches = network.config, buffer.obs_XNO.shape[1]
        stride = max(1, min(SAMPLE_SHARE, matches // SAMPLE_LEAST))
        rows = slice(update % stride, None, stride)
        starts_XB = buffer.starts_XN[:, rows]
        pooled = network.encode(buffer.obs_XNO[:, rows], starts_XB, buffer.context)
        age_TB = ages(starts_XB)[buffer.context :]
        same_B = torch.logical_not(starts_XB[buffer.context + 1 :].any(0))
        slots = pooled.latent_weights.shape[-2]
        largest = latent.largest_entropy(age_TB, slots)
        readings = {
            "latent/norm": pooled.latent.norm(dim=-1).mean(),
            "latent/mean": pooled.latent.mean(),
            "latent/spread": latent.spread(pooled.latent),
            "latent/drift": latent.drift(pooled.latent, same_B),
            "attention/entropy": latent.attention_entropy(pooled.latent_weights),
            "attention/age_frames": latent.attention_age(
                pooled.latent_weights, config.history_stride
            ),
            "context/entropy": latent.attention_entropy(pooled.context_weights),
            "context/age_frames": latent.attention_age(
                pooled.context_weights, config.history_stride
            ),
            "largest": largest,
        }
        numbers = torch.stack([value.float() for value in readings.values()]).tolist()
        values = dict(zip(readings, numbers, strict=True))
        most = values.pop("largest")
        if most > 0:
            values["attention/entropy_share"] = values["attention/entropy"] / most
            values["context/entropy_share"] = values["context/entropy"] / most
        for name, value in values.items():
            self._put(name, value)

    def take(self) -> dict[str, float]:
        """The readings since the last call, without those that nothing could be said of.

        `policy/lag_updates` is how many optimizer steps, on average, the weights that learnt were
        ahead of those that acted.
        """
        if self._descents:
            self._put("policy/lag_updates", (self._descents - 1) / 2)
        values, self._values, self._descents = self._values, {}, 0
        return values

    def _put(self, name: str, value: float) -> None:
        if math.isfinite(value):
            self._values[name] = value
