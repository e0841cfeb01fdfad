"""`LeaguePPO`: sb3-contrib's RecurrentPPO with its hot paths replaced for many matches at once.

The class is used like its parent class (callbacks, logger, `learn`, `predict`, `save`). Two faults
of sb3-contrib 2.9 rule out the parent's own code. `MultiBinary` actions fail in its
`evaluate_actions` (an int8 tensor meets a float tensor). If actor and critic share an LSTM, the
critic's gradient does not reach the LSTM. Here a forward pass unrolls whole sequences into logits
and values, and the losses of both actor and critic train the layers that they share.

Shape suffixes: T steps, X rows (history and steps), N matches, B matches of a minibatch, A actions,
O observation, H memory, D latent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule, update_learning_rate
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.heads import action_distribution
from league.agent.network import UnrollOutput
from league.errors import NumericalFault
from league.games.base import CHOICE
from learner.distributed.rank_group import RankGroup
from learner.ppo.advantage import ReturnScale, explained_variance, generalised_advantage
from learner.ppo.diagnostics import Diagnostics
from learner.ppo.loss import (
    LossTerms,
    WeightedMeans,
    advantage_sums,
    clipped_policy_loss,
    forecast_loss,
    marginal_loss,
    normalised,
    value_loss,
    weighted_mean,
)
from learner.ppo.optimizer import AdaptiveRate, GradientStep
from learner.ppo.policy import LeaguePolicy, StateArrays
from learner.ppo.references import Memory, References
from learner.ppo.reward_transform import RewardTransform
from learner.rollout.buffer import Minibatch, SequenceBuffer
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import LearnerSettings, RegularisationSettings

STOP_INTERVAL = 32
"""Number of steps between two checks of whether any rank must stop. Each check waits for the
slowest rank.
"""
GAE_LAMBDA = 0.95
"""Lambda of the generalised advantage estimate, from the training guide that the preset `seed`
follows (docs/settings.md).
"""
MAX_GRAD_NORM = 0.5
"""Largest norm of the gradient of all parameters together, from the training guide that the preset
`seed` follows (docs/settings.md).
"""
_LOGGED = (
    "loss/policy",
    "loss/value",
    "policy/entropy",
    "policy/approx_kl",
    "policy/clip_fraction",
)


class LeaguePPO(RecurrentPPO):
    """Trains by PPO on whole sequences of a `LeagueVecEnv`.

    Args:
        policy: "LeaguePolicy".
        env: the matches.
        settings: hyperparameters. The number of matches comes from `env`, not from
            `settings.matches`.
        regularisation: settings that hold the policy near frozen copies of itself. None switches
            this off.
        should_stop: called between steps and minibatches. True ends `learn` early.
        kwargs: further arguments of Stable-Baselines3, such as `device`, `verbose` and
            `policy_kwargs={"agent": config}`.
    """

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"LeaguePolicy": LeaguePolicy}
    policy: LeaguePolicy
    env: LeagueVecEnv
    clip_range: FloatSchedule

    def __init__(
        self,
        policy: str | type[LeaguePolicy],
        env: LeagueVecEnv,
        settings: LearnerSettings | None = None,
        *,
        regularisation: RegularisationSettings | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        **kwargs: Any,
    ) -> None:
        settings = settings or LearnerSettings.model_validate({})
        self.settings, self.regularisation = settings, regularisation
        self.should_stop = should_stop
        self.rate = AdaptiveRate(settings.desired_kl)
        kwargs.setdefault("seed", settings.seed)
        super().__init__(
            policy,
            env,
            learning_rate=settings.learning_rate_at,
            n_steps=settings.n_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.n_epochs,
            gamma=settings.gamma,
            gae_lambda=GAE_LAMBDA,
            clip_range=settings.clip_range,
            vf_coef=settings.vf_coef,
            max_grad_norm=MAX_GRAD_NORM,
            **kwargs,
        )

    def tune(self, settings: LearnerSettings) -> None:
        """Continues with another learning rate, entropy weight and clip range."""
        self.settings = settings
        self.learning_rate = settings.learning_rate_at
        self._setup_lr_schedule()
        self.clip_range = FloatSchedule(settings.clip_range)

    @property
    def agent(self) -> AgentConfig:
        """Sizes of the network."""
        return self.policy_kwargs["agent"]

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        self.sequences = self.settings.batch_size // self.n_steps
        forecasts = self.settings.forecast_coef > 0
        self.policy = self.policy_class(  # pyrefly: ignore[bad-assignment]
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            forecasts=forecasts,
            **self.policy_kwargs,
        ).to(self.device)
        self.clip_range = FloatSchedule(self.clip_range)
        self.rollout_buffer = None  # pyrefly: ignore[bad-assignment]  # of the parent; `buffer` replaces it
        self.buffer = SequenceBuffer(
            self.agent, self.n_steps, self.n_envs, self.device, keeps_actions=forecasts
        )
        self._staging_NQ: Tensor | None = None
        if self.device.type == "cuda":
            self._staging_NQ = torch.empty(
                self.n_envs, self.agent.observation_size + 2, pin_memory=True
            )
        self.group = RankGroup()
        self.gradient_step = GradientStep(
            self.policy,
            self.policy.optimizer,
            self.max_grad_norm,
            self.settings.precision,
            self.device,
            self.group,
        )
        loaded: ReturnScale | None = getattr(self, "return_scale", None)  # of a saved model
        self.return_scale = ReturnScale(self.n_envs, self.gamma, self.group)
        if loaded is not None:
            self.return_scale.load(loaded.state() | {"return_N": []})  # the saved matches are gone
        self.diagnostics = Diagnostics()
        self.key_rng = torch.Generator(device=self.device)
        self.reseed(0 if self.seed is None else self.seed)
        self.schedule_span: tuple[int, int] | None = None
        self._forget_matches()
        self.inference_seconds = self.learning_seconds = self._old_share = 0.0
        self.references: References | None = None
        self.transform: RewardTransform | None = None
        held = self.regularisation
        if held is not None and held.alpha > 0:
            autocast = self.gradient_step.autocast
            self.references = References(
                held, self.agent, self.n_envs, self.device, autocast, self.group
            )
            if held.form == "reward":
                self.transform = RewardTransform(self.references, self.n_steps)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> tuple[int, BaseCallback]:
        if not (self._custom_logger or self.verbose or self.tensorboard_log):
            self.set_logger(Logger(None, []))  # the parent's silent logger leaves a folder in /tmp
        self._allow_waiting(self.env)
        return super()._setup_learn(*args, **kwargs)

    def _allow_waiting(self, env: Any) -> None:
        """Lets steps leave out matches, unless the transform needs every step of every match."""
        env.may_wait = env.takes_absent = self.transform is None

    @property
    def _held(self) -> References | None:
        """The references (frozen copies of the learner) if the divergence from them is a term of
        the loss, otherwise None.
        """
        return self.references if self.transform is None else None

    def _forget_matches(self) -> None:
        """Empties the memory. The next observations count as the first of their matches."""
        self.agent_state = self.policy.network.initial_state(self.n_envs)
        self.last_obs_NO: np.ndarray | None = None
        self.last_starts_N = np.ones(self.n_envs, np.bool_)
        self._version_N = np.zeros(self.n_envs, np.int64)

    def set_env(self, env: LeagueVecEnv, force_reset: bool = True) -> None:  # pyrefly: ignore[bad-override]
        """Plays the matches of `env` from the next rollout on. `env` must have as many matches as
        the old environment. If `force_reset` is true, the recurrent memory of all matches is
        cleared.
        """
        super().set_env(env, force_reset)
        if force_reset:
            self._forget_matches()

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        """Sets the progress that schedules follow. The progress is measured over all steps of the
        run, or over `schedule_span` (first step, number of steps) if this is set.
        """
        if self.schedule_span is not None:
            first, length = self.schedule_span
            num_timesteps, total_timesteps = min(num_timesteps - first, length), length
        super()._update_current_progress_remaining(num_timesteps, total_timesteps)

    def reseed(self, seed: int) -> None:
        """Seeds the random numbers for actions and minibatches, differently on each rank."""
        self.shuffle_rng = np.random.default_rng(self.group.seed(seed))
        self.key_rng.manual_seed(self.group.seed(seed))

    # -- rollouts -------------------------------------------------------------------------------

    def collect_rollouts(  # pyrefly: ignore[bad-override]
        self, env: LeagueVecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int
    ) -> bool:
        """Plays `n_rollout_steps` steps in every match.

        Callbacks find a step's `new_obs`, `rewards`, `dones`, `infos`, `actions`, `values`,
        `log_probs` and `n_steps` in their `locals`, as in Stable-Baselines3. `env.finished` holds
        the matches that ended in this rollout.

        Args:
            env: the matches.
            callback: called at the start, after each step, and at the end.
            rollout_buffer: the parent's buffer, which is not used.
            n_rollout_steps: steps of each match.

        Returns:
            False if the rollout stopped before its end, otherwise True.

        Raises:
            NumericalFault: the game's or the network's numbers are not finite.
        """
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        env.finished = []
        self._allow_waiting(env)
        if self.last_obs_NO is None:
            self.last_obs_NO = env.reset()
        buffer = self.buffer
        env.keeps_actions = self.policy.forecast is not None
        buffer.carry_context()
        buffer.h_NH.copy_(self.agent_state.h_BH)
        buffer.c_NH.copy_(self.agent_state.c_BH)
        if self.references is not None:
            self.references.begin(self.policy.network, *self._memories(env), self.num_timesteps)
        if self.transform is not None:
            self.transform.carry_context()
        for t in range(n_rollout_steps):
            played = self._play_step(env, t)
            self.num_timesteps += env.num_envs * self.group.size
            if self.ep_info_buffer is not None and played["dones"].any():
                self._update_info_buffer(played["infos"], played["dones"])
            callback.update_locals(locals() | played)
            asks = self.group.size == 1 or t % STOP_INTERVAL == 0
            if not callback.on_step() or (asks and self.group.any(self.should_stop())):
                self._cut_short(t + 1)
                return False
        if self.references is not None:
            self.references.play(buffer, n_rollout_steps)
        self._estimate_advantages(env)
        callback.on_rollout_end()
        return True

    @torch.inference_mode()
    def _play_step(self, env: LeagueVecEnv, t: int) -> dict[str, Any]:
        buffer = self.buffer
        state, starts_N = self.agent_state, self.last_starts_N
        actions_NA = self._act(env, t)
        steps_N = env.steps_N + 1
        self.last_obs_NO, rewards_N, ended_N = env.step_arrays(actions_NA)
        place = buffer.place(t)
        buffer.reward_TN[place], buffer.ended_TN[place] = rewards_N, ended_N
        if self.transform is not None:
            self.transform.after_step(t, env)
        if env.opponent_actions is not None:
            buffer.keep_actions(t, env.opponent_actions)
        if env.failed_N.any():
            buffer.leave_out(t, steps_N, env.failed_N)
        self.last_starts_N = np.where(env.waiting_N, starts_N, ended_N)
        if env.waiting_N.any():  # these matches decide again, from the same memory
            waits = torch.as_tensor(np.flatnonzero(env.waiting_N), device=self.device)
            for new, old in zip(self.agent_state, state, strict=True):
                new[waits] = old[waits]
        buffer.note_waiting(t, env.waiting_N)
        return {
            "n_steps": t,
            "actions": actions_NA.argmax(-1) if self.agent.action_kind == CHOICE else actions_NA,
            "values": buffer.value_TN[place],
            "log_probs": buffer.log_prob_TN[place],
            "new_obs": self.last_obs_NO,
            "rewards": rewards_N,
            "dones": ended_N,
            "infos": env.infos,
        }

    def _act(self, env: LeagueVecEnv, t: int) -> NDArray[np.uint8]:
        """Samples the actions `[N, A]` of step `t` and stores the step in the buffer."""
        started = time.perf_counter()
        buffer, place, seen = self.buffer, self.buffer.place(t), self.buffer.place_seen(t)
        obs_NO, starts_N, time_left_N = self._inputs(env)
        out = self.policy.network.step(obs_NO, starts_N, self.agent_state, time_left_N)
        legal_NA = env.legal()
        legal = None if legal_NA is None else torch.as_tensor(legal_NA, device=self.device)
        actor = action_distribution(self.agent.action_kind, out.logits_BA, legal)
        actions_NA = actor.sample(self.key_rng)
        held_N = env.decisions.held_N
        self._version_N = np.where(held_N, self._version_N, self._n_updates)
        if held_N.any():
            held_NA = env.or_held(actions_NA.to(torch.uint8).cpu().numpy())
            actions_NA = torch.as_tensor(held_NA).to(actions_NA)
        if buffer.legal_TNA is not None and legal is not None:
            buffer.legal_TNA[place] = legal
        buffer.obs_XNO[seen], buffer.starts_XN[seen] = obs_NO, starts_N
        buffer.version_TN[place] = self._version_N
        buffer.time_left_TN[place], buffer.actions_TNA[place] = time_left_N, actions_NA.float()
        buffer.log_prob_TN[place], buffer.value_TN[place] = actor.log_prob(actions_NA), out.value_B
        self.agent_state = out.state
        if self.transform is not None:
            self.transform.before_step(t, env, starts_N, out.logits_BA)
        pressed_NA: NDArray[np.uint8] = actions_NA.to(torch.uint8).cpu().numpy()
        # Checked only here, where copying the actions has already waited for the GPU.
        self._check_finite(out.logits_BA, out.value_B)
        self.inference_seconds += time.perf_counter() - started
        return pressed_NA

    def _inputs(self, env: LeagueVecEnv) -> tuple[Tensor, Tensor, Tensor]:
        """Copies observations, starts and time left to the device.

        The copy to a GPU is asynchronous, from page-locked memory. The next call overwrites this
        memory. This is safe, because by then the sampled actions, which depend on the copy, have
        been read.
        """
        assert self.last_obs_NO is not None
        time_left_N = env.time_left_N()
        if self._staging_NQ is None:
            return (
                torch.as_tensor(self.last_obs_NO),
                torch.as_tensor(self.last_starts_N),
                torch.as_tensor(time_left_N),
            )
        staging_NQ = self._staging_NQ.numpy()
        staging_NQ[:, :-2], staging_NQ[:, -2] = self.last_obs_NO, self.last_starts_N
        staging_NQ[:, -1] = time_left_N
        inputs_NQ = self._staging_NQ.to(self.device, non_blocking=True)
        return inputs_NQ[:, :-2], inputs_NQ[:, -2] > 0, inputs_NQ[:, -1]

    def _check_finite(self, logits_NA: Tensor, value_N: Tensor) -> None:
        """Raises `NumericalFault` when the network's outputs are not finite.

        The check sums all outputs, so that only one number has to be copied from the device. If any
        output is not finite, the sum is not finite either.
        """
        if math.isfinite(float(logits_NA.sum() + value_N.sum())):
            return
        culprit = "value" if math.isfinite(float(logits_NA.sum())) else "logits"
        raise NumericalFault(
            f"the network's {culprit} in the rollout after step {self.num_timesteps} are not "
            "finite: no weight was changed; continue from the newest checkpoint with a lower "
            "learner.learning_rate"
        )

    def _cut_short(self, steps: int) -> None:
        """Ends the rollout after `steps` steps. The next rollout continues from there."""
        if self.references is not None:
            self.references.play(self.buffer, steps)
        if self.transform is not None:
            self.transform.play(steps)
            self.transform.cut_short(steps)
        self.buffer.cut_short(steps)

    def _memories(self, env: LeagueVecEnv) -> tuple[Memory, Memory | None]:
        """Returns the learner's memory in its own seats, and its memory in the opponents' seats. In
        self-play the learner plays both kinds of seats. The second memory is None unless the
        rewards are transformed.
        """
        across = None if self.transform is None else env.opponent_policy.live_memory()
        return (self.agent_state.h_BH, self.agent_state.c_BH), across

    @torch.inference_mode()
    def _estimate_advantages(self, env: LeagueVecEnv) -> None:
        """Computes the values after the last step, scales the rewards, and fills in advantages and
        value targets.
        """
        buffer = self.buffer
        obs_NO, starts_N, time_left_N = self._inputs(env)
        out = self.policy.network.step(obs_NO, starts_N, self.agent_state, time_left_N)
        kinds = ["" if match is None else match.category for match in env.assignments]
        self.diagnostics.rollout_ends(
            out.latent_BD, out.state.age_B, self.agent.sequence_length, kinds
        )
        buffer.leave_out_unplayed()
        self._old_share = buffer.leave_out_older(self._n_updates)
        played_TN = buffer.played_TN
        self.return_scale.update(buffer.reward_TN, buffer.ended_TN, played_TN)
        reward_TN = buffer.reward_TN / np.float32(self.return_scale.scale)
        if self.transform is not None:
            reward_TN = reward_TN + self.transform.addition(buffer)
        advantage_TN, target_TN = generalised_advantage(
            reward_TN,
            buffer.value_TN.cpu().numpy(),
            buffer.ended_TN,
            out.value_B.cpu().numpy(),
            self.gamma,
            self.gae_lambda,
            played_TN,
        )
        buffer.advantage_TN.copy_(torch.as_tensor(advantage_TN))
        buffer.target_TN.copy_(torch.as_tensor(target_TN))

    # -- updates --------------------------------------------------------------------------------

    def train(self) -> None:
        """Makes `n_epochs` passes over the rollout in minibatches of whole sequences."""
        started = time.perf_counter()
        self.policy.set_training_mode(True)
        rate = self.lr_schedule(self._current_progress_remaining) * self.rate.scale
        update_learning_rate(self.policy.optimizer, rate)
        self.logger.record("learning/rate", rate)
        lag = self._n_updates - self.buffer.oldest_version(self._n_updates)
        self.logger.record("learning/policy_lag", lag)
        logged: dict[str, list[float]] = {}
        stops = False
        for rows, sums in self._minibatches():
            means, stops = self._update(rows, sums)
            for name, value in means.items():
                logged.setdefault(name, []).append(value)
            if stops:
                break
        self._n_updates += len(logged["loss/total"])
        if not stops:  # otherwise the KL covers only a few minibatches
            self.rate.adapt(float(np.mean(logged["policy/approx_kl"])))
        self._log(logged)
        self._renew_references()
        self.learning_seconds += time.perf_counter() - started

    def _minibatches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Draws the minibatches of all epochs. Yields, for each minibatch, its matches and its
        `_sums`, added up over all ranks.
        """
        epochs = [self.buffer.drawn(self.sequences, self.shuffle_rng) for _ in range(self.n_epochs)]
        drawn = [rows for epoch in epochs for rows in epoch]
        # All sums go into one message, because every message waits for the slowest rank.
        return zip(drawn, self.group.sum(torch.stack(list(map(self._sums, drawn)))), strict=True)

    def _sums(self, rows: Tensor) -> Tensor:
        """Returns the `advantage_sums` of a minibatch, followed by its `_counts`, float64 `[6]`."""
        batch = self.buffer.minibatch(rows)
        return torch.cat(
            [advantage_sums(batch.advantage_TB, batch.decided_TB()), self._counts(batch)]
        )

    def _update(self, rows: Tensor, sums: Tensor) -> tuple[dict[str, float], bool]:
        """Makes an optimizer step. Returns the means for the log, and whether to stop."""
        batch = self.buffer.minibatch(rows)
        batch = replace(batch, advantage_TB=normalised(batch.advantage_TB, sums[:3]))
        means = WeightedMeans(self._logged_names())
        self.gradient_step.begin()
        for part in batch.split(self.settings.gradient_parts):
            terms = self.loss_terms(part)
            shares = (self._counts(part) / sums[3:]).tolist()
            self.gradient_step.add(self.weighted(terms, *shares), terms.named())
            self._add(means, terms, *shares)
        values, stops = self.gradient_step.reduce(means, self.should_stop())
        self.diagnostics.gradient(self.policy.network, self.policy.forecast)
        norm = self.gradient_step.finish(self.num_timesteps)
        return {**values, "learning/gradient_norm": norm}, stops

    def _counts(self, batch: Minibatch) -> Tensor:
        """Counts three kinds of steps: steps with a decision, steps that are not left out
        (`Minibatch.weight_TB`), and steps in which the opponent's action is known. Returns float64
        `[3]`. A count of 0 is replaced by 1e-8, so that shares can be computed.
        """
        size = float(batch.value_TB.numel())
        weights = batch.decided_TB(), batch.weight_TB, batch.known_TB
        numbers = [size if weight is None else float(weight.sum()) for weight in weights]
        return torch.tensor(numbers, dtype=torch.float64).clamp_min(1e-8)

    def _logged_names(self) -> tuple[str, ...]:
        names = _LOGGED + (self._held.metric_names() if self._held else ())
        return names if self.policy.forecast is None else (*names, "loss/forecast")

    def _add(
        self, means: WeightedMeans, terms: LossTerms, decided: float, counted: float, known: float
    ) -> None:
        """Adds the loss terms of a part of a minibatch to `means`, weighted by the part's share of
        the minibatch.
        """
        policy = terms.policy
        numbers = policy.loss, terms.value, terms.entropy, policy.approx_kl, policy.clip_fraction
        for name, number in zip(_LOGGED, numbers, strict=True):
            means.add(name, number, counted if name == "loss/value" else decided)
        if terms.forecast is not None:
            means.add("loss/forecast", terms.forecast, known)
        if terms.kl is not None and self.references is not None:
            here = float(terms.kl.here)
            for name, value in self.references.metrics(terms.kl).items():
                means.add(name, value, decided if name == "reference/kl" else here)

    def unroll(self, batch: Minibatch) -> UnrollOutput:
        """Runs the current network over a minibatch."""
        return self.policy.network.unroll(
            batch.obs_XBO,
            batch.starts_XB,
            batch.h_BH,
            batch.c_BH,
            batch.time_left_TB,
            prefix=self.buffer.context,
        )

    def loss_terms(self, batch: Minibatch) -> LossTerms:
        """Computes a minibatch's loss terms. Each term has a gradient and is not yet weighted."""
        with self.gradient_step.autocast():
            out = self.unroll(batch)
            forecast = None
            if self.policy.forecast is not None:
                logits_TBA = self.policy.forecast(out.latent_TBD).float()
                forecast = forecast_loss(self.agent.action_kind, logits_TBA, batch)
        logits_TBA, value_TB = out.logits_TBA.float(), out.value_TB.float()
        actor = action_distribution(self.agent.action_kind, logits_TBA, batch.legal_TBA)
        decided_TB = batch.decided_TB()
        policy = clipped_policy_loss(
            actor.log_prob(batch.actions_TBA),
            batch.log_prob_TB,
            batch.advantage_TB,
            self.clip_range(self._current_progress_remaining),
            decided_TB,
        )
        value = value_loss(value_TB, batch.target_TB, batch.weight_TB)
        entropy = weighted_mean(actor.entropy(), decided_TB)
        kl = self._held.divergence(logits_TBA, batch) if self._held else None
        return LossTerms(policy, value, entropy, kl, forecast)

    def weighted(
        self, terms: LossTerms, decided: float = 1.0, counted: float = 1.0, known: float = 1.0
    ) -> Tensor:
        """Computes the loss of a part of a minibatch: the weighted sum of the part's loss terms.
        Each term is also multiplied by the part's share of the steps that the term averages over.

        Args:
            terms: the terms of a part of a minibatch.
            decided: the part's share of the steps with a decision.
            counted: the part's share of the steps that are not left out.
            known: the part's share of the steps in which the opponent's action is known.
        """
        actor = terms.policy.loss - self.entropy_weight * terms.entropy
        if terms.kl is not None and self.regularisation is not None:
            actor = actor + self.regularisation.alpha * terms.kl.loss
        loss = decided * actor + counted * self.vf_coef * terms.value
        if terms.forecast is None:
            return loss
        return loss + known * self.settings.forecast_coef * terms.forecast

    @property
    def entropy_weight(self) -> float:
        """The current weight of the entropy bonus."""
        return self.settings.ent_coef_at(self._current_progress_remaining)

    def _renew_references(self) -> None:
        """Logs the divergence from the references (frozen copies of the learner) if it is part of
        the rewards, and freezes a new reference when it is due.
        """
        references = self.references
        if references is None:
            return
        if self.transform is not None:  # `train` logs no divergence, because the loss has none
            distance = self.transform.divergence(self.buffer)
            means = WeightedMeans(references.metric_names())
            for name, value in references.metrics(distance).items():
                means.add(name, value, float(distance.here))
            for name, value in means.means(self.group.sum(means.sums())).items():
                self.logger.record(name, value)
        if references.due(self._n_updates):
            memories = self._memories(self.env)
            references.renew(
                self.policy.network, *memories, self.num_timesteps, self._n_updates, self.buffer
            )

    def _log(self, logged: dict[str, list[float]]) -> None:
        values = {name: float(np.mean(numbers)) for name, numbers in logged.items()}
        values["policy/first_kl"] = logged["policy/approx_kl"][0]
        if self.policy.forecast is not None:
            # The first loss comes from matches that the head had not yet learnt from.
            values["forecast/first_loss"] = logged["loss/forecast"][0]
            values["forecast/marginal_loss"] = marginal_loss(
                self.agent.action_kind, self.buffer, self.group.sum
            )
        self.diagnostics.update_ends(
            self.policy.network, self.buffer, self._n_updates, self.env.frame_skip
        )
        values |= self.diagnostics.take()
        played_TN = self.buffer.played_TN
        played = slice(None) if played_TN is None else torch.from_numpy(played_TN)
        values["value/explained_variance"] = explained_variance(
            self.buffer.value_TN[played], self.buffer.target_TN[played], self.group.sum
        )
        values["rollout/old_action_share"] = self._old_share
        if played_TN is not None:
            values["rollout/waiting_share"] = 1.0 - float(played_TN.mean())
        values["reward/scale"] = self.return_scale.scale
        values["reward/largest"] = float(np.abs(self.buffer.reward_TN).max())
        values["policy/entropy_weight"] = self.entropy_weight
        values["policy/clip_range"] = self.clip_range(1.0)
        for name, value in values.items():
            self.logger.record(name, value)
        self.logger.record("learning/updates", self._n_updates, exclude="tensorboard")

    def predict(self, *args: Any, **kwargs: Any) -> tuple[np.ndarray, StateArrays | None]:
        """Calls `LeaguePolicy.predict`. Unlike the parent's method, this method accepts
        `action_masks`, which sb3-contrib's evaluation passes.
        """
        return self.policy.predict(*args, **kwargs)

    def _excluded_save_params(self) -> list[str]:
        return [
            *super()._excluded_save_params(),
            "agent_state",
            "buffer",
            "diagnostics",
            "gradient_step",
            "group",
            "key_rng",
            "last_obs_NO",
            "references",
            "should_stop",
            "transform",
            "_staging_NQ",
        ]
