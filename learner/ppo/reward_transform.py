"""Regularises through the rewards: moving away from the references (frozen copies of the learner)
costs reward.

For the learner's seat i and the opponent's seat j:

    r'_t = r_t - α log π_i(a_i)/π_ref(a_i) + α log π_j(a_j)/π_ref(a_j)

(Perolat et al. 2022, DeepNash, arXiv 2206.15378, after Perolat et al. 2021, arXiv 2002.08456). The
last term keeps the game zero-sum. It applies only where the learner itself plays the opponent's
seat. Unlike a KL term in the loss, the transformed reward also affects earlier states, because it
changes their values.

Shape suffixes: X rows (history and steps), T steps, N matches, R self-play matches, M
references, O observation, A actions, H memory.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor

from league.games.base import CHOICE
from league.players import PlayerKind
from learner.ppo.divergence import Divergence, closest_divergence, kl_to_fixed, log_prob_ratio
from learner.ppo.references import References, unrolled
from learner.rollout.buffer import History, SequenceBuffer
from learner.rollout.league_vec_env import LeagueVecEnv


class RewardTransform(History):
    """Records a rollout from the opponents' side, and transforms the rewards at the rollout's end.

    Args:
        references: frozen copies of the learner. A distance from them costs reward.
        steps: T.
    """

    def __init__(self, references: References, steps: int) -> None:
        config, matches, device = references.config, references.matches, references.device
        super().__init__(config, steps, matches, device)
        self.references, self.config, self.device = references, config, device
        actions = (steps, matches, config.action_size)
        self.own_logits_TNA = torch.zeros(actions, device=device)
        self.logits_TNA = torch.zeros(actions, device=device)
        self.actions_TNA = torch.zeros(actions, device=device)
        choices = config.action_kind == CHOICE
        self.legal_TNA = torch.ones(actions, dtype=torch.bool, device=device) if choices else None
        self.live_TN = torch.zeros(actions[:2], dtype=torch.bool, device=device)
        self.added_TN = np.zeros(actions[:2], np.float32)  # to the rewards of the newest rollout

    def before_step(
        self, t: int, env: LeagueVecEnv, starts_N: Tensor, own_logits_NA: Tensor
    ) -> None:
        """Stores the observations of the opponents' seats and the learner's logits. Notes in which
        matches the learner plays both seats.

        Args:
            t: number of the step.
            env: the matches before the step.
            starts_N: where a match begins.
            own_logits_NA: the learner's logits in its own seats.
        """
        rows, other_N, legal_N2A = np.arange(env.num_envs), 1 - env.seat_N, env.game.legal_N2A
        live = [m is not None and m.opponent.kind is PlayerKind.LIVE for m in env.assignments]
        row = self.context + t
        self.own_logits_TNA[t], self.starts_XN[row] = own_logits_NA, starts_N
        self.obs_XNO[row] = torch.as_tensor(
            env.game.observations_N2O[rows, other_N], device=self.device
        )
        self.live_TN[t] = torch.as_tensor(live, device=self.device)
        if self.legal_TNA is not None and legal_N2A is not None:
            self.legal_TNA[t] = torch.as_tensor(legal_N2A[rows, other_N], device=self.device)

    def after_step(self, t: int, env: LeagueVecEnv) -> None:
        """Stores the actions of the opponents' seats, and their logits."""
        assert env.opponent_policy.logits_SA is not None
        self.logits_TNA[t] = env.opponent_policy.logits_SA
        self.actions_TNA[t] = torch.as_tensor(env.opponent_actions_NA, device=self.device)

    def play(self, steps: int) -> Tensor | None:
        """Unrolls the references (frozen copies of the learner) over the opponents' seats of
        self-play matches. In these matches the learner also plays the opponents' seats.

        Returns:
            The references' logits `[M, T, R, A]`, or None without self-play.
        """
        live_N = self.live_TN[:steps].any(0)
        if not live_N.any():
            # The references' memories don't take in these steps. That does no harm, because the
            # next self-play match clears the memories at its start.
            return None
        started, references = time.perf_counter(), self.references
        rows, logits = self.context + steps, []
        obs_XRO, starts_XR = self.obs_XNO[:rows, live_N], self.starts_XN[:rows, live_N]
        for reference in references.members:
            assert reference.other is not None
            h_NH, c_NH = reference.other
            memory = (h_NH[live_N], c_NH[live_N])
            with references.autocast():
                logits_TRA, memory = unrolled(
                    reference.network, obs_XRO, starts_XR, memory, self.context
                )
            h_NH[live_N], c_NH[live_N] = memory
            logits.append(logits_TRA)
        references.seconds += time.perf_counter() - started
        return torch.stack(logits)

    @torch.no_grad()
    def addition(self, buffer: SequenceBuffer) -> np.ndarray:
        """Returns the transform's addition to the rewards of a whole rollout, float32 `[T, N]`."""
        kind, logits_MTNA = self.config.action_kind, self.references.logits_MTCA
        added_TN = -log_prob_ratio(
            kind, self.own_logits_TNA, logits_MTNA, buffer.actions_TNA, buffer.legal_TNA
        )
        theirs_MTRA = self.play(self.steps)
        if theirs_MTRA is not None:
            live_N = self.live_TN.any(0)
            ratio_TR = log_prob_ratio(
                kind,
                self.logits_TNA[:, live_N],
                theirs_MTRA,
                self.actions_TNA[:, live_N],
                None if self.legal_TNA is None else self.legal_TNA[:, live_N],
            )
            added_TN[:, live_N] += torch.where(self.live_TN[:, live_N], ratio_TR, 0.0)
        self.added_TN = (self.references.settings.alpha * added_TN).cpu().numpy()
        return self.added_TN

    @torch.no_grad()
    def divergence(self, buffer: SequenceBuffer) -> Divergence:
        """Computes the learner's KL divergence from its references (frozen copies) in the rollout,
        for the log.
        """
        decided_TN, logits_MTNA = buffer.decided_TN(), self.references.logits_MTCA
        kl_MTN = kl_to_fixed(
            self.config.action_kind, self.own_logits_TNA, logits_MTNA, buffer.legal_TNA
        )
        return closest_divergence(kl_MTN, decided_TN, float(decided_TN.sum()))
