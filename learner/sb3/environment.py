"""Makes an environment whose matches a league assigns, and publishes policies as members of the
league.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize

from league.agent.batched_policy import BatchedPolicy
from league.agent.perceptron import PerceptronConfig
from league.agent.rivals import RivalSeats
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import InvalidInput, LeagueError, Refused
from league.games.base import KEYS
from league.games.registry import reward_weights
from league.games.settings import GameSettings
from league.players import Assignment, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.security.credentials import of_run
from league.settings.base import resolve_run, sections_hash
from league.status import PAUSED, at_rest
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import AHEAD, HOLD_SECONDS, MatchBroker
from learner.sb3.policy import perceptron_of
from learner.train.join import live_player, register_players
from learner.train.metrics import Progress
from learner.train.snapshots import SnapshotPublisher

HEARTBEAT_SECONDS = 0.5


class _Keys(spaces.MultiBinary):
    """Works like `MultiBinary`, but its dtype is float32.

    sb3-contrib's recurrent buffer passes actions to torch in the dtype of the action space, and
    torch can't compute the likelihood of int8 actions. A saved model holds a plain `MultiBinary`
    instead, so it can be loaded without this project's packages.
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.dtype: Any = np.dtype(np.float32)

    def sample(self, *args: Any, **kwargs: Any) -> NDArray[np.int8]:
        return spaces.MultiBinary(self.n, self.np_random).sample(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return spaces.MultiBinary.__new__, (spaces.MultiBinary,), self.__dict__


class JoinedEnv(LeagueVecEnv):
    """Plays matches of the player that learns here, and reports their results to the league.

    Make it with `league_env`. Close it, or use it in a `with` block, so that the leases of unplayed
    matches are returned.
    """

    def __init__(
        self,
        client: MatchmakerClient,
        broker: MatchBroker,
        publisher: SnapshotPublisher,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if self.game.spec.action_kind == KEYS:
            self.action_space = _Keys(self.game.spec.action_size)
        self.client, self.broker, self.publisher = client, broker, publisher
        self.progress = Progress(0, self.game.spec.frames_per_second)
        self._last_heartbeat = 0.0

    def __enter__(self) -> JoinedEnv:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict]]:
        while self.broker.paused():
            self.progress.rest()
            resting = at_rest(self.progress.metrics())
            self.broker.beat(self.frames_played, self.learner_step, PAUSED, resting)
            time.sleep(HOLD_SECONDS)
        after = super().step_wait()
        self.progress.add(self.finished)
        if time.monotonic() - self._last_heartbeat > HEARTBEAT_SECONDS:
            self.heartbeat()
        return after

    def heartbeat(self) -> None:
        """Reports progress to the league. As long as the reported number of played frames grows,
        the player keeps its leases.
        """
        self._last_heartbeat = time.monotonic()
        busy = {
            "game": self.game_seconds,
            "opponents": self.opponents_seconds,
            "waiting": self.broker.waiting_seconds,
        }
        self.progress.mark(self.learner_step, self.frames_played, busy)
        self.broker.beat(self.frames_played, self.learner_step, "rollout", self.progress.metrics())

    def follow(self, model: BaseAlgorithm) -> None:
        """Makes the newest weights of `model` the opponent in self-play matches.

        A model that was loaded may already have made more steps than the environment. The
        environment then continues to count from the model's number of steps.

        Raises:
            InvalidInput: `perceptron_of` refuses the policy, or the model is on another device.
        """
        network = perceptron_of(model.policy)
        if network.device != self.opponent_policy.device:
            raise InvalidInput(
                f"the model is on {network.device}, opponents on {self.opponent_policy.device}: "
                "give the model device='cpu', which is also faster for small networks"
            )
        self.opponent_policy.set_live(network)
        self.learner_step = max(self.learner_step, model.num_timesteps)

    def _seat_opponent(self, n: int, assignment: Assignment) -> None:
        if assignment.opponent.kind is PlayerKind.LIVE and not self.opponent_policy.has_live:
            raise Refused(
                "the mix has this learner meet itself, and its weights are not known here: call "
                "env.follow(model) before model.learn, or name a mix without `self`"
            )
        super()._seat_opponent(n, assignment)

    def close(self) -> None:
        """Returns the unplayed matches and leaves the league. A second call changes nothing."""
        with contextlib.suppress(LeagueError):  # must not hide the error that ended the training
            self.heartbeat()
        self.broker.close("the learner leaves")
        self.client.close()
        self.game.close()


