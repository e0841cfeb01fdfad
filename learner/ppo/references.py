"""The references that a learner is held near: frozen copies of itself that play along in its
matches.

A reference has weights and a memory of its own. After each rollout it is unrolled once, without a
gradient, over the very observations that the learner saw; its logits are kept and every epoch is
compared with them. Its encoder reads the history that the rollout buffer carries, its LSTM goes on
from where it was after the rollout before, and both start anew with each match, as the learner's
do. A copy is frozen with the learner's memory of the matches in progress, which from then on goes
its own way.

Shape suffixes: M references, X rows (history and steps), T steps, N matches, C matches in which
references play along (the first C of the N), B matches of a minibatch, O observation, A actions, H
memory.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from learner.ppo.divergence import Divergence, closest_divergence, kl_to_fixed, pairwise_kl
from learner.ppo.portfolio import least_apart, lowest_rated, oldest
from learner.rollout.buffer import Minibatch, SequenceBuffer
from learner.settings import RegularisationSettings

ROWS_AT_ONCE = {"cpu": 4096, "cuda": 1 << 17}
"""History and steps of as many matches as fit go through a reference together: caches, and
memory.
"""

log = logging.getLogger(__name__)

Memory = tuple[Tensor, Tensor]
"""h and c of an LSTM, `[N, H]` each."""


@dataclass(kw_only=True, eq=False)
class Reference:
    """One frozen copy and what it remembers of the matches in progress."""

    name: str
    step: int
    network: AgentNetwork
    own: Memory
    """Of the learner's seats in which it plays along."""
    other: Memory | None = None
    """Of the seats across, in the reward form."""


def unnamed(network: AgentNetwork, step: int) -> str:
    """The name of a reference that no league knows."""
    return f"reference-{step}"


def nobody_rated() -> Mapping[str, float]:
    """What is known of ratings without a league."""
    return {}


def nobody_to_tell(names: Sequence[str]) -> None:
    """Where no league has members of these names."""


