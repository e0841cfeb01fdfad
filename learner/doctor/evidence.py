"""Everything that is measured of a set-up, gathered once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from learner.doctor.environment_evidence import EnvironmentEvidence, look_at_environment
from learner.doctor.game_evidence import GameEvidence, look_at_game
from learner.doctor.play import Trace
from learner.doctor.probe import ProbeEvidence, probe
from learner.doctor.setup import SetUp


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A set-up and what was measured of it."""

    set_up: SetUp
    game: GameEvidence
    environment: EnvironmentEvidence
    probe: ProbeEvidence

    @property
    def reach(self) -> float:
        """Decisions over which the discount still counts: 1 / (1 - gamma)."""
        gamma = self.set_up.settings.learner.gamma
        return float("inf") if gamma >= 1.0 else 1.0 / (1.0 - gamma)

    @property
    def match_length(self) -> float:
        """Mean decisions of a match played at random."""
        return float(self.game.fresh.first_TN.sum(0).mean())

    def term_shares(self) -> dict[str, float]:
        """Share of each weighted reward term in what matches pay: mean size of its sum over a
        match.

        Both seats of bots' matches and the player's of random ones count alike.
        """
        weights_K, spec = self.set_up.weights_K, self.set_up.spec
        sums = [_match_sums(self.game.fresh)[:, :1], _match_sums(self.game.bots)]
        sizes_K = np.mean([np.abs(part * weights_K).mean((0, 1)) for part in sums], axis=0)
        total = float(sizes_K.sum())
        return {
            name: float(size) / total if total > 0 else 0.0
            for name, size, weight in zip(spec.reward_terms, sizes_K, weights_K, strict=True)
            if weight != 0.0
        }

    def return_std(self) -> float:
        """Standard deviation of the discounted return of random play, in the rewards' own units."""
        trace, gamma = self.game.fresh, self.set_up.settings.learner.gamma
        current_N, seen = np.zeros(trace.ended_TN.shape[1]), []
        rewards_TN = trace.rewards_TN2(self.set_up.weights_K)[..., 0]
        for reward_N, first_N in zip(rewards_TN, trace.first_TN, strict=True):
            current_N = gamma * current_N + reward_N
            seen.append(current_N[first_N])
        return float(np.concatenate(seen).std())

    def alignment(self) -> tuple[float, int]:
        """Share of decided matches whose winner was paid more than the loser, and their number.

        Where both were paid alike the match counts half: that says nothing of either.
        """
        right, decided = 0.0, 0
        for trace in (self.game.fresh, self.game.bots):
            paid_N2 = (_match_sums(trace) * self.set_up.weights_K).sum(-1)
            score_N = first_scores(trace)
            rows = np.isfinite(score_N) & (score_N != 0.5)
            ahead = np.sign(paid_N2[rows, 0] - paid_N2[rows, 1]) * np.sign(score_N[rows] - 0.5)
            right += float((0.5 + 0.5 * ahead).sum())
            decided += int(rows.sum())
        return (right / decided if decided else 1.0), decided


def _match_sums(trace: Trace) -> np.ndarray:
    """Sums of the raw terms over each row's first match, [N, 2, K]."""
    return (trace.terms_TN2K * trace.first_TN[..., None, None]).sum(0)


def first_scores(trace: Trace) -> np.ndarray:
    """Seat 0's score in each row's first match, NaN where it did not end, [N]."""
    ended_TN = trace.ended_TN & trace.first_TN
    scores = np.where(ended_TN, trace.scores_TN, 0.0).sum(0)
    return np.where(ended_TN.any(0), scores, np.nan)


def gather(
    set_up: SetUp, on_step: Callable[[str], None] = lambda _: None, seed: int = 0
) -> Evidence:
    """Plays, trains a little and looks; `on_step` hears what is done next."""
    on_step(f"playing {set_up.spec.name}: what changes, what acts, what repeats, what pays")
    game = look_at_game(set_up, seed)
    on_step("following rewards and ends of matches to the learner")
    environment = look_at_environment(set_up, seed)
    on_step("training for a few updates")
    return Evidence(set_up=set_up, game=game, environment=environment, probe=probe(set_up))
