"""Stores a rollout in memory, preceded by the history that the encoder needs. Time is the first
axis.

Shape suffixes: X = C + T rows (C of context and T of the rollout), N matches, B matches of a
minibatch, O observation, A actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agent.config import AgentConfig
from league.games.base import CHOICE


@dataclass(frozen=True, kw_only=True)
class OpponentActions:
    """Holds the opponents' actions of a step.

    Attributes:
        actions_NA: the keys that the opponents held in the step's last frame, or their choices
            (one-hot). The row is zero where `known_N` is false.
        legal_NA: the opponents' legal choices, None if the actions are keys.
        known_N: whether each action is known. Forced and illegal choices count as unknown.
    """

    actions_NA: NDArray[np.uint8]
    legal_NA: NDArray[np.bool_] | None
    known_N: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """Holds the whole sequences of some matches of a rollout.

    Attributes:
        weight_TB: 0 in steps that don't count, such as the steps of failed matches. None: all steps
            count.
        across_TBA: the opponents' actions, None if they are not kept.
        known_TB: 1 in steps that count if the opponent's action is known and was not forced,
            otherwise 0.
    """

    obs_XBO: Tensor
    starts_XB: Tensor
    time_left_TB: Tensor
    h_BH: Tensor
    c_BH: Tensor
    actions_TBA: Tensor
    legal_TBA: Tensor | None
    log_prob_TB: Tensor
    value_TB: Tensor
    advantage_TB: Tensor
    target_TB: Tensor
    weight_TB: Tensor | None
    across_TBA: Tensor | None
    across_legal_TBA: Tensor | None
    known_TB: Tensor | None
    rows_B: Tensor

    def split(self, parts: int) -> Iterator[Minibatch]:
        """Splits into up to `parts` smaller minibatches of similar size."""
        if parts == 1:
            yield self
            return
        for rows in torch.arange(len(self.rows_B), device=self.rows_B.device).tensor_split(parts):
            if len(rows):
                yield Minibatch(**{name: _rows(name, x, rows) for name, x in vars(self).items()})

    def decided_TB(self) -> Tensor | None:
        """Returns 1 for steps in which the learner has made a decision that counts, and 0 for other
        steps. None means that all steps have such a decision.

        A choice is forced if it is the only legal choice, for example on the opponent's turn. A
        forced choice has no gradient. If it counted, it would only make the mean gradient smaller.
        """
        if self.legal_TBA is None:
            return self.weight_TB
        free_TB = (self.legal_TBA.sum(-1) > 1).float()
        return free_TB if self.weight_TB is None else free_TB * self.weight_TB


def _rows(name: str, tensor: Tensor | None, rows: Tensor) -> Any:
    """Selects the matches `rows` from a field of a minibatch.

    The field's name ends with the names of its axes. Matches are the first axis, except in fields
    whose first axis is time (X or T): there they are the second.
    """
    if tensor is None:
        return None
    return tensor.index_select(0 if name.rpartition("_")[2][0] == "B" else 1, rows)


class History:
    """Stores the observations of one player in each of N matches: C rows of context, then T rows of
    the rollout.

    The last C observations of a rollout are the context of the next rollout. Episode starts are
    stored as well, so that the encoder does not read observations of an earlier match.

    Attributes:
        played_N: number of steps that each match has made in this rollout, None if no match has
            waited. A match waits in a step if the opponent is an agent in another process and has
            not yet decided (`LeagueVecEnv.may_wait`).
    """

    def __init__(self, config: AgentConfig, steps: int, matches: int, device: torch.device) -> None:
        self.steps, self.context = steps, config.context
        self.played_N: NDArray[np.int64] | None = None
        rows = self.context + steps
        self.obs_XNO = torch.zeros(rows, matches, config.observation_size, device=device)
        self.starts_XN = torch.zeros(rows, matches, dtype=torch.bool, device=device)

    def carry_context(self) -> None:
        """Makes the newest C rows the context of the next rollout."""
        self._copy_context(self.steps, 0)
        self.played_N = None

    def cut_short(self, steps_played: int) -> None:
        """Ends the rollout after `steps_played` steps. Their last C rows are the context of the
        next rollout.
        """
        self._copy_context(steps_played, self.steps)
        self.played_N = None

    def _copy_context(self, source: int, to: int) -> None:
        for rows in (self.obs_XNO, self.starts_XN):
            rows[to : to + self.context] = self._newest(rows, source)

    def _newest(self, rows: Tensor, played: int) -> Tensor:
        """Copies the newest C rows of each match after `played` steps of the rollout."""
        if self.played_N is None:
            return rows[played : played + self.context].clone()
        first_N = torch.as_tensor(self.played_N, device=rows.device)
        places_CN = first_N + torch.arange(self.context, device=rows.device).unsqueeze(1)
        return rows[places_CN, torch.arange(rows.shape[1], device=rows.device)]

    def state(self) -> dict[str, Tensor]:
        """Returns the rows that the next rollout needs."""
        return {
            "obs": self._newest(self.obs_XNO, self.steps),
            "starts": self._newest(self.starts_XN, self.steps),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restores the rows that `state` returned."""
        self.obs_XNO[self.steps :] = state["obs"].to(self.obs_XNO.device)
        self.starts_XN[self.steps :] = state["starts"].to(self.starts_XN.device)
        self.played_N = None