class References:
    """The newest reference (the anchor) and the portfolio of older ones.

    Args:
        register: makes a frozen copy a member of the league and returns its name. ratings: scores
        by name, asked for when `pruning` is `best`. keep: told the names of those that there are,
        whenever some have left. agree: given the index that this process would drop, the one that
        all processes drop. autocast: in what precision they play along: the one that the learner is
        compared with them in.
    """

    def __init__(
        self,
        settings: RegularisationSettings,
        config: AgentConfig,
        matches: int,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.settings, self.config, self.device, self.autocast = settings, config, device, autocast
        share = 1.0 if settings.form == "reward" else settings.match_share
        self.matches, self.covered = matches, max(1, math.ceil(share * matches))
        self.members: list[Reference] = []  # the anchor, then the portfolio, oldest first
        # updates at the last renewal, and at the last that kept the old
        self.renewed_at = self.kept_at = 0
        self.register: Callable[[AgentNetwork, int], str] = unnamed
        self.ratings: Callable[[], Mapping[str, float]] = nobody_rated
        self.keep: Callable[[Sequence[str]], None] = nobody_to_tell
        self.agree: Callable[[int], int] = int
        self.logits_MTCA: Tensor | None = None
        self.seconds = 0.0

    # -- renewal --------------------------------------------------------------------------------

    def begin(self, network: AgentNetwork, own: Memory, other: Memory | None, step: int) -> None:
        """The first reference: the learner as it is before its first rollout, if there is none
        yet.
        """
        if not self.members:
            self.members = [self._freeze(network.state_dict(), own, other, step)]

    def due(self, updates: int) -> bool:
        """Whether the anchor is to be renewed after this many updates."""
        interval = self.settings.reference_interval
        return interval > 0 and updates // interval > self.renewed_at // interval

    def renew(
        self,
        network: AgentNetwork,
        own: Memory,
        other: Memory | None,
        step: int,
        updates: int,
        buffer: SequenceBuffer,
    ) -> None:
        """Freezes the learner as the new anchor. The old one leaves, or stays in the portfolio.

        `buffer` holds the rollout that the references were last unrolled over: the probe on which
        their differences are measured.
        """
        interval, old = self.settings.portfolio_interval, self.members[0]
        stays = self.settings.portfolio_size > 1 and updates // interval > self.kept_at // interval
        candidates = self.members[1:] + self.members[:1] if stays else self.members[1:]
        if stays:
            self.kept_at = updates
        while len(candidates) > self.settings.portfolio_size - 1:
            dropped = candidates.pop(self.agree(self._surplus(candidates, buffer)))
            log.info("%s leaves the portfolio", dropped.name)
        share, weights = self.settings.reference_ema, network.state_dict()
        if share:
            past = old.network.state_dict()
            weights = {name: new.lerp(past[name], share) for name, new in weights.items()}
        self.members = [self._freeze(weights, own, other, step), *candidates]
        self.renewed_at = updates
        self.tell()
        log.info("renewed the reference: %s", self.members[0].name)

    def tell(self) -> None:
        """Says which references there are: the others are no members any more."""
        self.keep([reference.name for reference in self.members])

    def _freeze(
        self, weights: Mapping[str, Tensor], own: Memory, other: Memory | None, step: int
    ) -> Reference:
        network = self._network(weights)
        return Reference(
            name=self.register(network, step),
            step=step,
            network=network,
            own=(own[0][: self.covered].clone(), own[1][: self.covered].clone()),
            other=None if other is None else (other[0].clone(), other[1].clone()),
        )

    def _network(self, weights: Mapping[str, Tensor]) -> AgentNetwork:
        """A frozen network around a copy of `weights`; draws no random numbers."""
        with torch.device("meta"):
            network = AgentNetwork(self.config)
        copies = {name: part.detach().to(self.device, copy=True) for name, part in weights.items()}
        network.load_state_dict(copies, assign=True)
        return network.requires_grad_(False).eval()

    def _surplus(self, candidates: list[Reference], buffer: SequenceBuffer) -> int:
        """Which of too many references leaves."""
        if self.settings.pruning == "recent" or len(candidates) == 1:
            return oldest(len(candidates))
        if self.settings.pruning == "best":
            scores = self.ratings()
            return lowest_rated([scores.get(reference.name) for reference in candidates])
        assert self.logits_MTCA is not None, "references are renewed behind a rollout"
        places = [self.members.index(reference) for reference in candidates]
        legal_TNA, weight_TN = buffer.legal_TNA, buffer.decided_TN()
        legal_TCA = None if legal_TNA is None else legal_TNA[:, : self.covered]
        apart_MM = pairwise_kl(
            self.config.action_kind,
            self.logits_MTCA[places],
            legal_TCA,
            weight_TN[:, : self.covered],
        )
        return least_apart(apart_MM.cpu().numpy())

    # -- playing along --------------------------------------------------------------------------

    def play_along(self, buffer: SequenceBuffer, steps: int) -> None:
        """Unrolls every reference over the rollout's first `steps` steps and remembers its
        logits.
        """
        started = time.perf_counter()
        context, here = buffer.context, slice(0, self.covered)
        obs_XCO = buffer.obs_XNO[: context + steps, here]
        starts_XC = buffer.starts_XN[: context + steps, here]
        logits = []
        for one in self.members:
            with self.autocast():
                logits_TCA, one.own = unrolled(one.network, obs_XCO, starts_XC, one.own, context)
            logits.append(logits_TCA)
        self.logits_MTCA = torch.stack(logits)
        self.seconds += time.perf_counter() - started

    def divergence(self, logits_TBA: Tensor, batch: Minibatch) -> Divergence | None:
        """How far the policy of a minibatch is from its closest reference in each state.

        None when no reference plays along in any match of the minibatch. The matches in which they
        do stand for all: over many minibatches the mean is that of all matches.
        """
        assert self.logits_MTCA is not None, "a rollout comes before an update"
        along_B = batch.rows_B < self.covered
        if not along_B.any():
            return None
        weight_TB = batch.decided_TB()
        weight_TB = torch.ones_like(batch.value_TB) if weight_TB is None else weight_TB
        kl_MTB = kl_to_fixed(
            self.config.action_kind,
            logits_TBA[:, along_B],
            self.logits_MTCA[:, :, batch.rows_B[along_B]],
            None if batch.legal_TBA is None else batch.legal_TBA[:, along_B],
        )
        states = float(weight_TB.sum()) * self.covered / self.matches
        return closest_divergence(kl_MTB, weight_TB[:, along_B], states)

    def measured(self, divergence: Divergence) -> dict[str, float]:
        """Numbers for the log: of the anchor, and of the portfolio's members from the oldest on."""
        numbers = [float(divergence.loss.detach())]
        for index, reference in enumerate(self.members):
            numbers += [
                float(divergence.kl_M[index]),
                float(divergence.closest_M[index]),
                float(reference.step),
            ]
        return dict(zip(self.reading_names(), numbers, strict=True))

    def reading_names(self) -> tuple[str, ...]:
        """The names of what `measured` returns."""
        places = ["anchor", *(f"portfolio_{index}" for index in range(1, len(self.members)))]
        what = ("kl", "closest_share", "step")
        return ("reference/kl", *(f"reference/{place}_{one}" for place in places for one in what))

    # -- checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Weights, memories, names and counters, for the checkpoint; between rollouts nothing
        else counts.
        """
        return {
            "members": [
                {
                    "name": reference.name,
                    "step": reference.step,
                    "weights": reference.network.state_dict(),
                    "own": list(reference.own),
                    "other": None if reference.other is None else list(reference.other),
                }
                for reference in self.members
            ],
            "renewed_at": self.renewed_at,
            "kept_at": self.kept_at,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from `state`; with another number of matches (or none carried on) memories
        begin empty.
        """
        self.members = []
        for saved in state["members"]:
            h_CH, c_CH = self._memory(saved["own"], self.covered)
            other = (
                self._memory(saved["other"], self.matches)
                if self.settings.form == "reward"
                else None
            )
            self.members.append(
                Reference(
                    name=saved["name"],
                    step=saved["step"],
                    network=self._network(saved["weights"]),
                    own=(h_CH, c_CH),
                    other=other,
                )
            )
        self.renewed_at, self.kept_at = state["renewed_at"], state["kept_at"]

    def forget_matches(self) -> None:
        """Empties every memory: new matches begin."""
        for reference in self.members:
            for memory in (reference.own, reference.other):
                for part in memory or ():
                    part.zero_()

    def _memory(self, saved: list[Tensor] | None, rows: int) -> Memory:
        shape = (rows, self.config.memory)
        if saved is None or saved[0].shape != shape:
            return torch.zeros(shape, device=self.device), torch.zeros(shape, device=self.device)
        h, c = (part.to(self.device, copy=True) for part in saved)
        return h, c


@torch.no_grad()
def unrolled(
    network: AgentNetwork, obs_XNO: Tensor, starts_XN: Tensor, memory: Memory, context: int
) -> tuple[Tensor, Memory]:
    """Logits `[T, N, A]` of a network that plays along, and its memory after the last step:
    float32.
    """
    h_NH, c_NH = memory
    (rows, matches, _), device = obs_XNO.shape, obs_XNO.device
    at_once = max(1, ROWS_AT_ONCE.get(device.type, 4096) // rows)
    parts = []
    for first in range(0, matches, at_once):
        here = slice(first, first + at_once)
        # time left: the critic's alone
        unseen_TB = obs_XNO.new_zeros(rows - context, h_NH[here].shape[0])
        parts.append(
            network.unroll(
                obs_XNO[:, here], starts_XN[:, here], h_NH[here], c_NH[here], unseen_TB, context
            )
        )
    logits_TNA = torch.cat([part.logits_TBA.float() for part in parts], 1)
    h_NH, c_NH = (
        torch.cat(rows).float() for rows in zip(*((p.h_BH, p.c_BH) for p in parts), strict=True)
    )
    return logits_TNA, (h_NH, c_NH)