def league_env(
    address: str,
    run_dir: Path | str,
    *,
    name: str = "sb3",
    matches: int = 32,
    mix: str = "league",
    preset: str | None = None,
    settings: Sequence[str] = (),
    seed: int = 0,
    goes_on: bool = False,
) -> JoinedEnv:
    """Joins the league at `address` as the live player `name`.

    Args:
        address: HOST:PORT of a running matchmaker. If it requires a token, the token comes from an
            environment variable or from `run_dir` (docs/security.md).
        run_dir: the run's folder. Opponents' weights are read from its `blobs`, and the player's
            weights are written there. Without `preset`, the game is read from the folder's
            `config.toml`, or from the preset `laptop` if there is no such file.
        name: the player's name. A process that joins later under the same name replaces this
            process.
        matches: number of matches played at once.
        mix: the mix of [matchmaker.mixes] from which opponents are drawn.
        preset: a preset to use instead of the folder's `config.toml`.
        settings: changes of settings, as for `--set`: "game.frame_skip=4", "game.reward=sparse", …
        seed: seed of the opponents' sampled actions.
        goes_on: whether the model that trains here continues the newest model of this name. If not,
            earlier results under this name no longer count in the player's live rating. They stay
            in the league's log.

    Returns:
        The player's matches as a `VecEnv`.

    Raises:
        ConfigError: the settings can't be used.
        Unavailable: no matchmaker answers.
    """
    sections = resolve_run(Path(run_dir), preset, assignments=settings)
    rules = sections.of(GameSettings)
    spec, blobs = rules.spec(), BlobFolder(Path(run_dir) / "blobs")
    client = MatchmakerClient(address, credentials=of_run(Path(run_dir), "worker"))
    game = rules.make(matches)
    try:
        live = live_player(name, game)
        register_players(client, live, game)
        counted, parent = 0, ""
        if goes_on:
            counted = client.status().log_position
            snapshots = client.players(kinds=[PlayerKind.SNAPSHOT])
            mine = [player for player in snapshots if player.creator == live.creator]
            parent = max(mine, key=lambda player: player.step).name if mine else ""
        incarnation = client.open_incarnation(
            live.creator, name, checkpoint_log_position=counted, game_version=spec.version
        ).number
        config = PerceptronConfig(
            observation_size=spec.observation_size,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
        )
        card = SnapshotCard(
            agent=config,  # `publish` replaces it with the policy's own configuration
            game=spec.name,
            game_version=spec.version,
            frame_skip=rules.frame_skip,
            parent=parent,
            role=live.role.value,
            seed=seed,
            reward_preset=rules.reward,
            config_hash=sections_hash(sections),
        )
        broker = MatchBroker(client, incarnation, mix, ahead=AHEAD[spec.action_kind])
        policy = BatchedPolicy(
            matches,
            lambda digest: load_snapshot(blobs, digest)[0],
            seed=seed,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
            rivals=RivalSeats(blobs),
        )
        return JoinedEnv(
            client,
            broker,
            SnapshotPublisher(client, blobs, card, live, incarnation),
            game,
            broker,
            policy,
            frame_skip=rules.frame_skip,
            reward_weights=reward_weights(spec, rules.reward, rules.reward_weights),
            live_player=name,
        )
    except BaseException:
        game.close()
        client.close()
        raise


def publish(
    model: BaseAlgorithm, env: JoinedEnv | None = None, *, milestone: bool = False
) -> Player:
    """Freezes the current policy of `model`, and makes it a member of the league with the name
    ``NAME@steps``.

    Args:
        model: the model with the policy.
        env: the environment that joined the league (default: the model's environment).
        milestone: whether to protect the member from being retired.

    Returns:
        The member.

    Raises:
        InvalidInput: `perceptron_of` refuses the policy, or the policy plays another game.
        Fenced: another process has taken the name.
    """
    joined: VecEnv | None = model.get_env() if env is None else env
    while isinstance(joined, VecEnvWrapper):
        joined = joined.venv
    if not isinstance(joined, JoinedEnv):
        raise InvalidInput(
            "the model does not train in a league: make its environment by league_env"
        )
    network = perceptron_of(model.policy)
    spec, config = joined.game.spec, network.config
    mine = (config.observation_size, config.action_size, config.action_kind)
    if mine != (spec.observation_size, spec.action_size, spec.action_kind):
        raise InvalidInput(
            f"the policy sees {mine[0]} numbers and has {mine[1]} {mine[2]}; {spec.name} has "
            f"{spec.observation_size} and {spec.action_size} {spec.action_kind}: train it without "
            "wrappers that change observations or actions"
        )
    scale = _reward_scale(model)
    joined.broker.flush()
    card = joined.publisher.card(model.num_timesteps, scale, joined.progress.metrics())
    card = dataclasses.replace(card, agent=config)
    return joined.publisher.publish(network, card, milestone)


class PublishEvery(BaseCallback):
    """Publishes the model every `steps` steps. When training ends, it publishes the model as a
    milestone, which is never retired.
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self._published = 0

    def _on_training_start(self) -> None:
        self._published = self.num_timesteps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:  # between two updates, so the weights don't change
        if self.num_timesteps // self.steps > self._published // self.steps:
            publish(self.model)
            self._published = self.num_timesteps

    def _on_training_end(self) -> None:
        publish(self.model, milestone=True)


def _reward_scale(model: BaseAlgorithm) -> float:
    """Returns the number by which the rewards were divided. Raises `InvalidInput` if `VecNormalize`
    also normalised the observations.
    """
    normalised: VecNormalize | None = model.get_vec_normalize_env()
    if normalised is None or not (normalised.norm_obs or normalised.norm_reward):
        return 1.0
    if normalised.norm_obs:
        raise InvalidInput(
            "the policy was trained on normalised observations, which the league does not show: "
            "use VecNormalize(env, norm_obs=False); observations are in [-1, 1] without it"
        )
    return float(np.sqrt(normalised.ret_rms.var + normalised.epsilon))
