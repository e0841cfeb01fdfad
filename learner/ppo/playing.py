"""The half of `LeaguePPO` that plays: what it is made of, and rollouts of many matches at once.

Shape suffixes: T steps, X rows (history and steps), N matches, A actions, O observation, H memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import FloatSchedule
from torch import Tensor

from league.agent.config import AgentConfig
from league.agent.heads import action_distribution
from league.games.base import CHOICE
from learner.distributed.ranks import Ranks
from learner.ppo.advantage import ReturnScale, generalised_advantage
from learner.ppo.compiling import compiled_step
from learner.ppo.descent import Descent
from learner.ppo.diagnostics import Diagnostics
from learner.ppo.feed import Feed
from learner.ppo.policy import LeaguePolicy
from learner.ppo.references import Memory, References
from learner.ppo.transform import RewardTransform
from learner.rollout.buffer import SequenceBuffer
from learner.rollout.guard import check_outputs
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import RegularisationSettings

ASK_STEPS = 32
"""Steps of a rollout between two questions of several ranks whether one of them was told to
stop.
"""


class PlayingPPO(RecurrentPPO):
    """Collects rollouts of a `LeagueVecEnv` into `buffer`; arguments as `LeaguePPO`'s."""

    policy_aliases: ClassVar[dict[str, type[BasePolicy]]] = {"LeaguePolicy": LeaguePolicy}
    policy: LeaguePolicy
    env: LeagueVecEnv

    def __init__(
        self,
        policy: str | type[LeaguePolicy],
        env: LeagueVecEnv,
        *args: Any,
        normalize_returns: bool,
        regularisation: RegularisationSettings | None,
        precision: str,
        compiled: bool,
        forecast_coef: float,
        should_stop: Callable[[], bool],
        **kwargs: Any,
    ) -> None:
        self.compiled, self.forecast_coef = compiled, forecast_coef
        self.normalize_returns, self.should_stop = normalize_returns, should_stop
        self.regularisation, self.precision = regularisation, precision
        super().__init__(policy, env, *args, **kwargs)

    @property
    def agent(self) -> AgentConfig:
        """Sizes of the network."""
        return self.policy_kwargs["agent"]

    def _setup_model(self) -> None:
        self._setup_lr_schedule()
        self.set_random_seed(self.seed)
        forecasts = self.forecast_coef > 0
        self.policy = self.policy_class(  # type: ignore[assignment]
            self.observation_space,
            self.action_space,
            self.lr_schedule,
            forecasts=forecasts,
            **self.policy_kwargs,
        ).to(self.device)
        self.decide = self.policy.network.step
        if self.compiled:
            self.decide = compiled_step(self.policy.network, self.n_envs)
        self.clip_range = FloatSchedule(self.clip_range)
        self.rollout_buffer = None  # type: ignore[assignment]  # of the parent; `buffer` stands for it
        self.feed = Feed(self.n_envs, self.agent.observation_size, self.device)
        self.buffer = SequenceBuffer(
            self.agent, self.n_steps, self.n_envs, self.device, keeps_moves=forecasts
        )
        self.ranks = Ranks()
        self.descent = Descent(
            self.policy,
            self.policy.optimizer,
            self.max_grad_norm,
            self.precision,
            self.device,
            self.ranks,
        )
        seen: ReturnScale | None = getattr(self, "return_scale", None)  # of a model that was saved
        self.return_scale = ReturnScale(self.n_envs, self.gamma, self.ranks)
        if seen is not None:
            self.return_scale.load(seen.state() | {"return_N": []})  # its matches are gone
        self.diagnostics = Diagnostics()
        self.key_rng = torch.Generator(device=self.device)
        self.reseed(0 if self.seed is None else self.seed)
        self.span: tuple[int, int] | None = None
        self._forget_matches()
        self.inference_seconds = self.learning_seconds = 0.0
        self._setup_regularisation()

    def _forget_matches(self) -> None:
        """What is seen next are first moments of matches, with nothing to remember."""
        self.agent_state = self.policy.network.initial_state(self.n_envs)
        self.last_obs_NO: np.ndarray | None = None
        self.last_starts_N = np.ones(self.n_envs, np.bool_)

    def set_env(self, env: LeagueVecEnv, force_reset: bool = True) -> None:  # type: ignore[override]
        """Plays other matches from the next rollout on, as many at once as before."""
        super().set_env(env, force_reset)
        if force_reset:
            self._forget_matches()

    def _setup_regularisation(self) -> None:
        self.references: References | None = None
        self.transform: RewardTransform | None = None
        settings = self.regularisation
        if settings is not None and settings.alpha > 0:
            self.references = References(
                settings, self.agent, self.n_envs, self.device, self.descent.autocast
            )
            self.references.agree = lambda index: int(self.ranks.leading({"index": index})["index"])
            if settings.form == "reward":
                self.transform = RewardTransform(
                    settings.alpha, self.agent, self.n_steps, self.n_envs, self.device
                )

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        """What schedules go by: all steps of the run, or those of a `span` (first step, length)."""
        if self.span is not None:
            begun, length = self.span
            num_timesteps, total_timesteps = min(num_timesteps - begun, length), length
        super()._update_current_progress_remaining(num_timesteps, total_timesteps)

    def reseed(self, seed: int) -> None:
        """Begins the sampling of actions and of minibatches anew; each rank draws its own."""
        self.shuffle_rng = np.random.default_rng(self.ranks.seed(seed))
        self.key_rng.manual_seed(self.ranks.seed(seed))

    # -- rollouts -------------------------------------------------------------------------------

    def collect_rollouts(  # type: ignore[override]
        self, env: LeagueVecEnv, callback: BaseCallback, rollout_buffer: Any, n_rollout_steps: int
    ) -> bool:
        """Plays `n_steps` in every match; False when asked to stop before the end.

        Callbacks find a step's `new_obs`, `rewards`, `dones`, `infos`, `actions`, `values`,
        `log_probs` and `n_steps` in their `locals`, as in Stable-Baselines3. `env.finished` holds
        this rollout's matches.
        """
        self.policy.set_training_mode(False)
        callback.on_rollout_start()
        env.finished = []  # whom they concerned has read them by now
        if self.last_obs_NO is None:
            self.last_obs_NO = env.reset()
        buffer = self.buffer
        env.keeps_moves = self.policy.forecast is not None
        buffer.carry_context()
        buffer.h_NH.copy_(self.agent_state.h_BH)
        buffer.c_NH.copy_(self.agent_state.c_BH)
        if self.references is not None:
            self.references.begin(self.policy.network, *self._memories(env), self.num_timesteps)
        if self.transform is not None:
            self.transform.carry_context()
        for t in range(n_rollout_steps):
            played = self._play_step(env, t)
            self.num_timesteps += env.num_envs * self.ranks.count
            self._note_ended(played)
            callback.update_locals(locals() | played)
            if not callback.on_step() or self._stops_at(t):
                self._cut_short(t + 1)
                return False
        if self.references is not None:
            self.references.play_along(buffer, n_rollout_steps)
        self._estimate_advantages(env)
        callback.on_rollout_end()
        return True

    def _note_ended(self, played: dict[str, Any]) -> None:
        """Counts matches that ended in the means that are logged as `rollout/`."""
        # None before the first `learn`
        if self.ep_info_buffer is not None and played["dones"].any():
            self._update_info_buffer(played["infos"], played["dones"])

    def _stops(self) -> bool:
        """Whether some rank was asked to stop: all do, for none can go on alone."""
        return self.ranks.any(self.should_stop())

    def _stops_at(self, t: int) -> bool:
        """`_stops` behind step `t` of a rollout: several ranks ask each other once in some steps
        only, for whoever asks waits for the slowest.
        """
        return (self.ranks.count == 1 or t % ASK_STEPS == 0) and self._stops()

    @torch.inference_mode()
    def _play_step(self, env: LeagueVecEnv, t: int) -> dict[str, Any]:
        """Decides and plays step `t`; returns it by the names under which callbacks look for it."""
        buffer = self.buffer
        actions_NA = self._decide(env, t)
        steps_N = env.steps_N + 1
        self.last_obs_NO, rewards_N, ended_N = env.step_arrays(actions_NA)
        buffer.reward_TN[t], buffer.ended_TN[t] = rewards_N, ended_N
        if self.transform is not None:
            self.transform.after_step(t, env)
        if env.moves is not None:
            buffer.keep_moves(t, env.moves)
        if env.failed_N.any():
            buffer.leave_out(t, steps_N, env.failed_N)
        self.last_starts_N = ended_N
        return {
            "n_steps": t,
            "actions": actions_NA.argmax(-1) if self.agent.action_kind == CHOICE else actions_NA,
            "values": buffer.value_TN[t],
            "log_probs": buffer.log_prob_TN[t],
            "new_obs": self.last_obs_NO,
            "rewards": rewards_N,
            "dones": ended_N,
            "infos": env.infos,
        }

    def _decide(self, env: LeagueVecEnv, t: int) -> NDArray[np.uint8]:
        """The actions of step `t`, `[N, A]`, as the game takes them; the rest of it goes into
        the buffer.
        """
        started = time.perf_counter()
        buffer, row = self.buffer, self.buffer.context + t
        assert self.last_obs_NO is not None
        obs_NO, starts_N, time_left_N = self.feed(
            self.last_obs_NO, self.last_starts_N, env.time_left()
        )
        out = self.decide(obs_NO, starts_N, self.agent_state, time_left_N)
        legal_NA = self._legal(env)
        actor = action_distribution(self.agent.action_kind, out.logits_BA, legal_NA)
        actions_NA = actor.sample(self.key_rng)
        if buffer.legal_TNA is not None and legal_NA is not None:
            buffer.legal_TNA[t] = legal_NA
        buffer.obs_XNO[row], buffer.starts_XN[row], buffer.time_left_TN[t] = (
            obs_NO,
            starts_N,
            time_left_N,
        )
        buffer.actions_TNA[t] = actions_NA
        buffer.log_prob_TN[t] = actor.log_prob(actions_NA)
        buffer.value_TN[t] = out.value_B
        self.agent_state = out.state
        if self.transform is not None:
            self.transform.before_step(t, env.across(), starts_N, out.logits_BA)
        pressed_NA: NDArray[np.uint8] = actions_NA.to(torch.uint8).cpu().numpy()
        # behind the one wait for a GPU
        check_outputs(out.logits_BA, out.value_B, self.num_timesteps)
        self.inference_seconds += time.perf_counter() - started
        return pressed_NA

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
        across = None if self.transform is None else env.opponent_policy.live_memory()
        return (self.agent_state.h_BH, self.agent_state.c_BH), across

    def _legal(self, env: LeagueVecEnv) -> Tensor | None:
        legal_NA = env.legal()
        return None if legal_NA is None else torch.as_tensor(legal_NA, device=self.device)

    @torch.inference_mode()
    def _estimate_advantages(self, env: LeagueVecEnv) -> None:
        """Values the cut-off, scales rewards, and fills advantages and targets."""
        buffer = self.buffer
        assert self.last_obs_NO is not None
        obs_NO, starts_N, time_left_N = self.feed(
            self.last_obs_NO, self.last_starts_N, env.time_left()
        )
        out = self.decide(obs_NO, starts_N, self.agent_state, time_left_N)
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
