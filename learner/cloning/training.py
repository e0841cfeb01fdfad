"""Makes a clone by supervised training on replays, and saves it as a snapshot with its card (a
description of the snapshot).

Shape suffixes: L decisions of a stream, S streams, T decisions of each stream that are processed at
once, O observation, A actions, H memory.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from league.agent.config import AgentConfig, AgentSettings
from league.agent.heads import MaskedChoice
from league.agent.network import AgentNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import InvalidInput, NumericalFault
from league.games.base import CHOICE, KEYS
from league.games.settings import GameSettings
from league.runs.blobs import BlobFolder
from league.settings.base import Sections, sections_hash
from learner.adam import Adam
from learner.cloning.demonstrations import Demonstration, demonstrations, read_replays
from learner.cloning.settings import CloningSettings

FEWEST_SEEDS = 4
"""Fewest different seeds that the replays must have, so that some matches can be held out."""
HELD_OUT = 0.1
"""Share of the seeds whose matches are held out. Their loss decides when training stops."""
PATIENCE = 3
"""Training stops after this many consecutive passes that did not lower the held-out loss."""
LAST_RATE = 0.05
"""Step size of the last pass, as a share of the first pass's step size."""
STREAMS = 8
"""Largest number of parallel streams of matches."""
SEQUENCE = 64
"""Number of decisions through which the gradient is propagated back. The network's memory is
carried through the whole match.
"""
MAX_GRAD_NORM = 1.0
SMOOTHING = 0.002
"""Weight of the uniform distribution in the targets (label smoothing). Keys are moved toward a
probability of 1/2, choices toward equal probabilities of all legal choices. A key that the player
never used then keeps a probability of 0.1 %, so later training can discover it."""


