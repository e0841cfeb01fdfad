"""A short piece of real training: the main job's own parts on fewer matches, watched closely.

Shape suffixes: X rows of history and rollout, T steps, B matches, O observation.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from league.agent.batched_policy import BatchedPolicy
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role
from learner.doctor.network_evidence import NetworkEvidence, look_at_network, policy_distance
from learner.doctor.setup import SetUp
from learner.ppo.league_ppo import LeaguePPO
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.settings import LearnerSettings
from learner.train.assembly import SessionSettings, make_model

UPDATES = 5
LIVE = "main"


@dataclass(frozen=True, kw_only=True)
class UpdateLog:
    """What one update of the probe logged."""

    kl: float
    clip_fraction: float
    entropy: float
    explained_variance: float
    gradient_norm: float
    value_loss: float
    minibatches: int


@dataclass(frozen=True, kw_only=True)
class ProbeEvidence:
    """What a short training showed.

    Attributes:
        learner: the settings it ran with: those of the set-up on fewer matches. updates: logs in
        order; fewer than `UPDATES` when `fault` stopped it. fault: the sentence with which an
        update was refused; empty when none was. planned_minibatches: minibatches of an update that
        is not cut short. value_spread, target_spread: standard deviations of values and of their
        targets, last rollout. network: gradients, sensitivities and resets on the first rollout.
        moved: KL divergence of the last policy from the first, on the last rollout.
    """

    learner: LearnerSettings
    updates: tuple[UpdateLog, ...]
    fault: str
    planned_minibatches: int
    value_spread: float
    target_spread: float
    network: NetworkEvidence | None
    moved: float


def probe(set_up: SetUp, updates: int = UPDATES) -> ProbeEvidence:
    """Trains for a few updates against the mix's bots, on the CPU; seconds with the tiny agent."""
    settings = _smaller(set_up)
    with tempfile.TemporaryDirectory(prefix="kumite-doctor-") as folder:
        model = build_model(set_up, settings, Path(folder))
        try:
            watch = _Watch(model)
            fault = _train(model, watch, updates)
            return _evidence(set_up, settings.learner, model, watch, fault)
        finally:
            model.env.game.close()


