"""Makes a clone: replays in, a snapshot with its card out, by supervised training.

Shape suffixes: L rows of a stream, S streams (matches side by side), X = C + T rows (C of history,
T to learn), O observation, A actions, H memory.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from league.agent.config import AgentConfig, AgentSettings
from league.agent.heads import MaskedChoice
from league.agent.network import AgentNetwork
from league.agent.recorded_matches import paired, play_bouts
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import InvalidInput, NumericalFault
from league.games.base import CHOICE, EXTERNAL, KEYS
from league.games.settings import GameSettings
from league.replay import Contender, Recipe
from league.runs.blobs import BlobFolder
from league.settings.base import Sections, sections_hash
from learner.cloning.demonstrations import Demonstration, demonstrations, read_replays
from learner.cloning.settings import CloningSettings

FEWEST_SEEDS = 4
"""Seeds that the replays must have, so that some matches can be held out."""
HELD_OUT = 0.1
"""Share of the matches' seeds that is not learnt from and decides when to stop."""
PATIENCE = 3
"""Passes without a lower held-out loss after which it stops."""
LAST_RATE = 0.05
"""Step size of the last pass as a share of the first one's."""
STREAMS = 8
"""Matches learnt from side by side."""
SEQUENCE = 64
"""Decisions that the gradient goes back through; the memory itself runs over whole matches."""
MAX_GRAD_NORM = 1.0
SMOOTHING = 0.002
"""Share by which the keys learnt are drawn to 1/2 (choices: to all that are legal), so that keys
that the player never used stay possible at 0.1 %, and training can find them."""


@dataclass(frozen=True)
class Chunk:
    """T rows of all streams, after up to C rows of their history.

    `weight_TS` is 1 where there was something to decide, 0 elsewhere and after a stream's end.
    """

    obs_XSO: Tensor
    starts_XS: Tensor
    actions_TSA: Tensor
    legal_TSA: Tensor | None
    weight_TS: Tensor
    prefix: int


class Streams:
    """Matches side by side on `device`: each goes, whole, to the shortest stream so far."""

    def __init__(
        self,
        demonstrations: Sequence[Demonstration],
        streams: int = STREAMS,
        device: torch.device | str = "cpu",
    ) -> None:
        self._columns: list[list[Demonstration]] = [
            [] for _ in range(min(streams, len(demonstrations)))
        ]
        lengths = [0] * len(self._columns)
        for demonstration in demonstrations:
            shortest = int(np.argmin(lengths))
            self._columns[shortest].append(demonstration)
            lengths[shortest] += len(demonstration)
        self._rows, self._device = max(lengths), device
        self._obs_LSO = self._laid(lambda d: d.obs_TO)
        self._starts_LS = self._laid(lambda d: np.arange(len(d)) == 0)
        self._actions_LSA = self._laid(lambda d: d.actions_TA)
        self._weight_LS = self._laid(lambda d: d.decided_T.astype(np.float32))
        has_legal = demonstrations[0].legal_TA is not None
        self._legal_LSA = self._laid(lambda d: d.legal_TA) if has_legal else None

    def _laid(self, part: Callable[[Demonstration], Any]) -> Tensor:
        """One part of all matches as `[L, S, ...]`; zeros after a stream's end."""
        columns = [np.concatenate([part(d) for d in column]) for column in self._columns]
        laid = np.zeros((self._rows, len(columns), *columns[0].shape[1:]), columns[0].dtype)
        for stream, joined in enumerate(columns):
            laid[: len(joined), stream] = joined
        return torch.from_numpy(laid).to(self._device)

    @property
    def width(self) -> int:
        """Number of streams."""
        return len(self._columns)

    def chunks(self, steps: int, context: int) -> Iterator[Chunk]:
        """The streams from their beginning, `steps` rows at a time, each after `context` rows."""
        for first in range(0, self._rows, steps):
            prefix, rows = min(context, first), slice(first, first + steps)
            seen = slice(first - prefix, first + steps)
            yield Chunk(
                self._obs_LSO[seen],
                self._starts_LS[seen],
                self._actions_LSA[rows].float(),
                None if self._legal_LSA is None else self._legal_LSA[rows],
                self._weight_LS[rows],
                prefix,
            )