@dataclass(frozen=True)
class Streams:
    """Holds parallel streams. Each stream has whole matches, one after the other, and shorter
    streams are padded with zeros.

    `weight_LS` is 1 for the player's own decisions with more than one legal choice.
    """

    obs_LSO: Tensor
    starts_LS: Tensor
    actions_LSA: Tensor
    legal_LSA: Tensor | None
    weight_LS: Tensor

    @classmethod
    def of(
        cls,
        demonstrations: Sequence[Demonstration],
        streams: int = STREAMS,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Makes the streams. Each match is appended to the stream that is the shortest so far.

        Args:
            demonstrations: the matches.
            streams: largest number of streams.
            device: device of the tensors.
        """
        columns: list[list[Demonstration]] = [[] for _ in range(min(streams, len(demonstrations)))]
        lengths = [0] * len(columns)
        for demonstration in demonstrations:
            shortest = int(np.argmin(lengths))
            columns[shortest].append(demonstration)
            lengths[shortest] += len(demonstration)

        def laid(pick: Callable[[Demonstration], Any]) -> Tensor:
            joined = [np.concatenate([pick(d) for d in column]) for column in columns]
            rows_LS = np.zeros((max(lengths), len(joined), *joined[0].shape[1:]), joined[0].dtype)
            for stream, rows in enumerate(joined):
                rows_LS[: len(rows), stream] = rows
            return torch.from_numpy(rows_LS).to(device)

        return cls(
            laid(lambda d: d.obs_TO),
            laid(lambda d: np.arange(len(d)) == 0),
            laid(lambda d: d.actions_TA),
            None if demonstrations[0].legal_TA is None else laid(lambda d: d.legal_TA),
            laid(lambda d: d.decided_T.astype(np.float32)),
        )


def split(
    demonstrations: Sequence[Demonstration], seed: int
) -> tuple[list[Demonstration], list[Demonstration]]:
    """Splits the matches into matches to learn from and held-out matches. All matches with the same
    seed go into the same part.

    Args:
        demonstrations: the matches.
        seed: seed of the split.

    Raises:
        InvalidInput: there are too few seeds.
    """
    seeds = sorted({d.seed for d in demonstrations})
    if len(seeds) < FEWEST_SEEDS:
        raise InvalidInput(
            f"{len(demonstrations)} matches on {len(seeds)} seeds are too few to hold some out: "
            f"record at least {FEWEST_SEEDS} seeds (some hundred matches are needed to learn from)"
        )
    order = np.random.default_rng(seed).permutation(len(seeds))
    held = {seeds[index] for index in order[: max(1, round(HELD_OUT * len(seeds)))]}
    learnt = [d for d in demonstrations if d.seed not in held]
    return learnt, [d for d in demonstrations if d.seed in held]


def rates_A(learnt: Sequence[Demonstration]) -> NDArray[np.float64]:
    """Returns for each action the share of the player's decisions that include it.

    Counts start at one half (Jeffreys' prior), so that an action which never occurred has a rate
    above 0.
    """
    counts_A = np.sum([d.actions_TA[d.decided_T].sum(0, dtype=np.float64) for d in learnt], axis=0)
    total = sum(int(d.decided_T.sum()) for d in learnt)
    rates: NDArray[np.float64] = (counts_A + 0.5) / (total + 1.0)
    return rates


def new_network(config: AgentConfig, learnt: Sequence[Demonstration], seed: int) -> AgentNetwork:
    """Makes a fresh network that takes each action as often as the player, whatever it observes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AgentNetwork(config)
    rates = torch.from_numpy(rates_A(learnt))
    logits = torch.logit(rates) if config.action_kind == KEYS else torch.log(rates)
    with torch.no_grad():
        network.actor.last.bias.copy_(logits.float())
    return network


def log_loss(
    kind: str,
    logits: Tensor,
    actions: Tensor,
    legal: Tensor | None = None,
    smoothing: float = 0.0,
) -> Tensor:
    """Returns the log loss in nats.

    For choices it is `-Σ_a y_a log p_a`. For keys it is
    `-Σ_a (y_a log p_a + (1 - y_a) log(1 - p_a))`.

    The target `y` mixes the player's action with a uniform distribution, which has the weight
    `smoothing`. The uniform distribution gives each key the probability 1/2, or all legal choices
    the same probability.

    Args:
        kind: KEYS or CHOICE (`league.games.base`).
        logits: logits `[..., A]`.
        actions: the player's actions `[..., A]`.
        legal: legal choices `[..., A]`, None if the actions are keys.
        smoothing: share between 0 and 1.

    Returns:
        The loss `[...]`.
    """
    if kind == CHOICE:
        choice = MaskedChoice(logits, legal)
        even = choice.legal / choice.legal.sum(-1, keepdim=True)
        target = (1.0 - smoothing) * actions + smoothing * even
        return -(target * torch.where(choice.legal, choice.log_probs, 0.0)).sum(-1)
    target = (1.0 - smoothing) * actions + 0.5 * smoothing
    return functional.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1)


@dataclass(frozen=True)
class Epoch:
    """Describes a pass over the matches. The pass with number 0 is the state before training.

    Losses are in nats per decision. `held_out` is computed without smoothing.
    """

    number: int
    loss: float
    held_out: float
    is_best: bool
    seconds: float


def train(
    network: AgentNetwork,
    learnt: Sequence[Demonstration],
    held_out: Sequence[Demonstration],
    settings: CloningSettings,
) -> Iterator[Epoch]:
    """Trains with Adam, pass by pass, until the held-out loss no longer falls.

    Args:
        learnt: matches to learn from.
        held_out: matches that decide when to stop.

    Yields:
        Each pass.

    Raises:
        NumericalFault: the loss is not finite.
    """
    device, started = network.device, time.perf_counter()
    optimizer = Adam(network.parameters(), lr=settings.learning_rate, eps=1e-5)
    judged = Streams.of(sorted(held_out, key=len, reverse=True), device=device)
    rng = np.random.default_rng([settings.seed, 1])
    best, best_weights, waited = evaluate(network, judged), copy.deepcopy(network.state_dict()), 0
    yield Epoch(0, best, best, True, 0.0)
    for number in range(1, settings.epochs + 1):
        done = (number - 1) / max(settings.epochs - 1, 1)
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1.0 + done * (LAST_RATE - 1.0))
        streams = Streams.of([learnt[i] for i in rng.permutation(len(learnt))], device=device)
        loss = _pass(network, streams, optimizer)
        judgement = evaluate(network, judged)
        is_best = judgement < best
        if is_best:
            best, best_weights, waited = judgement, copy.deepcopy(network.state_dict()), 0
        else:
            waited += 1
        yield Epoch(number, loss, judgement, is_best, time.perf_counter() - started)
        if waited >= PATIENCE:
            break
    network.load_state_dict(best_weights)


def _pass(network: AgentNetwork, streams: Streams, optimizer: torch.optim.Optimizer) -> float:
    total, count = 0.0, 0.0
    for loss, steps in _losses(network, streams, SEQUENCE, SMOOTHING):
        if not steps:
            continue
        optimizer.zero_grad(set_to_none=True)
        (loss / steps).backward()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        if not torch.isfinite(norm):
            raise NumericalFault(
                "the loss or its gradient is not finite: nothing was saved, lower "
                "cloning.learning_rate"
            )
        optimizer.step()
        total, count = total + float(loss.detach()), count + float(steps)
    return total / max(count, 1.0)


@torch.no_grad()
def evaluate(network: AgentNetwork, streams: Streams, sequence: int = SEQUENCE) -> float:
    """Returns the log-loss without smoothing over all matches, in nats per decision.

    Args:
        network: the network.
        streams: the matches.
        sequence: decisions of each stream that go through the network at once.
    """
    losses = [(float(loss), float(steps)) for loss, steps in _losses(network, streams, sequence)]
    total, count = (sum(column) for column in zip(*losses, strict=True))
    return total / max(count, 1.0)