def _smaller(set_up: SetUp) -> SessionSettings:
    """The settings on few enough matches and steps for a look, with as many minibatches where
    that goes.
    """
    learner = set_up.settings.learner
    tiny = set_up.settings.agent.size == "tiny"
    matches, steps = (
        min(learner.matches, 64 if tiny else 8),
        min(learner.n_steps, 32 if tiny else 16),
    )
    minibatches = max(1, learner.matches * learner.n_steps // learner.batch_size)
    sequences = max(1, matches // min(minibatches, matches))
    epochs = learner.n_epochs if tiny else min(learner.n_epochs, 2)
    changed = {
        "matches": matches,
        "n_steps": steps,
        "batch_size": sequences * steps,
        "n_epochs": epochs,
    }
    return replace(set_up.settings, learner=learner.model_copy(update=changed))


def build_model(set_up: SetUp, settings: SessionSettings, folder: Path) -> LeaguePPO:
    """The main job's algorithm on an environment of its own, with the set-up's game and network."""
    learner = settings.learner
    env = make_environment(set_up, learner.matches, learner.seed)
    device = torch.device("cpu")
    return make_model(settings, set_up.agent, env, folder, device, lambda: False, set_up.network)


def make_environment(set_up: SetUp, matches: int, seed: int) -> LeagueVecEnv:
    """Matches against the set-up's bots, for a network that is set as the batched policy's live one
    later.
    """
    game = set_up.game(matches)
    spec = game.spec
    batched_policy = BatchedPolicy(
        matches,
        no_snapshot,
        seed=seed + 1,
        action_size=spec.action_size,
        action_kind=spec.action_kind,
    )
    return set_up.environment(
        game,
        BotMatches(spec.name, set_up.opponents, seed),
        batched_policy,
        frame_skip=set_up.settings.game.frame_skip,
        reward_weights=set_up.weights_K,
        live_player=LIVE,
    )


def no_snapshot(digest: str) -> AgentNetwork:
    """The doctor's matches are against bots: weights are never asked for."""
    raise LeagueError(f"the doctor's matches have no snapshots, and {digest} was asked for")


class BotMatches:
    """Endless matches against the named bots in turn, on either seat; against itself when there
    are none.
    """

    def __init__(self, game: str, bots: Iterable[str], seed: int) -> None:
        self._live = Player(name=LIVE, game=game, kind=PlayerKind.LIVE, role=Role.MAIN)
        named = [Player(name=name, game=game, kind=PlayerKind.BOT) for name in bots]
        self._opponents, self._numbers, self._seed = named or [self._live], count(), seed
        self.results: list[MatchResult] = []

    def take(self) -> Assignment:
        number = next(self._numbers)
        opponent = self._opponents[number // 2 % len(self._opponents)]
        seat = number % 2
        return Assignment(
            match_id=f"doctor-{number}",
            ordinal=number,
            lease_token="",
            lease_deadline=0.0,
            seats=(self._live, opponent) if seat == 0 else (opponent, self._live),
            learner_seat=seat,
            book=Book.TRAIN,
            seed=self._seed + 31 * number,
            category=opponent.name,
        )

    def report(self, result: MatchResult) -> None:
        self.results.append(result)


class _Watch(BaseCallback):
    """Reads the logs between updates, and looks at the network after the first rollout."""

    def __init__(self, model: LeaguePPO) -> None:
        super().__init__()
        self.logs: list[UpdateLog] = []
        self.network: NetworkEvidence | None = None
        self.first: AgentNetwork | None = None
        self._minibatches = 0

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self.read_update()

    def read_update(self) -> None:
        """Takes in the update that was made last, if one was."""
        model: LeaguePPO = self.model  # type: ignore[assignment]
        values, made = model.logger.name_to_value, model._n_updates - self._minibatches
        if not made or "policy/approx_kl" not in values:
            return
        self._minibatches = model._n_updates
        self.logs.append(
            UpdateLog(
                kl=values["policy/approx_kl"],
                clip_fraction=values["policy/clip_fraction"],
                entropy=values["policy/entropy"],
                explained_variance=values["value/explained_variance"],
                gradient_norm=values["learning/gradient_norm"],
                value_loss=values["loss/value"],
                minibatches=made,
            )
        )

    def _on_rollout_end(self) -> None:
        model: LeaguePPO = self.model  # type: ignore[assignment]
        model.env.finished = []
        if self.network is None:
            self.first = copy.deepcopy(model.policy.network)
            self.network = look_at_network(model)


def _train(model: LeaguePPO, watch: _Watch, updates: int) -> str:
    """Runs the updates; returns the sentence of the fault that ended them, or nothing."""
    try:
        model.learn(updates * model.n_envs * model.n_steps, callback=watch)
    except (LeagueError, ValueError) as error:
        return str(error).splitlines()[0]
    finally:
        if hasattr(watch, "model"):  # it never was where the first reset failed
            watch.read_update()
    return ""


def _evidence(
    set_up: SetUp, learner: LearnerSettings, model: LeaguePPO, watch: _Watch, fault: str
) -> ProbeEvidence:
    buffer = model.buffer
    with np.errstate(all="ignore"):
        values, targets = (float(x.std()) for x in (buffer.value_TN, buffer.target_TN))
    return ProbeEvidence(
        learner=learner,
        updates=tuple(watch.logs),
        fault=fault,
        planned_minibatches=learner.n_epochs
        * -(-learner.matches * learner.n_steps // learner.batch_size),
        value_spread=values,
        target_spread=targets,
        network=watch.network,
        moved=0.0 if watch.first is None or fault else policy_distance(model, watch.first),
    )
