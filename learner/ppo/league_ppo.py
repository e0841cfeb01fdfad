"""`LeaguePPO`: sb3-contrib's RecurrentPPO with the hot paths made for many matches at once.

Used like its parent (constructor, callbacks, logger, `learn`, `predict`). Two things of sb3-contrib
2.9 are why its own paths are not used: `MultiBinary` actions fail in its `evaluate_actions` (an
int8 tensor meets a float one), and its shared LSTM is detached from the critic, whose gradient
never reaches it. Here one unrolled forward gives logits and values of whole sequences, and both
losses train everything below them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.utils import update_learning_rate
from torch import Tensor

from league.agent.heads import action_distribution
from league.errors import ConfigError
from learner.ppo.advantage import explained_variance
from learner.ppo.divergence import Divergence
from learner.ppo.forecast import forecast_loss, marginal_loss
from learner.ppo.loss import (
    advantage_sums,
    clipped_policy_loss,
    normalised,
    value_loss,
    weighted_mean,
)
from learner.ppo.playing import PlayingPPO
from learner.ppo.policy import LeaguePolicy, StateArrays
from learner.ppo.rate import AdaptiveRate
from learner.ppo.references import References
from learner.ppo.terms import LossTerms, Readings
from learner.rollout.buffer import Minibatch
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import RegularisationSettings

_READINGS = (
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/approx_kl",
    "policy/clip_fraction",
)


class LeaguePPO(PlayingPPO):
    """PPO on whole sequences of a `LeagueVecEnv`.

    ``LeaguePPO("LeaguePolicy", env, policy_kwargs={"agent": config})``; arguments as
    `RecurrentPPO`'s, and:
        normalize_returns: divide rewards by the running deviation of the discounted return.
        ent_schedule: entropy weight by the share of steps still to come; none: `ent_coef`.
        desired_kl: KL divergence per update that the step size is steered to; none: only the
        schedule. regularisation: holds the policy near frozen copies of itself (`references`);
        none: not at all. parts: a minibatch's gradient is added up over so many parts, for less
        memory and the same step. precision: of the products in an update: auto, float32, bfloat16,
        float16 (`learner.ppo.descent`). forecast_coef: weight of foretelling the opponent's next
        action (`learner.ppo.forecast`); 0: no head. compiled: decide by a compiled step of the
        network (`learner.ppo.compiling`). should_stop: asked between steps and minibatches; True
        ends `learn` early.
    """

    def __init__(
        self,
        policy: str | type[LeaguePolicy],
        env: LeagueVecEnv,
        *args: Any,
        normalize_returns: bool = True,
        ent_schedule: Callable[[float], float] | None = None,
        desired_kl: float | None = None,
        regularisation: RegularisationSettings | None = None,
        parts: int = 1,
        precision: str = "auto",
        compiled: bool = False,
        forecast_coef: float = 0.0,
        should_stop: Callable[[], bool] = lambda: False,
        **kwargs: Any,
    ) -> None:
        self.ent_schedule = ent_schedule
        self.rate = AdaptiveRate(desired_kl)
        self.parts = parts
        super().__init__(
            policy,
            env,
            *args,
            normalize_returns=normalize_returns,
            regularisation=regularisation,
            precision=precision,
            compiled=compiled,
            forecast_coef=forecast_coef,
            should_stop=should_stop,
            **kwargs,
        )

    def _setup_model(self) -> None:
        super()._setup_model()
        if self.batch_size is None or self.batch_size % self.n_steps:
            raise ConfigError(
                f"batch_size {self.batch_size} is no multiple of n_steps {self.n_steps}"
            )
        self.sequences = self.batch_size // self.n_steps

    # -- updates --------------------------------------------------------------------------------

    def train(self) -> None:
        """`n_epochs` passes of whole-sequence minibatches over the rollout."""
        started = time.perf_counter()
        self.policy.set_training_mode(True)
        rate = self.lr_schedule(self._current_progress_remaining) * self.rate.scale
        update_learning_rate(self.policy.optimizer, rate)
        self.logger.record("learning/rate", rate)
        totals: dict[str, list[float]] = {}
        asked = False
        for rows, sums in self._drawn():
            measured, asked = self._update(rows, sums)
            for name, value in measured.items():
                totals.setdefault(name, []).append(value)
            if asked or (
                self.target_kl is not None and measured["policy/approx_kl"] > 1.5 * self.target_kl
            ):
                break
        self._n_updates += len(totals["loss/total"])
        if not asked:  # the KL of a few minibatches says little
            self.rate.adapt(float(np.mean(totals["policy/approx_kl"])))
        self._record(totals)
        self._renew_references()
        self.learning_seconds += time.perf_counter() - started

    def _renew_references(self) -> None:
        """Freezes a new reference when enough updates have been made, and logs how far the
        rollout was.
        """
        references, buffer = self.references, self.buffer
        if references is None:
            return
        if self.transform is not None:
            self._record_distance(references, self.transform.divergence(references, buffer))
        if references.due(self._n_updates):
            references.renew(
                self.policy.network,
                *self._memories(self.env),
                self.num_timesteps,
                self._n_updates,
                buffer,
            )

    def _record_distance(self, references: References, distance: Divergence) -> None:
        """Logs how far the rollout of the reward form was from the references, over all ranks."""
        readings = Readings(self.ranks, references.reading_names())
        for name, value in references.measured(distance).items():
            readings.add(name, value, float(distance.here))
        for name, value in readings.means().items():
            self.logger.record(name, value)

    def _drawn(self) -> Iterator[tuple[Tensor, Tensor]]:
        """All epochs' minibatches: rows, and over all ranks what the loss needs of the whole
        (`_sums`).
        """
        epochs = [self.buffer.drawn(self.sequences, self.shuffle_rng) for _ in range(self.n_epochs)]
        drawn = [rows for epoch in epochs for rows in epoch]
        # In one message: each makes every rank wait for the slowest.
        return zip(drawn, self.ranks.add_up(torch.stack(list(map(self._sums, drawn)))), strict=True)

    def _sums(self, rows: Tensor) -> Tensor:
        """Of the minibatch of some rows: its `advantage_sums` and `_counts`, float64 `[6]`."""
        batch = self.buffer.minibatch(rows)
        return torch.cat(
            [advantage_sums(batch.advantage_TB, batch.decided_TB()), self._counts(batch)]
        )

    def _update(self, rows: Tensor, sums: Tensor) -> tuple[dict[str, float], bool]:
        """One step of the optimizer with some rows; returns its means for the log, and whether
        to stop.
        """
        batch = self._prepared(rows, sums)
        readings = Readings(self.ranks, self._reading_names())
        self.descent.begin()
        for part in batch.split(self.parts):
            terms = self.loss_terms(part)
            shares = (self._counts(part) / sums[3:]).tolist()
            self.descent.add(self.weighted(terms, *shares), terms.named())
            self._read(readings, terms, *shares)
        means, asked = self.descent.gather(readings, self.should_stop())
        self.diagnostics.gradient(self.policy.network, self.policy.forecast)
        return means | {"learning/gradient_norm": self.descent.finish(self.num_timesteps)}, asked

    def _prepared(self, rows: Tensor, sums: Tensor) -> Minibatch:
        """The minibatch with advantages as the loss wants them; `sums` are of all ranks'
        (`_sums`).
        """
        batch = self.buffer.minibatch(rows)
        if not self.normalize_advantage:
            return batch
        return replace(batch, advantage_TB=normalised(batch.advantage_TB, sums[:3]))

    def _counts(self, batch: Minibatch) -> Tensor:
        """Steps with something to choose, to learn from, with a known opponent: float64 `[3]`,
        never 0.
        """
        size = float(batch.value_TB.numel())
        weights = batch.decided_TB(), batch.weight_TB, batch.known_TB
        numbers = [size if weight is None else float(weight.sum()) for weight in weights]
        return torch.tensor(numbers, dtype=torch.float64).clamp_min(1e-8)

    def _reading_names(self) -> tuple[str, ...]:
        in_loss = self.references is not None and self.transform is None
        names = _READINGS + (self.references.reading_names() if in_loss and self.references else ())
        return names if self.policy.forecast is None else (*names, "loss/forecast")

    def _read(
        self, readings: Readings, terms: LossTerms, decided: float, counted: float, known: float
    ) -> None:
        """Notes a part's means with its share of the minibatch's."""
        readings.add("loss/policy", terms.policy.loss, decided)
        readings.add("loss/value", terms.value, counted)
        readings.add("policy/entropy", terms.entropy, decided)
        readings.add("policy/approx_kl", terms.policy.approx_kl, decided)
        readings.add("policy/clip_fraction", terms.policy.clip_fraction, decided)
        if terms.forecast is not None:
            readings.add("loss/forecast", terms.forecast, known)
        if terms.kl is not None and self.references is not None:
            here = float(terms.kl.here)
            for name, value in self.references.measured(terms.kl).items():
                readings.add(name, value, decided if name == "reference/kl" else here)

    def loss_terms(self, batch: Minibatch) -> LossTerms:
        """The terms of a minibatch's loss, each with its own gradient and not yet weighted."""
        with self.descent.autocast():
            out = self.policy.network.unroll(
                batch.obs_XBO,
                batch.starts_XB,
                batch.h_BH,
                batch.c_BH,
                batch.time_left_TB,
                prefix=self.buffer.context,
            )
            forecast = self._forecast_loss(out.latent_TBD, batch)
        logits_TBA, value_TB = out.logits_TBA.float(), out.value_TB.float()
        actor = action_distribution(self.agent.action_kind, logits_TBA, batch.legal_TBA)
        decided_TB = batch.decided_TB()
        policy = clipped_policy_loss(
            actor.log_prob(batch.actions_TBA),
            batch.log_prob_TB,
            batch.advantage_TB,
            self.clip_now,
            decided_TB,
        )
        value = value_loss(value_TB, batch.target_TB, batch.weight_TB)
        entropy = weighted_mean(actor.entropy(), decided_TB)
        in_loss = self.references is not None and self.transform is None
        kl = self.references.divergence(logits_TBA, batch) if in_loss and self.references else None
        return LossTerms(policy, value, entropy, kl, forecast)

    def _forecast_loss(self, latent_TBD: Tensor, batch: Minibatch) -> Tensor | None:
        if self.policy.forecast is None:
            return None
        return forecast_loss(
            self.agent.action_kind, self.policy.forecast(latent_TBD).float(), batch
        )

    def weighted(
        self, terms: LossTerms, decided: float = 1.0, counted: float = 1.0, known: float = 1.0
    ) -> Tensor:
        """The loss: the sum of its terms by their weights, each a share of the whole minibatch's
        mean.
        """
        actor = terms.policy.loss - self.entropy_weight * terms.entropy
        if terms.kl is not None and self.regularisation is not None:
            actor = actor + self.regularisation.alpha * terms.kl.loss
        loss = decided * actor + counted * self.vf_coef * terms.value
        return (
            loss if terms.forecast is None else loss + known * self.forecast_coef * terms.forecast
        )

    @property
    def clip_now(self) -> float:
        """Clip of the probability ratio now."""
        return self.clip_range(self._current_progress_remaining)  # type: ignore[operator]

    @property
    def entropy_weight(self) -> float:
        """Weight of the entropy bonus now."""
        if self.ent_schedule is None:
            return self.ent_coef
        return self.ent_schedule(self._current_progress_remaining)

    def _record(self, totals: dict[str, list[float]]) -> None:
        for name, values in totals.items():
            self.logger.record(name, float(np.mean(values)))
        self.logger.record("policy/first_kl", totals["policy/approx_kl"][0])
        # as of matches that it had not learnt from, and of who is blind
        if self.policy.forecast is not None:
            self.logger.record("forecast/first_loss", totals["loss/forecast"][0])
            blind = marginal_loss(self.agent.action_kind, self.buffer, self.ranks.add_up)
            self.logger.record("forecast/marginal_loss", blind)
        self.diagnostics.update_ends(self.policy.network, self.buffer, self._n_updates)
        for name, value in self.diagnostics.take().items():
            self.logger.record(name, value)
        explained = explained_variance(
            self.buffer.value_TN, self.buffer.target_TN, self.ranks.add_up
        )
        self.logger.record("value/explained_variance", explained)
        self.logger.record("reward/scale", self.return_scale.scale)
        self.logger.record("reward/largest", float(np.abs(self.buffer.reward_TN).max()))
        self.logger.record("policy/entropy_weight", self.entropy_weight)
        self.logger.record("policy/clip_range", self.clip_now)
        self.logger.record("learning/updates", self._n_updates, exclude="tensorboard")

    def predict(
        self,
        observation: Any,
        state: StateArrays | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, StateArrays | None]:
        """As `LeaguePolicy.predict`: masks too, for `evaluate_policy` of
        `sb3_contrib.common.maskable`.
        """
        return self.policy.predict(observation, state, episode_start, deterministic, action_masks)

    # -- what the parent would keep in its own buffers -------------------------------------------

    def _excluded_save_params(self) -> list[str]:
        own = [
            "buffer",
            "agent_state",
            "diagnostics",
            "references",
            "transform",
            "last_obs_NO",
            "descent",
        ]
        return [
            *super()._excluded_save_params(),
            *own,
            "key_rng",
            "should_stop",
            "ent_schedule",
            "decide",
            "feed",
        ]