def split(
    demonstrations: Sequence[Demonstration], seed: int
) -> tuple[list[Demonstration], list[Demonstration]]:
    """(learnt, held out), whole seeds each: the same start is never in both.

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
    """Share of the decisions in which each key was down, or choice made.

    Counted from one half each (Jeffreys' prior), so that what never occurred has a rate above 0.
    """
    counts_A = np.sum([d.actions_TA[d.decided_T].sum(0, dtype=np.float64) for d in learnt], axis=0)
    total = sum(int(d.decided_T.sum()) for d in learnt)
    rates: NDArray[np.float64] = (counts_A + 0.5) / (total + 1.0)
    return rates


def marginal_log_loss(learnt: Sequence[Demonstration], held_out: Sequence[Demonstration]) -> float:
    """Nats per decision on `held_out` of a player that knows the rates in `learnt` alone.

    `-Σ_a x_a log r_a + (1 - x_a) log(1 - r_a)` for keys, `-log r_x / Σ_legal r_a` for choices;
    forced moves are left out.
    """
    rate_A, lost, steps = rates_A(learnt), 0.0, 0
    for demonstration in held_out:
        free_T = demonstration.decided_T
        x_TA = demonstration.actions_TA[free_T].astype(np.float64)
        steps += len(x_TA)
        if demonstration.legal_TA is None:
            lost -= float((x_TA * np.log(rate_A) + (1.0 - x_TA) * np.log1p(-rate_A)).sum())
        else:
            legal_T = (rate_A * demonstration.legal_TA[free_T]).sum(-1)
            lost -= float((np.log((x_TA * rate_A).sum(-1)) - np.log(legal_T)).sum())
    return lost / max(steps, 1)


def new_network(config: AgentConfig, learnt: Sequence[Demonstration], seed: int) -> AgentNetwork:
    """A fresh network that uses each key at the player's own rate, whatever it sees."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AgentNetwork(config)
    if config.action_kind == KEYS:
        with torch.no_grad():
            network.actor.last.bias.copy_(torch.logit(torch.from_numpy(rates_A(learnt))).float())
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
    loss_TSA = functional.binary_cross_entropy_with_logits(logits_TSA, target_TSA, reduction="none")
    return loss_TSA.sum(-1)


@dataclass(frozen=True)
class Epoch:
    """One pass over the matches; losses in nats per decision, `held_out` without smoothing."""

    number: int
    loss: float
    held_out: float
    is_best: bool
    learning_rate: float
    seconds: float


def train(
    network: AgentNetwork,
    learnt: Sequence[Demonstration],
    held_out: Sequence[Demonstration],
    settings: CloningSettings,
) -> Iterator[Epoch]:
    """Passes of Adam until the held-out loss falls no more; `network` ends with the best weights.

    Raises:
        NumericalFault: the loss is not finite.
    """
    device, started = network.device, time.perf_counter()
    optimizer = torch.optim.Adam(network.parameters(), lr=settings.learning_rate, eps=1e-5)
    judged = Streams(sorted(held_out, key=len, reverse=True), device=device)
    rng = np.random.default_rng([settings.seed, 1])
    best, kept, waited = math.inf, copy.deepcopy(network.state_dict()), 0
    for number in range(1, settings.epochs + 1):
        done = (number - 1) / max(settings.epochs - 1, 1)
        rate = settings.learning_rate * (1.0 + done * (LAST_RATE - 1.0))
        for group in optimizer.param_groups:
            group["lr"] = rate
        streams = Streams([learnt[i] for i in rng.permutation(len(learnt))], device=device)
        loss = _pass(network, streams, optimizer)
        judgement = evaluate(network, judged)
        is_best = judgement < best
        yield Epoch(number, loss, judgement, is_best, rate, time.perf_counter() - started)
        waited = 0 if is_best else waited + 1
        if is_best:
            best, kept = judgement, copy.deepcopy(network.state_dict())
        if waited >= PATIENCE:
            break
    network.load_state_dict(kept)


def _pass(network: AgentNetwork, streams: Streams, optimizer: torch.optim.Optimizer) -> float:
    """One pass of training; returns its loss."""
    total, count = 0.0, 0.0
    for chunk, logits_TSA in _played(network, streams, SEQUENCE):
        steps = chunk.weight_TS.sum()
        if not steps:
            continue
        loss_TS = log_loss(network.config.action_kind, logits_TSA, chunk, SMOOTHING)
        loss = (loss_TS * chunk.weight_TS).sum()
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
    """Log-loss without smoothing over all matches of `streams`, in nats per decision."""
    total, count = 0.0, 0.0
    for chunk, logits_TSA in _played(network, streams, sequence):
        loss_TS = log_loss(network.config.action_kind, logits_TSA, chunk)
        total += float((loss_TS * chunk.weight_TS).sum())
        count += float(chunk.weight_TS.sum())
    return total / max(count, 1.0)


def _played(
    network: AgentNetwork, streams: Streams, sequence: int
) -> Iterator[tuple[Chunk, Tensor]]:
    """Chunks with their logits; the memory continues from chunk to chunk, the gradient does not."""
    h_SH = c_SH = network.initial_state(streams.width).h_BH
    for chunk in streams.chunks(sequence, network.config.context):
        # Only the critic sees the time left, and nothing is learnt about values here.
        time_left_TS = torch.zeros_like(chunk.weight_TS)
        out = network.unroll(chunk.obs_XSO, chunk.starts_XS, h_SH, c_SH, time_left_TS, chunk.prefix)
        h_SH, c_SH = out.h_BH.detach(), out.c_BH.detach()
        yield chunk, out.logits_TBA


def make_clone(
    replays: Path,
    seat: str,
    sections: Sections,
    blobs: BlobFolder,
    device: torch.device,
    *,
    matches: int = 200,
    progress: Callable[[str], None] = print,
) -> tuple[str, SnapshotCard]:
    """Learns from replays to play as `seat` did, and saves the snapshot.

    The same replays and settings give the same file on one device and one thread.

    Args:
        replays: their folder.
        seat: the player to clone, as the replays name it.
        sections: settings; [game], [agent] and [cloning] count.
        blobs: where the snapshot goes.
        device: where to learn.
        matches: played at the end against a cloned bot, 0 for none.
        progress: called with a line for each step.

    Returns:
        The digest of the weights, and the card.
    """
    game, settings = sections.of(GameSettings), sections.of(CloningSettings)
    spec = game.spec()
    found = demonstrations(read_replays(replays, game), seat, frame_skip=game.frame_skip)
    learnt, held_out = split(found, settings.seed)
    marginal = marginal_log_loss(learnt, held_out)
    progress(
        f"{seat}: {len(learnt)} matches ({sum(map(len, learnt)):,} decisions) to learn "
        f"from, {len(held_out)} held out; key rates alone cost {marginal:.3f} nats a decision"
    )
    config = AgentConfig.of(sections.of(AgentSettings), spec)
    network = new_network(config, learnt, settings.seed).to(device)
    metrics = {
        "matches": float(len(found)),
        "decisions": float(sum(map(len, found))),
        "marginal_log_loss": marginal,
    }
    for epoch in train(network, learnt, held_out, settings):
        progress(
            f"pass {epoch.number} of {settings.epochs} at most, {epoch.seconds:.0f} s: loss "
            f"{epoch.loss:.3f}, held out {epoch.held_out:.3f}{' (best)' * epoch.is_best}"
        )
        if epoch.is_best:
            metrics |= {"log_loss": epoch.loss, "held_out_log_loss": epoch.held_out}
    if matches and seat in (bot.name for bot in spec.bots):
        original = (Contender(name=seat), spec.bot_index(seat))
        metrics |= _play_original(network.cpu(), game, original, matches, settings.seed, progress)
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


def _play_original(
    network: AgentNetwork,
    game: GameSettings,
    original: tuple[Contender, int],
    matches: int,
    seed: int,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """Plays the clone, sampled, against the bot that it was cloned from, seats swapped."""
    frozen = copy.deepcopy(network).requires_grad_(False).eval()
    clone, (bot, index) = Contender(name="the clone", digest="clone"), original
    replays = play_bouts(
        Recipe.of(game),
        paired(clone, bot, (EXTERNAL, index), matches, seed=0),
        lambda _: frozen,
        frame_skip=game.frame_skip,
        seed=seed,
    )
    outcomes = [r.outcome if r.seats[0] == clone else 1.0 - r.outcome for r in replays]
    wins, draws = outcomes.count(1.0), outcomes.count(0.5)
    score = sum(outcomes) / len(outcomes)
    progress(
        f"against {bot.name} itself, keys sampled, seats swapped: {wins} wins, {draws} draws, "
        f"{len(outcomes) - wins - draws} losses, {100 * score:.1f} % with draws as halves"
    )
    return {"score_against_original": score, "matches_against_original": float(len(outcomes))}
