"""Keeps references: frozen copies of the learner. Regularisation keeps the learner near them.

A reference has its own weights and recurrent memory. After each rollout it is unrolled once,
without a gradient, over the observations that the learner saw. In all epochs of the update, the
learner's policy is compared with the resulting logits. A new reference starts with a copy of the
learner's memory of the matches in progress. From then on it has a memory of its own, which is
cleared at the start of each match.

The learner's seat is its side of a match. In self-play the learner also plays the opponent's seat.

Shape suffixes: M references, X rows (history and steps), T steps, N matches, C matches in which
references play (the first C of the N), B matches of a minibatch, O observation, A actions, H
memory.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.network import AgentNetwork
from learner.distributed.rank_group import RankGroup
from learner.ppo.divergence import Divergence, closest_divergence, kl_to_fixed, pairwise_kl
from learner.rollout.buffer import Minibatch, SequenceBuffer
from learner.settings import RegularisationSettings

ROWS_AT_ONCE = {"cpu": 4096, "cuda": 1 << 17}
"""Largest number of rows (of history and steps, over all matches) that go through a reference in a
single call. It suits the CPU's caches and the GPU's memory.
"""
MATCH_SHARE = 0.25
"""Share of the matches in which a portfolio of references plays, if the divergence is a term of the
loss. With this share, references take less than a tenth of the learner's time. A single reference
takes less than a tenth even in all matches, so it plays in all. If the divergence is part of the
rewards, references play in all matches, too.
"""
PORTFOLIO_INTERVAL = 5_000
"""Number of optimizer steps between additions to the portfolio. The anchor is the newest reference.
In each interval of this length, the first anchor that is replaced joins the portfolio. All other
replaced anchors are dropped.
"""
log = logging.getLogger(__name__)

Memory = tuple[Tensor, Tensor]
"""The h and c of an LSTM, `[N, H]` each."""


@dataclass(kw_only=True, eq=False)
class Reference:
    """Holds a frozen copy of the learner and its memory of the matches in progress.

    Attributes:
        own: the copy's memory in the learner's seats.
        other: the copy's memory in the opponents' seats, for self-play. None unless the divergence
            is part of the rewards.
    """

    name: str
    step: int
    network: AgentNetwork
    own: Memory
    other: Memory | None = None


class References:
    """Keeps the newest reference (the anchor) and a portfolio of older references.

    The functions `register`, `ratings` and `keep` connect the references with a league. Their
    defaults work without a league.

    Attributes:
        members: the anchor, then the portfolio, oldest first.
        register: makes a frozen copy a member of the league and returns its name.
        ratings: returns the references' scores by name. Only `pruning = "best"` needs them.
        keep: called with the names of all members after each renewal.

    Args:
        settings: the section [regularisation].
        config: sizes of the network.
        matches: N.
        device: device that computes.
        autocast: returns a context that sets the precision in which the references play, the same
            precision as in the learner's updates.
        group: the ranks. The leader chooses which reference to drop, and all ranks drop the same.
    """

    def __init__(
        self,
        settings: RegularisationSettings,
        config: AgentConfig,
        matches: int,
        device: torch.device,
        autocast: Callable[[], AbstractContextManager[None]],
        group: RankGroup,
    ) -> None:
        self.settings, self.config, self.device, self.autocast = settings, config, device, autocast
        self.group = group
        in_all = settings.form == "reward" or settings.portfolio_size == 1
        share = 1.0 if in_all else MATCH_SHARE
        self.matches, self.covered = matches, max(1, math.ceil(share * matches))
        self.members: list[Reference] = []
        self.renewed_at = self.kept_at = 0  # in optimizer steps
        self.portfolio_interval = PORTFOLIO_INTERVAL
        self.register: Callable[[AgentNetwork, int], str] = lambda _, step: f"reference-{step}"
        self.ratings: Callable[[], Mapping[str, float]] = dict
        self.keep: Callable[[Sequence[str]], None] = lambda _: None
        self.logits_MTCA = torch.empty(0)  # of the newest rollout
        self.seconds = 0.0

    # -- renewal --------------------------------------------------------------------------------

    def begin(self, network: AgentNetwork, own: Memory, other: Memory | None, step: int) -> None:
        """Freezes the learner as the first reference if there is no reference yet.

        Args:
            network: the learner.
            own: the learner's memory in its own seats.
            other: the learner's memory in the opponents' seats, which the learner also plays in
                self-play. None if the divergence is not part of the rewards.
            step: step of the training.
        """
        if not self.members:
            self.members = [self._freeze(network, own, other, step)]

    def due(self, updates: int) -> bool:
        """Returns whether the anchor is to be renewed now, after `updates` optimizer steps."""
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
        """Freezes the learner as the new anchor. The old anchor joins the portfolio or is dropped.

        Args:
            network: the learner.
            own: the learner's memory in its own seats.
            other: the learner's memory in the opponents' seats, which the learner also plays in
                self-play. None if the divergence is not part of the rewards.
            step: step of the training.
            updates: the learner's optimizer steps so far.
            buffer: the rollout over which the references were last unrolled.
        """
        interval = self.portfolio_interval
        stays = self.settings.portfolio_size > 1 and updates // interval > self.kept_at // interval
        candidates = self.members[1:] + self.members[:1] if stays else self.members[1:]
        if stays:
            self.kept_at = updates
        while len(candidates) > self.settings.portfolio_size - 1:
            dropped = candidates.pop(self.group.broadcast(self._surplus(candidates, buffer)))
            log.info("%s leaves the portfolio", dropped.name)
        self.members = [self._freeze(network, own, other, step), *candidates]
        self.renewed_at = updates
        self.keep_members()
        log.info("renewed the reference: %s", self.members[0].name)

    def keep_members(self) -> None:
        """Reports the current members, so that the league retires all other references."""
        self.keep([member.name for member in self.members])

    def _freeze(
        self, learner: AgentNetwork, own: Memory, other: Memory | None, step: int
    ) -> Reference:
        network = self._network(learner.state_dict())
        return Reference(
            name=self.register(network, step),
            step=step,
            network=network,
            own=(own[0][: self.covered].clone(), own[1][: self.covered].clone()),
            other=None if other is None else (other[0].clone(), other[1].clone()),
        )

    def _network(self, weights: Mapping[str, Tensor]) -> AgentNetwork:
        """Makes a frozen network with a copy of `weights`, without drawing random numbers."""
        with torch.device("meta"):
            network = AgentNetwork(self.config)
        copies = {name: x.detach().to(self.device, copy=True) for name, x in weights.items()}
        network.load_state_dict(copies, assign=True)
        return network.requires_grad_(False).eval()

    def _surplus(self, candidates: list[Reference], buffer: SequenceBuffer) -> int:
        if self.settings.pruning == "recent" or len(candidates) == 1:
            return 0
        if self.settings.pruning == "best":
            scores = self.ratings()
            return lowest_rated([scores.get(reference.name) for reference in candidates])
        places = [self.members.index(reference) for reference in candidates]
        legal_TNA, weight_TN = buffer.legal_TNA, buffer.decided_TN()
        kl_MM = pairwise_kl(
            self.config.action_kind,
            self.logits_MTCA[places],
            None if legal_TNA is None else legal_TNA[:, : self.covered],
            weight_TN[:, : self.covered],
        )
        return most_redundant(kl_MM.cpu().numpy())

    # -- playing --------------------------------------------------------------------------------

    def play(self, buffer: SequenceBuffer, steps: int) -> None:
        """Unrolls every reference over the first `steps` steps of the rollout, and keeps its
        logits.
        """
        started = time.perf_counter()
        context, here = buffer.context, slice(0, self.covered)
        obs_XCO = buffer.obs_XNO[: context + steps, here]
        starts_XC = buffer.starts_XN[: context + steps, here]
        played_C = (
            np.full(self.covered, steps) if buffer.played_N is None else buffer.played_N[here]
        )
        logits = []
        for ref in self.members:
            before = ref.own
            with self.autocast():
                logits_TCA, ref.own = unrolled(ref.network, obs_XCO, starts_XC, before, context)
                for played in np.setdiff1d(played_C, steps):  # these matches have waited
                    rows, last = np.flatnonzero(played_C == played), context + int(played)
                    own = before[0][rows], before[1][rows]
                    if played:
                        seen = obs_XCO[:last, rows], starts_XC[:last, rows]
                        _, own = unrolled(ref.network, *seen, own, context)
                    ref.own[0][rows], ref.own[1][rows] = own
            logits.append(logits_TCA)
        self.logits_MTCA = torch.stack(logits)
        self.seconds += time.perf_counter() - started

    def divergence(self, logits_TBA: Tensor, batch: Minibatch) -> Divergence | None:
        """Computes the KL divergence of the policy from the closest reference in each state of a
        minibatch.

        Only the matches in which references play are used, as a sample of all matches. The result
        is an unbiased estimate of the mean over all matches.

        Args:
            logits_TBA: the policy's logits.
            batch: the minibatch.

        Returns:
            The divergence, or None if no reference plays in any match of the minibatch.
        """
        covered_B = batch.rows_B < self.covered
        if not covered_B.any():
            return None
        weight_TB = batch.decided_TB()
        weight_TB = torch.ones_like(batch.value_TB) if weight_TB is None else weight_TB
        kl_MTB = kl_to_fixed(
            self.config.action_kind,
            logits_TBA[:, covered_B],
            self.logits_MTCA[:, :, batch.rows_B[covered_B]],
            None if batch.legal_TBA is None else batch.legal_TBA[:, covered_B],
        )
        states = float(weight_TB.sum()) * self.covered / self.matches
        return closest_divergence(kl_MTB, weight_TB[:, covered_B], states)

    def metrics(self, divergence: Divergence) -> dict[str, float]:
        """Returns metrics for the log: the divergence, and then three metrics of each reference, of
        the anchor first.
        """
        numbers: list[Any] = [divergence.loss.detach()]
        for kl, share, member in zip(
            divergence.kl_M, divergence.closest_M, self.members, strict=True
        ):
            numbers += [kl, share, member.step]
        return dict(zip(self.metric_names(), map(float, numbers), strict=True))

    def metric_names(self) -> tuple[str, ...]:
        """Returns the names that `metrics` uses."""
        places = ["anchor", *(f"portfolio_{index}" for index in range(1, len(self.members)))]
        figures = ("kl", "closest_share", "step")
        return (
            "reference/kl",
            *(f"reference/{member}_{figure}" for member in places for figure in figures),
        )

    # -- checkpoints ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Returns weights, names and counters, for a checkpoint between rollouts."""
        return {
            "members": [
                {"name": member.name, "step": member.step, "weights": member.network.state_dict()}
                for member in self.members
            ],
            "renewed_at": self.renewed_at,
            "kept_at": self.kept_at,
        }

    def memories(self) -> list[list[list[Tensor] | None]]:
        """Returns each member's memories of the matches in progress, for a checkpoint."""
        return [[list(member.own), member.other and list(member.other)] for member in self.members]

    def load(self, state: Mapping[str, Any], memories: Sequence[Any] = ()) -> None:
        """Continues from a checkpoint.

        Args:
            state: the result of `state`.
            memories: the result of `memories`. If they are missing or belong to another number of
                matches, all references start with an empty memory.
        """
        memories = memories or [(None, None)] * len(state["members"])
        reward_form = self.settings.form == "reward"
        self.members = [
            Reference(
                name=saved["name"],
                step=saved["step"],
                network=self._network(saved["weights"]),
                own=self._memory(own, self.covered),
                other=self._memory(other, self.matches) if reward_form else None,
            )
            for saved, (own, other) in zip(state["members"], memories, strict=True)
        ]
        self.renewed_at, self.kept_at = state["renewed_at"], state["kept_at"]

    def _memory(self, saved: list[Tensor] | None, rows: int) -> Memory:
        shape = (rows, self.config.memory)
        if saved is None or saved[0].shape != shape:
            return torch.zeros(shape, device=self.device), torch.zeros(shape, device=self.device)
        h, c = (x.to(self.device, copy=True) for x in saved)
        return h, c


