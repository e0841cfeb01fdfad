"""What can be said of strategy latents and of attention, as plain numbers: pure functions.

Shape suffixes: T steps, B matches, N matches, D width, P pooled outputs, h heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from league.errors import InvalidInput


def spread(latent_TBD: Tensor) -> Tensor:
    """Root mean variance of a number of the latent over all steps and matches."""
    return latent_TBD.flatten(0, -2).var(0, unbiased=False).mean().sqrt()


def drift(latent_TBD: Tensor, same_B: Tensor) -> Tensor:
    """How far latents move from the first to the last step, over the matches where `same_B`.

    The root mean square distance, divided by what two steps drawn at random from all of them would
    be apart, sqrt(2 D) times `spread`: 0 stays, 1 is as far as anywhere. NaN without such matches.
    """
    moved = (latent_TBD[-1] - latent_TBD[0]).square().sum(-1)[same_B].mean()
    return (moved / (2 * latent_TBD.shape[-1])).sqrt() / spread(latent_TBD).clamp_min(1e-12)


def attention_entropy(weights_TBPh: Tensor) -> Tensor:
    """-sum_p w_p log w_p in nats, the mean over steps, matches and heads."""
    return torch.special.entr(weights_TBPh).sum(-2).mean()


def largest_entropy(age_TB: Tensor, slots: int) -> Tensor:
    """The entropy of attention that looks at every entry alike: mean log of the entries there
    are.
    """
    return age_TB.clamp(1, slots).double().log().mean().float()


def attention_age(weights_TBPh: Tensor, stride: int) -> Tensor:
    """Mean age, in frames, of the outputs attended to; the last slot is the newest, of age 0."""
    slots = weights_TBPh.shape[-2]
    age_P = torch.arange(slots - 1, -1, -1, device=weights_TBPh.device, dtype=weights_TBPh.dtype)
    return (weights_TBPh.mean((0, 1, -1)) * age_P).sum() * stride


def separation(latent_ND: np.ndarray, kinds_N: Sequence[str]) -> float:
    """Share of the latents' variance that lies between the kinds, corrected for chance.

    1 - (W / (n - k)) / (S / (n - 1)) with S the total and W the within-kind sum of squares of n
    latents of k kinds: Kelley's epsilon squared (PNAS 21, 1935), 0 on average for labels that mean
    nothing, 1 when each kind has one latent. Kinds met once say nothing and are left out; NaN when
    fewer than two are left.
    """
    if len(latent_ND) != len(kinds_N):
        raise InvalidInput(f"{len(latent_ND)} latents have {len(kinds_N)} kinds: give one for each")
    names, which_N, counts = np.unique(
        np.asarray(kinds_N, str), return_inverse=True, return_counts=True
    )
    kept_N = counts[which_N] > 1
    rows = np.asarray(latent_ND, np.float64)[kept_N]
    groups = [
        np.asarray(latent_ND, np.float64)[which_N == k] for k in range(len(names)) if counts[k] > 1
    ]
    if len(groups) < 2:
        return math.nan
    total = np.square(rows - rows.mean(0)).sum()
    within = sum(np.square(group - group.mean(0)).sum() for group in groups)
    if total == 0:
        return 0.0
    return float(1 - (within / (len(rows) - len(groups))) / (total / (len(rows) - 1)))
