"""Supervised training of an agent on demonstrations, and its loss on those it has not seen.

Shape suffixes: T steps, S streams, A actions, H memory.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from league.agent.config import AgentConfig
from league.agent.heads import MaskedChoice
from league.agent.network import AgentNetwork
from league.errors import InvalidInput, NumericalFault
from league.games.base import CHOICE, KEYS
from learner.cloning.baseline import rates_A
from learner.cloning.demonstrations import Demonstration
from learner.cloning.settings import CloningSettings
from learner.cloning.streams import Chunk, Streams

Split = tuple[list[Demonstration], list[Demonstration]]
FEWEST_SEEDS = 4
"""Seeds that the replays must have, so that some matches can be held out and still say
something.
"""


@dataclass(frozen=True)
class Epoch:
    """One pass over the matches; losses in nats per decision, `held_out` without smoothing."""

    number: int
    loss: float
    held_out: float
    is_best: bool
    learning_rate: float
    seconds: float


def split(demonstrations: Sequence[Demonstration], settings: CloningSettings) -> Split:
    """(learnt, held out), whole seeds each: the same start is never in both. Raises
    `InvalidInput`.
    """
    seeds = sorted({d.seed for d in demonstrations})
    if len(seeds) < FEWEST_SEEDS:
        raise InvalidInput(
            f"{len(demonstrations)} matches on {len(seeds)} seeds are too few to hold some out: "
            f"record at least {FEWEST_SEEDS} seeds (some hundred matches are needed to learn from)"
        )
    count = min(len(seeds) - 1, max(1, round(settings.held_out * len(seeds))))
    order = np.random.default_rng(settings.seed).permutation(len(seeds))
    held = {seeds[index] for index in order[:count]}
    return [d for d in demonstrations if d.seed not in held], [
        d for d in demonstrations if d.seed in held
    ]


def new_network(config: AgentConfig, learnt: Sequence[Demonstration], seed: int) -> AgentNetwork:
    """A fresh network that uses each key at the player's own rate, whatever it sees: the
    baseline.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AgentNetwork(config)
    if config.action_kind == KEYS:
        rates = torch.from_numpy(rates_A(learnt))
        with torch.no_grad():
            network.actor.last.bias.copy_(torch.logit(rates).float())
    return network


def log_loss(kind: str, logits_TSA: Tensor, chunk: Chunk, smoothing: float = 0.0) -> Tensor:
    """`-Σ_a y_a log p_a (+ (1 - y_a) log(1 - p_a) for keys)` of each step, in nats: `[T, S]`.

    `y` is what was done, drawn to 1/2 (to all legal choices) by the share `smoothing`.
    """
    x_TSA = chunk.actions_TSA
    if kind == CHOICE:
        choice = MaskedChoice(logits_TSA, chunk.legal_TSA)
        even_TSA = choice.legal / choice.legal.sum(-1, keepdim=True)
        target_TSA = (1.0 - smoothing) * x_TSA + smoothing * even_TSA
        return -(target_TSA * torch.where(choice.legal, choice.log_probs, 0.0)).sum(-1)
    target_TSA = (1.0 - smoothing) * x_TSA + 0.5 * smoothing
    return functional.binary_cross_entropy_with_logits(
        logits_TSA, target_TSA, reduction="none"
    ).sum(-1)


def train(
    network: AgentNetwork,
    learnt: Sequence[Demonstration],
    held_out: Sequence[Demonstration],
    settings: CloningSettings,
) -> Iterator[Epoch]:
    """Passes of Adam until the held-out loss falls no more; `network` ends with the weights that
    were best.

    Raises `NumericalFault` when the loss is not finite.
    """
    device = network.memory.recurrent.device
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, eps=1e-5)
    judged = Streams(sorted(held_out, key=len, reverse=True), settings.streams, device)
    rng = np.random.default_rng([settings.seed, 1])
    best, kept, waited, started = (
        math.inf,
        copy.deepcopy(network.state_dict()),
        0,
        time.perf_counter(),
    )
    for number in range(1, settings.epochs + 1):
        rate = settings.learning_rate_at(number)
        for group in optimizer.param_groups:
            group["lr"] = rate
        order = rng.permutation(len(learnt))
        streams = Streams([learnt[index] for index in order], settings.streams, device)
        loss = _pass(network, streams, settings, optimizer)
        judgement = evaluate(network, judged, settings)
        waited = 0 if judgement < best else waited + 1
        yield Epoch(number, loss, judgement, judgement < best, rate, time.perf_counter() - started)
        if judgement < best:
            best, kept = judgement, copy.deepcopy(network.state_dict())
        if waited >= settings.patience:
            break
    network.load_state_dict(kept)


def _pass(
    network: AgentNetwork,
    streams: Streams,
    settings: CloningSettings,
    optimizer: torch.optim.Optimizer,
) -> float:
    """One pass over all streams; the memory goes on from chunk to chunk, the gradient does not."""
    config, total, count = network.config, 0.0, 0.0
    h_SH = c_SH = network.initial_state(streams.width).h_BH
    for chunk in streams.chunks(settings.sequence, config.context):
        logits_TSA, h_SH, c_SH = _unroll(network, chunk, h_SH, c_SH)
        steps = chunk.weight_TS.sum()
        if not steps:
            continue
        loss = (
            log_loss(config.action_kind, logits_TSA, chunk, settings.smoothing) * chunk.weight_TS
        ).sum()
        optimizer.zero_grad(set_to_none=True)
        (loss / steps).backward()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
        if not torch.isfinite(norm):
            raise NumericalFault(
                "the loss or its gradient is not finite: nothing was saved, lower cloning.learning_rate"
            )
        optimizer.step()
        total, count = total + float(loss.detach()), count + float(steps)
    return total / max(count, 1.0)


@torch.no_grad()
def evaluate(network: AgentNetwork, streams: Streams, settings: CloningSettings) -> float:
    """Log-loss without smoothing over all matches of `streams`, in nats per decision."""
    config, total, count = network.config, 0.0, 0.0
    h_SH = c_SH = network.initial_state(streams.width).h_BH
    for chunk in streams.chunks(settings.sequence, config.context):
        logits_TSA, h_SH, c_SH = _unroll(network, chunk, h_SH, c_SH)
        total += float((log_loss(config.action_kind, logits_TSA, chunk) * chunk.weight_TS).sum())
        count += float(chunk.weight_TS.sum())
    return total / max(count, 1.0)


def _unroll(
    network: AgentNetwork, chunk: Chunk, h_SH: Tensor, c_SH: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    # Only the critic sees the time left, and nothing is learnt about values here.
    time_left_TS = torch.zeros_like(chunk.weight_TS)
    out = network.unroll(chunk.obs_XSO, chunk.starts_XS, h_SH, c_SH, time_left_TS, chunk.prefix)
    return out.logits_TBA, out.h_BH.detach(), out.c_BH.detach()