@torch.no_grad()
def accuracy(network: AgentNetwork, found: Sequence[Demonstration]) -> list[float]:
    """Returns, for each match, the share of the player's decisions in which the network would
    decide the same.

    The network takes the likeliest choice, or holds each key whose probability is above 1/2.
    Matches without a decision of the player are left out.

    Args:
        network: the network.
        found: the player's matches.
    """
    streams = Streams.of(found, len(found), network.device)  # one match in each stream
    is_right = []
    for logits, now in _unrolled(network, streams, SEQUENCE):
        actions = streams.actions_LSA[now]
        if streams.legal_LSA is None:
            is_right.append(((logits > 0) == actions.bool()).all(-1))
        else:
            likeliest = MaskedChoice(logits, streams.legal_LSA[now]).log_probs.argmax(-1)
            is_right.append(likeliest == actions.argmax(-1))
    weight_LS = streams.weight_LS
    decided_S = weight_LS.sum(0)
    share_S = (torch.cat(is_right) * weight_LS).sum(0) / decided_S.clamp(min=1.0)
    return share_S[decided_S > 0].tolist()


def _losses(
    network: AgentNetwork, streams: Streams, sequence: int, smoothing: float = 0.0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Runs the network over all streams in parts. A part has `sequence` decisions of each stream.

    Yields, for each part, the sum of the losses and the number of decisions that count.
    """
    for logits_TSA, now in _unrolled(network, streams, sequence):
        actions_TSA, weight_TS = streams.actions_LSA[now].float(), streams.weight_LS[now]
        legal_TSA = None if streams.legal_LSA is None else streams.legal_LSA[now]
        kind = network.config.action_kind
        loss_TS = log_loss(kind, logits_TSA, actions_TSA, legal_TSA, smoothing)
        yield (loss_TS * weight_TS).sum(), weight_TS.sum()


def _unrolled(
    network: AgentNetwork, streams: Streams, sequence: int
) -> Iterator[tuple[Tensor, slice]]:
    """Runs the network over the streams, `sequence` decisions of each stream at a time. Yields the
    logits of these decisions, and the slice of the streams that they belong to.

    The memory continues from one sequence to the next, but the gradient does not.
    """
    config, rows = network.config, len(streams.weight_LS)
    h_SH = c_SH = network.initial_state(streams.weight_LS.shape[1]).h_BH
    for first in range(0, rows, sequence):
        prefix, now = min(config.context, first), slice(first, first + sequence)
        seen = slice(first - prefix, first + sequence)
        # Only the critic has the time left as an input, and cloning does not train the critic.
        left_TS = torch.zeros_like(streams.weight_LS[now])
        out = network.unroll(
            streams.obs_LSO[seen], streams.starts_LS[seen], h_SH, c_SH, left_TS, prefix
        )
        h_SH, c_SH = out.h_BH.detach(), out.c_BH.detach()
        yield out.logits_TBA, now


def make_clone(
    replays: Path,
    seat: str,
    sections: Sections,
    blobs: BlobFolder,
    device: torch.device,
    progress: Callable[[str], None] = print,
    temperature: float = 1.0,
) -> tuple[str, SnapshotCard]:
    """Trains a clone of the player `seat` from replays, and saves it as a snapshot. Returns the
    digest of the weights, and the card.

    On the same device and with a single thread, the same replays and settings give the same file.

    Args:
        replays: folder of the replays.
        seat: the player to clone, as the replays name it.
        sections: settings, of which [game], [agent] and [cloning] are used.
        blobs: folder for the snapshot.
        progress: called with a line for each step.
        temperature: divisor of the clone's logits. Below 1, the clone takes likely actions even
            more often than the player did, and unlikely actions less often.
    """
    game, settings = sections.of(GameSettings), sections.of(CloningSettings)
    spec = game.spec()
    recorded = demonstrations(read_replays(replays, game), seat, frame_skip=game.frame_skip)
    learnt, held_out = split(recorded, settings.seed)
    config = AgentConfig.of(sections.of(AgentSettings), spec)
    network = new_network(config, learnt, settings.seed).to(device)
    metrics = {"matches": float(len(recorded)), "decisions": float(sum(map(len, recorded)))}
    metrics["temperature"] = temperature
    for epoch in train(network, learnt, held_out, settings):
        if epoch.number == 0:
            metrics["marginal_log_loss"] = epoch.held_out
            progress(
                f"{seat}: {len(learnt)} matches ({sum(map(len, learnt)):,} decisions) to learn "
                f"from, {len(held_out)} held out; its rates alone cost {epoch.held_out:.3f} nats "
                "a decision"
            )
        else:
            progress(
                f"pass {epoch.number} of {settings.epochs} at most, {epoch.seconds:.0f} s: loss "
                f"{epoch.loss:.3f}, held out {epoch.held_out:.3f}{' (best)' * epoch.is_best}"
            )
        if epoch.is_best:
            metrics |= {"log_loss": epoch.loss, "held_out_log_loss": epoch.held_out}
    with torch.no_grad():
        for weights in network.actor.last.parameters():
            weights.div_(temperature)
    card = SnapshotCard(
        agent=config,
        game=spec.name,
        game_version=spec.version,
        frame_skip=game.frame_skip,
        role="clone",
        cloned_from=seat,
        seed=settings.seed,
        reward_preset=game.reward,
        config_hash=sections_hash({name: sections[name] for name in ("game", "agent", "cloning")}),
        metrics=metrics,
    )
    return save_snapshot(blobs, network, card), card
