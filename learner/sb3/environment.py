"""An environment whose matches a league assigns, and to which it reports them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm

from league.agent.batched_policy import BatchedPolicy
from league.agent.perceptron import PerceptronConfig
from league.agent.snapshot import SnapshotCard, load_snapshot
from league.errors import InvalidInput, InvalidName, LeagueError, Refused
from league.games.registry import reward_weights
from league.games.settings import GameSettings
from league.ids import SnapshotName
from league.players import Assignment, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.security.credentials import of_run
from league.settings.base import Sections, resolve, sections_hash
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.rollout.source import MatchBroker, matches_ahead
from learner.sb3.policy import perceptron_of
from learner.train.join import live_player, register_players
from learner.train.metrics import Progress
from learner.train.snapshots import SnapshotPublisher

BEAT_SECONDS = 0.5
"""Between two words to the league about how far it is."""


class JoinedEnv(LeagueVecEnv):
    """The matches of one player that learns here, its results reported under its name.

    `league_env` makes it. Leave it by `close`, or use it in a `with` block: matches that were not
    played are handed back.
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
        self.client, self.broker, self.publisher = client, broker, publisher
        self.progress = Progress(0, self.game.spec.frames_per_second)
        self._told_at = 0.0

    def __enter__(self) -> JoinedEnv:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict]]:
        after = super().step_wait()
        self.progress.add(self.finished)
        if time.monotonic() - self._told_at > BEAT_SECONDS:
            self.tell()
        return after

    def tell(self) -> None:
        """Tells the league how far it is: leases live on while frames are played."""
        self._told_at = time.monotonic()
        busy = {
            "game": self.game_seconds,
            "opponents": self.opponents_seconds,
            "waiting": self.broker.waiting_seconds,
        }
        self.progress.mark(self.learner_step, self.frames_played, busy)
        self.broker.beat(self.frames_played, self.learner_step, "rollout", self.progress.metrics())

    def follow(self, model: BaseAlgorithm) -> None:
        """Lets `model`'s newest weights play where the mix has the learner meet itself (category
        `self`).

        Also takes over how many steps a model that was loaded has behind it.
        """
        network = perceptron_of(model.policy)
        if network.device != self.opponent_policy.device:
            raise InvalidInput(
                f"the model is on {network.device}, its opponents on {self.opponent_policy.device}: "
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
        """Hands back what was not played and leaves the league. Twice is fine."""
        with contextlib.suppress(LeagueError):  # what ended the training must not be hidden by this
            self.tell()
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
    """Joins the league at `address` as the live player `name`, and gives its matches as a `VecEnv`.

    Args:
        address: HOST:PORT of a matchmaker that runs. A token that it wants is the run's own
        (`run_dir`), or
            that of the environment (docs/security.md).
        run_dir: the run's folder: weights of opponents are read from its `blobs`, ours are written
        there;
            its `config.toml` has the game, unless `preset` names one (without either: laptop).
        name: of the player; another process that joins by the same name takes its place. matches:
        played at once. mix: which opponents it meets, one of [matchmaker.mixes]. settings: as
        `--set`: "game.frame_skip=4", "game.reward=sparse", … seed: of what the opponents draw.
        goes_on: whether the model that trains here is the newest one of this name. If not, earlier
        results
            of the name stay in the log and no longer count in its live rating.

    Raises `ConfigError` for settings that can't be used, `Unavailable` when no matchmaker answers.
    """
    sections = _sections(Path(run_dir), preset, settings)
    rules = sections.of(GameSettings)
    weights_K = reward_weights(rules.spec(), rules.reward, rules.reward_weights)
    blobs = BlobFolder(Path(run_dir) / "blobs")
    client = MatchmakerClient(address, credentials=of_run(Path(run_dir), "worker"))
    game = rules.make(matches)
    try:
        live = live_player(name, game)
        register_players(client, live, game)
        counted = client.status().log_position if goes_on else 0
        incarnation = client.open_incarnation(
            live.creator, name, checkpoint_log_position=counted
        ).number
        card = _card(
            rules, live, seed, _newest_of(client, name) if goes_on else "", sections_hash(sections)
        )
        batched_policy = BatchedPolicy(
            matches,
            lambda digest: load_snapshot(blobs, digest)[0],
            seed=seed,
            action_size=game.spec.action_size,
            action_kind=game.spec.action_kind,
        )
        return JoinedEnv(
            client,
            broker := MatchBroker(
                client, incarnation, mix, ahead=matches_ahead(game.spec.action_kind)
            ),
            SnapshotPublisher(client, blobs, card, live, incarnation),
            game,
            broker,
            batched_policy,
            frame_skip=rules.frame_skip,
            reward_weights=weights_K,
            live_player=name,
        )
    except BaseException:
        game.close()
        client.close()
        raise


def _sections(run_dir: Path, preset: str | None, settings: Sequence[str]) -> Sections:
    """As `bin/learner` reads them: a preset that is named, else the run's own file, else laptop."""
    file = run_dir / "config.toml"
    if preset is not None or not file.is_file():
        return resolve(preset or "laptop", None, settings)
    return resolve(None, file, settings)


def _card(
    rules: GameSettings, live: Player, seed: int, parent: str, config_hash: str
) -> SnapshotCard:
    """What all snapshots of this player have in common; its network is that of the policy that
    is frozen.
    """
    spec = rules.spec()
    return SnapshotCard(
        agent=PerceptronConfig(
            observation_size=spec.observation_size,
            action_size=spec.action_size,
            action_kind=spec.action_kind,
        ),
        game=spec.name,
        game_version=spec.version,
        frame_skip=rules.frame_skip,
        parent=parent,
        role=live.role.value,
        seed=seed,
        reward_preset=rules.reward,
        config_hash=config_hash,
    )


def _newest_of(client: MatchmakerClient, name: str) -> str:
    """The newest snapshot of the player, "" when it has none."""
    own = [p for p in client.players(kinds=[PlayerKind.SNAPSHOT]) if _lineage(p.name) == name]
    return max(own, key=lambda player: player.step).name if own else ""


def _lineage(name: str) -> str:
    try:
        return SnapshotName.parse(name).lineage
    except InvalidName:
        return name