class SequenceBuffer(History):
    """Stores T steps of N matches in preallocated memory.

    A match that waits in a step stores nothing, and its next step is stored in the free row. So at
    the end of the rollout, the last rows of this match (from `played_N` on) are unused. Unused rows
    have the weight 0.

    Args:
        config: sizes of the network.
        steps: T.
        matches: N.
        device: device of the tensors.
        keeps_actions: whether the opponents' actions are stored too.

    Attributes:
        version_TN: the version of the policy that chose each action, as its number of updates.
    """

    def __init__(
        self,
        config: AgentConfig,
        steps: int,
        matches: int,
        device: torch.device,
        *,
        keeps_actions: bool = False,
    ) -> None:
        super().__init__(config, steps, matches, device)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, device=device)

        self.time_left_TN = zeros(steps, matches)
        self.h_NH = zeros(matches, config.memory)
        self.c_NH = zeros(matches, config.memory)
        self.actions_TNA = zeros(steps, matches, config.action_size)
        choices = (steps, matches, config.action_size) if config.action_kind == CHOICE else None
        self.legal_TNA = torch.ones(choices, dtype=torch.bool, device=device) if choices else None
        self.weight_TN: Tensor | None = None
        self.across_TNA = zeros(steps, matches, config.action_size) if keeps_actions else None
        self.across_legal_TNA: Tensor | None = None
        if keeps_actions and choices:
            self.across_legal_TNA = torch.ones(choices, dtype=torch.bool, device=device)
        self._known_TN = zeros(steps, matches)
        self.log_prob_TN = zeros(steps, matches)
        self.value_TN = zeros(steps, matches)
        self.advantage_TN = zeros(steps, matches)
        self.target_TN = zeros(steps, matches)
        self.reward_TN = np.zeros((steps, matches), np.float32)
        self.ended_TN = np.zeros((steps, matches), np.bool_)
        self.version_TN = np.zeros((steps, matches), np.int64)

    def carry_context(self) -> None:
        self.weight_TN = None
        super().carry_context()

    def place(self, t: int) -> Any:
        """Returns the index at which step `t` of the rollout is stored. As long as no match has
        waited in this rollout, it is the row number `t`. Otherwise the rows differ from match to
        match, and the index has a row number for each match.
        """
        return t if self.played_N is None else (self.played_N, np.arange(len(self.played_N)))

    def place_seen(self, t: int) -> Any:
        """Returns the index of step `t` in `obs_XNO` and `starts_XN`, in the form of `place`."""
        if self.played_N is None:
            return self.context + t
        return self.context + self.played_N, np.arange(len(self.played_N))

    def note_waiting(self, t: int, waiting_N: NDArray[np.bool_]) -> None:
        """Counts step `t` as played in all matches except those of `waiting_N`."""
        if self.played_N is None:
            if not waiting_N.any():
                return
            self.played_N = np.full(len(waiting_N), t)
        self.played_N = self.played_N + ~waiting_N

    @property
    def played_TN(self) -> NDArray[np.bool_] | None:
        """True where row t holds a step of match n. None if all rows hold steps."""
        return None if self.played_N is None else np.arange(self.steps)[:, None] < self.played_N

    def leave_out_older(self, version: int) -> float:
        """Excludes from learning the steps whose actions were chosen by an older policy than
        `version`. Such an action belongs to a decision that began before the last update, so it is
        the first of its match in this rollout, and no other step's advantage depends on it.

        Returns:
            The share of these steps among the steps played.
        """
        old_TN, played_TN = self.version_TN < version, self.played_TN
        if old_TN.any():
            self._weights()[torch.from_numpy(old_TN).to(self.value_TN.device)] = 0.0
        return float((old_TN if played_TN is None else old_TN[played_TN]).mean())

    def oldest_version(self, newest: int) -> int:
        """Returns the oldest version in `version_TN` of a step that counts, or `newest` if no step
        counts.
        """
        if self.weight_TN is None:
            return int(self.version_TN.min())
        counts_TN = self.weight_TN.cpu().numpy() > 0
        return int(self.version_TN[counts_TN].min(initial=newest))

    def keep_actions(self, t: int, played: OpponentActions) -> None:
        """Stores the opponents' actions of step `t`."""
        if self.across_TNA is None:
            return
        place = self.place(t)
        self.across_TNA[place] = torch.from_numpy(played.actions_NA).to(self.across_TNA)
        self._known_TN[place] = torch.from_numpy(played.known_N).to(self._known_TN)
        if self.across_legal_TNA is not None and played.legal_NA is not None:
            self.across_legal_TNA[place] = torch.from_numpy(played.legal_NA).to(
                self.across_legal_TNA
            )

    @property
    def known_TN(self) -> Tensor | None:
        """The values of `Minibatch.known_TB` for all matches."""
        if self.across_TNA is None:
            return None
        return self._known_TN if self.weight_TN is None else self._known_TN * self.weight_TN

    def leave_out(self, t: int, steps_N: NDArray[np.int64], failed_N: NDArray[np.bool_]) -> None:
        """Excludes the steps of failed matches from learning.

        Args:
            t: the step in which they failed.
            steps_N: number of steps that each match has made since its start, step `t` included.
            failed_N: which matches failed.
        """
        weight_TN = self._weights()
        for n in np.flatnonzero(failed_N):
            end = (t if self.played_N is None else int(self.played_N[n])) + 1
            weight_TN[max(0, end - int(steps_N[n])) : end, n] = 0.0

    def leave_out_unplayed(self) -> None:
        """Excludes from learning the unused rows at the end of matches that have waited."""
        if (played_TN := self.played_TN) is not None:
            self._weights()[torch.from_numpy(~played_TN).to(self.value_TN.device)] = 0.0
            self.reward_TN[~played_TN], self.ended_TN[~played_TN] = 0.0, False

    def _weights(self) -> Tensor:
        if self.weight_TN is None:
            self.weight_TN = torch.ones(self.value_TN.shape, device=self.value_TN.device)
        return self.weight_TN

    def decided_TN(self) -> Tensor:
        """The values of `Minibatch.decided_TB` for all matches."""
        decided_TN = torch.ones_like(self.value_TN) if self.weight_TN is None else self.weight_TN
        return decided_TN if self.legal_TNA is None else decided_TN * (self.legal_TNA.sum(-1) > 1)

    def drawn(self, sequences: int, rng: np.random.Generator) -> list[Tensor]:
        """Divides the matches among minibatches at random.

        Args:
            sequences: number of matches per minibatch.
            rng: random numbers.

        Returns:
            The matches of each minibatch.
        """
        order = torch.as_tensor(rng.permutation(self.h_NH.shape[0]), device=self.h_NH.device)
        return list(order.split(sequences))

    def minibatches(self, sequences: int, rng: np.random.Generator) -> Iterator[Minibatch]:
        """Yields the minibatches of `drawn`."""
        return map(self.minibatch, self.drawn(sequences, rng))

    def minibatch(self, rows: Tensor) -> Minibatch:
        """Returns the sequences of the matches `rows`."""
        whole = [field.name for field in fields(Minibatch) if field.name != "rows_B"]
        parts = {name: getattr(self, name.replace("B", "N")) for name in whole}
        return Minibatch(**{name: _rows(name, x, rows) for name, x in parts.items()}, rows_B=rows)
