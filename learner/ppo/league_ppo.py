"""`LeaguePPO`: sb3-contrib's RecurrentPPO with the hot paths made for many matches at once.

Used like its parent (constructor, callbacks, logger, `learn`, `predict`). Two things of sb3-contrib
2.9 are why its own paths are not used: `MultiBinary` actions fail in its `evaluate_actions` (an int8
tensor meets a float one), and its shared LSTM is detached from the critic, whose gradient never
reaches it. Here one unrolled forward gives logits and values of whole sequences, and both losses
train everything below them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule, explained_variance, update_learning_rate
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.heads import action_distribution
from league.errors import ConfigError
from learner.ppo.advantage import ReturnScale, generalised_advantage
from learner.ppo.descent import Descent
from learner.ppo.diagnostics import Diagnostics
from learner.ppo.divergence import Divergence
from learner.ppo.loss import PolicyLoss, clipped_policy_loss, normalised, value_loss, weighted_mean
from learner.ppo.policy import LeaguePolicy
from learner.ppo.ranks import Ranks
from learner.ppo.rate import AdaptiveRate
from learner.ppo.references import Memory, References
from learner.ppo.transform import RewardTransform
from learner.rollout.buffer import Minibatch, SequenceBuffer
from learner.rollout.guard import check_outputs
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import RegularisationSettings


class LossTerms(NamedTuple):
    """Of one minibatch; `kl` is None without references in its matches, or where rewards carry it."""

    policy: PolicyLoss
    value: Tensor
    entropy: Tensor
    kl: Divergence | None

    def named(self) -> dict[str, Tensor]:
        """The terms by the names that a fault is told with."""
        named = {"policy": self.policy.loss, "value": self.value, "entropy": self.entropy}
        return named if self.kl is None else {**named, "KL": self.kl.loss}


class LeaguePPO(RecurrentPPO):
    """PPO on whole sequences of a `LeagueVecEnv`.

    ``LeaguePPO("LeaguePolicy", env, policy_kwargs={"agent": config})``; arguments as `RecurrentPPO`'s, and:
        normalize_returns: divide rewards by the running deviation of the discounted return.
        ent_schedule: entropy weight by the share of steps still to come; none: `ent_coef`.
        desired_kl: KL divergence per update that the step size is steered to; none: only the schedule.
        regularisation: holds the policy near frozen copies of itself (`references`); none: not at all.
        parts: a minibatch's gradient is added up over so many parts, for less memory and the same step.
        precision: of the products in an update: auto, float32, bfloat16, float16 (`learner.ppo.descent`).
        should_stop: asked between steps and minibatches; True ends `learn` early.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"LeaguePolicy": LeaguePolicy}
    policy: LeaguePolicy
    env: LeagueVecEnv

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
        should_stop: Callable[[], bool] = lambda: False,
        **kwargs: Any,
    ) -> None:
        self.normalize_returns, self.should_stop = normalize_returns, should_stop
        self.ent_schedule = ent_schedule
        self.rate = AdaptiveRate(desired_kl)
        self.regularisation = regularisation
        self.parts, self.precision = parts, precision
        super().__init__(policy, env, *args, **kwargs)

    @property
    def agent(self) -> AgentConfig:
        """Sizes of the network."""
        return self.policy_kwargs["agent"]

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space, self.action_space, self.lr_schedule, **self.policy_kwargs
        ).to(self.device)
        self.clip_range = FloatSchedule(self.clip_range)
        if self.batch_size is None or self.batch_size % self.n_steps:
            raise ConfigError(f"batch_size {self.batch_size} is no multiple of n_steps {self.n_steps}")
        self.sequences = self.batch_size // self.n_steps
        seed = 0 if self.seed is None else self.seed
        self.rollout_buffer = None  # type: ignore[assignment]  # of the parent; `buffer` stands for it
        self.buffer = SequenceBuffer(self.agent, self.n_steps, self.n_envs, self.device)
        self.ranks = Ranks()
        self.descent = Descent(
            self.policy.network,
            self.policy.optimizer,
            self.max_grad_norm,
            self.precision,
            self.device,
            self.ranks,
        )
        self.return_scale = ReturnScale(self.n_envs, self.gamma, self.ranks)
        self.diagnostics = Diagnostics()
        self.shuffle_rng = np.random.default_rng(seed)
        self.key_rng = torch.Generator(device=self.device)
        self.key_rng.manual_seed(seed)
        self.agent_state = self.policy.network.initial_state(self.n_envs)
        self.last_obs_NO: np.ndarray | None = None
        self.last_starts_N = np.ones(self.n_envs, np.bool_)
        self.inference_seconds = self.learning_seconds = 0.0
        self.references: References | None = None
        self.transform: RewardTransform | None = None
        settings = self.regularisation
        if settings is not None and settings.alpha > 0:
            self.references = References(settings, self.agent, self.n_envs, self.device)
            if settings.form == "reward":
                self.transform = RewardTransform(
                    settings.alpha, self.agent, self.n_steps, self.n_envs, self.device
                )

    # -- rollouts -------------------------------------------------------------------------------

    def collect_rollouts(  # type: ignore[override]
        self, env: LeagueVecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int
    ) -> bool:
        """Plays `n_steps` in every match; False when asked to stop before the end."""
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        if self.last_obs_NO is None:
            self.last_obs_NO = env.reset()
        buffer = self.buffer
        buffer.carry_context()
        buffer.h_NH.copy_(self.agent_state.h_BH)
        buffer.c_NH.copy_(self.agent_state.c_BH)
        if self.references is not None:
            self.references.begin(self.policy.network, *self._memories(env), self.num_timesteps)
        if self.transform is not None:
            self.transform.carry_context()
        for t in range(n_rollout_steps):
            self._play_step(env, t)
            self.num_timesteps += env.num_envs
            callback.update_locals(locals())
            if not callback.on_step() or self._stops():
                self._cut_short(t + 1)
                return False
        if self.references is not None:
            self.references.play_along(buffer, n_rollout_steps)
        self._estimate_advantages(env)
        callback.on_rollout_end()
        return True

    def _stops(self) -> bool:
        """Whether some rank was asked to stop: all do, for none can go on alone."""
        return self.ranks.any(self.should_stop())

    @torch.inference_mode()
    def _play_step(self, env: LeagueVecEnv, t: int) -> None:
        started = time.perf_counter()
        buffer, row = self.buffer, self.buffer.context + t
        assert self.last_obs_NO is not None
        obs_NO = torch.as_tensor(self.last_obs_NO, device=self.device)
        starts_N = torch.as_tensor(self.last_starts_N, device=self.device)
        time_left_N = torch.as_tensor(env.time_left(), device=self.device)
        out = self.policy.network.step(obs_NO, starts_N, self.agent_state, time_left_N)
        check_outputs(out.logits_BA, out.value_B, self.num_timesteps)
        legal_NA = self._legal(env)
        actor = action_distribution(self.agent.action_kind, out.logits_BA, legal_NA)
        actions_NA = actor.sample(self.key_rng)
        if buffer.legal_TNA is not None and legal_NA is not None:
            buffer.legal_TNA[t] = legal_NA
        buffer.obs_XNO[row], buffer.starts_XN[row], buffer.time_left_TN[t] = obs_NO, starts_N, time_left_N
        buffer.actions_TNA[t] = actions_NA
        buffer.log_prob_TN[t] = actor.log_prob(actions_NA)
        buffer.value_TN[t] = out.value_B
        self.agent_state = out.state
        if self.transform is not None:
            self.transform.before_step(t, env.across(), starts_N, out.logits_BA)
        self.inference_seconds += time.perf_counter() - started
        steps_N = env.steps_N + 1
        self.last_obs_NO, buffer.reward_TN[t], ended_N = env.step_arrays(
            actions_NA.to(torch.uint8).cpu().numpy()
        )
        buffer.ended_TN[t] = ended_N
        if self.transform is not None:
            self.transform.after_step(t, env)
        if env.failed_N.any():
            buffer.leave_out(t, steps_N, env.failed_N)
        self.last_starts_N = ended_N

    def _cut_short(self, steps: int) -> None:
        """Ends the rollout after `steps` steps, so that the next one goes on behind them."""
        if self.references is not None:
            self.references.play_along(self.buffer, steps)
        if self.transform is not None and self.references is not None:
            self.transform.play_along(self.references, steps)
            self.transform.cut_short(self.n_steps, steps)
        self.buffer.cut_short(steps)

    def _memories(self, env: LeagueVecEnv) -> tuple[Memory, Memory | None]:
        """What the learner remembers now in its own seats, and in those across that it plays."""
        across = None if self.transform is None else env.crowd.live_memory()
        return (self.agent_state.h_BH, self.agent_state.c_BH), across

    def _legal(self, env: LeagueVecEnv) -> Tensor | None:
        legal_NA = env.legal()
        return None if legal_NA is None else torch.as_tensor(legal_NA, device=self.device)

    @torch.inference_mode()
    def _estimate_advantages(self, env: LeagueVecEnv) -> None:
        """Values the cut-off, scales rewards, and fills advantages and targets."""
        buffer = self.buffer
        out = self.policy.network.step(
            torch.as_tensor(self.last_obs_NO, device=self.device),
            torch.as_tensor(self.last_starts_N, device=self.device),
            self.agent_state,
            torch.as_tensor(env.time_left(), device=self.device),
        )
        self.diagnostics.rollout_ends(
            out.latent_BD, out.state.age_B, self.agent.sequence_length, env.opponent_kinds()
        )
        if self.normalize_returns:
            self.return_scale.update(buffer.reward_TN, buffer.ended_TN)
        reward_TN = buffer.reward_TN / np.float32(self.return_scale.scale)
        if self.transform is not None and self.references is not None:
            reward_TN = reward_TN + self.transform.addition(self.references, buffer)
        advantage_TN, target_TN = generalised_advantage(
            reward_TN,
            buffer.value_TN.cpu().numpy(),
            buffer.ended_TN,
            out.value_B.cpu().numpy(),
            self.gamma,
            self.gae_lambda,
        )
        buffer.advantage_TN.copy_(torch.as_tensor(advantage_TN))
        buffer.target_TN.copy_(torch.as_tensor(target_TN))

    # -- updates --------------------------------------------------------------------------------

    def train(self) -> None:
        """`n_epochs` passes of whole-sequence minibatches over the rollout."""
        started = time.perf_counter()
        self.policy.set_training_mode(True)
        rate = self.lr_schedule(self._current_progress_remaining) * self.rate.scale
        update_learning_rate(self.policy.optimizer, rate)
        self.logger.record("learning/rate", rate)
        totals: dict[str, list[float]] = {}
        stopped = False
        for _ in range(self.n_epochs):
            for batch in self.buffer.minibatches(self.sequences, self.shuffle_rng):
                measured = self._update(batch)
                for name, value in measured.items():
                    totals.setdefault(name, []).append(value)
                kl_reached = (
                    self.target_kl is not None and measured["policy/approx_kl"] > 1.5 * self.target_kl
                )
                if kl_reached or self._stops():
                    stopped = True
                    break
            if stopped:
                break
        self._n_updates += len(totals.get("loss/total", ()))
        if not self._stops():  # the KL of a few minibatches says little
            self.rate.adapt(float(np.mean(totals["policy/approx_kl"])))
        self._record(totals)
        self._renew_references()
        self.learning_seconds += time.perf_counter() - started

    def _renew_references(self) -> None:
        """Freezes a new reference when enough updates have been made, and logs how far the rollout was."""
        references, buffer = self.references, self.buffer
        if references is None:
            return
        if self.transform is not None:
            distance = references.measured(self.transform.divergence(references, buffer))
            for name, value in distance.items():
                self.logger.record(name, value)
        if references.due(self._n_updates):
            references.renew(
                self.policy.network,
                *self._memories(self.env),
                self.num_timesteps,
                self._n_updates,
                buffer,
            )

    def _update(self, batch: Minibatch) -> dict[str, float]:
        """One step of the optimizer with a minibatch; returns its means for the log."""
        batch = self._with_advantages(batch)
        decided, counted = self._weights(batch)
        measured: dict[str, float] = {}
        self.descent.begin()
        for part in batch.split(self.parts):
            terms = self.loss_terms(part)
            here = self._weights(part, alone=True)
            shares = here[0] / decided, here[1] / counted
            total = self.weighted(terms, *shares)
            self.descent.add(total, terms.named())
            for name, value, share in self._readings(terms, total, *shares):
                measured[name] = measured.get(name, 0.0) + value * share
        self.descent.gather()
        self.diagnostics.gradient(self.policy.network)
        measured = self._of_all_ranks(measured)
        return {**measured, "learning/gradient_norm": self.descent.finish(self.num_timesteps)}

    def _with_advantages(self, batch: Minibatch) -> Minibatch:
        """The minibatch with advantages as the loss wants them: normalised over all its parts and ranks."""
        if not self.normalize_advantage:
            return batch
        return replace(
            batch, advantage_TB=normalised(batch.advantage_TB, batch.decided_TB(), self.ranks.add_up)
        )

    def _weights(self, batch: Minibatch, *, alone: bool = False) -> tuple[float, float]:
        """Steps with something to choose, and steps to learn from; of all ranks, or of this one `alone`."""
        size = float(batch.value_TB.numel())
        numbers = [size if w is None else float(w.sum()) for w in (batch.decided_TB(), batch.weight_TB)]
        sums = torch.tensor(numbers, dtype=torch.float64)
        decided, counted = (sums if alone else self.ranks.add_up(sums)).clamp_min(1e-8).tolist()
        return decided, counted

    def _readings(
        self, terms: LossTerms, total: Tensor, decided: float, counted: float
    ) -> list[tuple[str, float, float]]:
        """Means of a part with its share of the minibatch's."""
        readings = [
            ("loss/policy", float(terms.policy.loss.detach()), decided),
            ("loss/value", float(terms.value.detach()), counted),
            ("loss/total", float(total.detach()), 1.0),
            ("policy/entropy", float(terms.entropy.detach()), decided),
            ("policy/approx_kl", float(terms.policy.approx_kl), decided),
            ("policy/clip_fraction", float(terms.policy.clip_fraction), decided),
        ]
        if terms.kl is not None and self.references is not None:
            readings += [(name, value, decided) for name, value in self.references.measured(terms.kl).items()]
        return readings

    def _of_all_ranks(self, measured: dict[str, float]) -> dict[str, float]:
        if self.ranks.count == 1:
            return measured
        sums = self.ranks.add_up(torch.tensor([*measured.values()], dtype=torch.float64))
        return dict(zip(measured, sums.tolist(), strict=True))

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
        logits_TBA, value_TB = out.logits_TBA.float(), out.value_TB.float()
        actor = action_distribution(self.agent.action_kind, logits_TBA, batch.legal_TBA)
        decided_TB = batch.decided_TB()
        policy = clipped_policy_loss(
            actor.log_prob(batch.actions_TBA),
            batch.log_prob_TB,
            batch.advantage_TB,
            self.clip_range(self._current_progress_remaining),  # type: ignore[operator]
            decided_TB,
        )
        value = value_loss(value_TB, batch.target_TB, batch.weight_TB)
        entropy = weighted_mean(actor.entropy(), decided_TB)
        in_loss = self.references is not None and self.transform is None
        kl = self.references.divergence(logits_TBA, batch) if in_loss and self.references else None
        return LossTerms(policy, value, entropy, kl)

    def weighted(self, terms: LossTerms, decided: float = 1.0, counted: float = 1.0) -> Tensor:
        """The loss: the sum of its terms by their weights, each a share of the whole minibatch's mean."""
        actor = terms.policy.loss - self.entropy_weight * terms.entropy
        if terms.kl is not None and self.regularisation is not None:
            actor = actor + self.regularisation.alpha * terms.kl.loss
        return decided * actor + counted * self.vf_coef * terms.value

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
        self.diagnostics.update_ends(self.policy.network, self.buffer, self._n_updates)
        for name, value in self.diagnostics.take().items():
            self.logger.record(name, value)
        explained = explained_variance(
            self.buffer.value_TN.cpu().numpy().ravel(), self.buffer.target_TN.cpu().numpy().ravel()
        )
        self.logger.record("value/explained_variance", float(explained))
        self.logger.record("reward/scale", self.return_scale.scale)
        self.logger.record("policy/entropy_weight", self.entropy_weight)
        self.logger.record("learning/updates", self._n_updates, exclude="tensorboard")

    # -- what the parent would keep in its own buffers -------------------------------------------

    def _excluded_save_params(self) -> list[str]:
        own = ["buffer", "agent_state", "diagnostics", "references", "transform", "last_obs_NO", "descent"]
        return [*super()._excluded_save_params(), *own, "key_rng", "should_stop", "ent_schedule"]