def lowest_rated(scores: Sequence[float | None]) -> int:
    """Returns the index of the lowest score, or 0 without scores. A tie goes to the first."""
    rated = [(score, index) for index, score in enumerate(scores) if score is not None]
    return min(rated)[1] if rated else 0


def most_redundant(kl_MM: NDArray[np.floating]) -> int:
    """Returns the index of the member that is closest to another member. A tie goes to the first.

    Args:
        kl_MM: `[i, j]` is KL(π_i ‖ π_j) on a batch of states, the error that arises if π_j replaces
            π_i.
    """
    others_MM = np.where(np.eye(len(kl_MM), dtype=bool), np.inf, kl_MM)
    return int(others_MM.min(1).argmin())


@torch.no_grad()
def unrolled(
    network: AgentNetwork, obs_XNO: Tensor, starts_XN: Tensor, memory: Memory, context: int
) -> tuple[Tensor, Memory]:
    """Unrolls a network over given observations.

    Args:
        network: the network.
        obs_XNO: observations of history and steps.
        starts_XN: where an episode starts.
        memory: the LSTM's state before the steps.
        context: number of rows of history before the steps.

    Returns:
        Logits `[T, N, A]` and the memory after the steps.
    """
    h_NH, c_NH = memory
    (rows, matches, _), device = obs_XNO.shape, obs_XNO.device
    at_once = max(1, ROWS_AT_ONCE.get(device.type, 4096) // rows)
    parts = []
    for first in range(0, matches, at_once):
        here = slice(first, first + at_once)
        # The time left is an input of the critic only, so any number will do.
        time_left_TB = obs_XNO.new_zeros(rows - context, h_NH[here].shape[0])
        parts.append(
            network.unroll(
                obs_XNO[:, here], starts_XN[:, here], h_NH[here], c_NH[here], time_left_TB, context
            )
        )
    logits_TNA = torch.cat([part.logits_TBA.float() for part in parts], 1)
    h_NH = torch.cat([part.h_BH for part in parts]).float()
    c_NH = torch.cat([part.c_BH for part in parts]).float()
    return logits_TNA, (h_NH, c_NH)
