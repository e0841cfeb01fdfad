"""Makes a clone: replays in, a snapshot with its card out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.agent.recorded_matches import paired, play_bouts
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import ConfigError
from league.games.base import EXTERNAL
from league.games.settings import GameSettings
from league.replay import Contender, Recipe
from league.runs.blobs import BlobFolder
from learner.cloning.baseline import marginal_log_loss
from learner.cloning.demonstrations import Demonstration, demonstrations, read_replays
from learner.cloning.settings import CloningSettings
from learner.cloning.training import new_network, split, train


@dataclass(frozen=True, kw_only=True)
class CloneRequest:
    """What to clone, and how. `matches` are played at the end against a cloned bot, 0 for none."""

    replays: Path
    seat: str
    game: GameSettings
    agent: AgentSettings
    cloning: CloningSettings
    matches: int = 200
    config_hash: str = ""


@dataclass(frozen=True)
class Clone:
    """A frozen clone: the digest of its weights, and its card."""

    digest: str
    card: SnapshotCard


def make_clone(
    request: CloneRequest, blobs: BlobFolder, device: torch.device, progress: Callable[[str], None]
) -> Clone:
    """Learns from the replays and saves the snapshot; `progress` is told a line now and then.

    The same request gives the same file on one device and one thread.
    """
    game = request.game
    if request.agent.history_stride != game.frame_skip:
        raise ConfigError(
            f"agent.history_stride is {request.agent.history_stride} and game.frame_skip {game.frame_skip}: "
            "the history gets one entry a decision, so set both to the same number of frames"
        )
    replays = read_replays(request.replays, game)
    found = demonstrations(
        replays, request.seat, frame_skip=game.frame_skip, key_rule=request.cloning.key_rule
    )
    learnt, held_out = split(found, request.cloning)
    marginal = marginal_log_loss(learnt, held_out)
    progress(_summary(request.seat, learnt, held_out, marginal))
    spec = game.spec()
    config = AgentConfig.of(request.agent, spec)
    network = new_network(config, learnt, request.cloning.seed).to(device)
    metrics = {"matches": float(len(found)), "decisions": float(sum(map(len, found)))}
    metrics |= _learn(network, learnt, held_out, request.cloning, progress) | {
        "marginal_log_loss": marginal
    }
    if request.matches and request.seat in (bot.name for bot in spec.bots):
        metrics |= _against_original(network.cpu(), request, progress)
    card = SnapshotCard(
        agent=config,
        game=spec.name,
        game_version=spec.version,
        frame_skip=game.frame_skip,
        role="clone",
        cloned_from=request.seat,
        seed=request.cloning.seed,
        reward_preset=game.reward,
        config_hash=request.config_hash,
        metrics=metrics,
    )
    return Clone(save_snapshot(blobs, network, card), card)


def _summary(
    seat: str, learnt: list[Demonstration], held_out: list[Demonstration], marginal: float
) -> str:
    steps = sum(map(len, learnt))
    return (
        f"{seat}: {len(learnt)} matches ({steps:,} decisions) to learn from, {len(held_out)} held out; "
        f"knowing nothing but how often it uses each key costs {marginal:.3f} nats a decision"
    )


def _learn(
    network: AgentNetwork,
    learnt: list[Demonstration],
    held_out: list[Demonstration],
    settings: CloningSettings,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """Trains; the losses of the best pass."""
    metrics: dict[str, float] = {}
    for epoch in train(network, learnt, held_out, settings):
        mark = " (best)" if epoch.is_best else ""
        progress(
            f"pass {epoch.number} of {settings.epochs} at most, {epoch.seconds:.0f} s: "
            f"loss {epoch.loss:.3f}, held out {epoch.held_out:.3f}{mark}"
        )
        if epoch.is_best:
            metrics = {"log_loss": epoch.loss, "held_out_log_loss": epoch.held_out}
    return metrics


def _against_original(
    network: AgentNetwork, request: CloneRequest, progress: Callable[[str], None]
) -> dict[str, float]:
    """Plays the clone, sampled, against the bot that it was cloned from, seats swapped."""
    game, name = request.game, request.seat
    frozen = copy.deepcopy(network).requires_grad_(False).eval()
    clone, original = Contender(name="the clone", digest="clone"), Contender(name=name)
    bouts = paired(
        clone, original, (EXTERNAL, game.spec().bot_index(name)), request.matches, seed=0
    )
    replays = play_bouts(
        Recipe.of(game),
        bouts,
        lambda _: frozen,
        frame_skip=game.frame_skip,
        seed=request.cloning.seed,
    )
    outcomes = [r.outcome if r.seats[0] == clone else 1.0 - r.outcome for r in replays]
    wins, draws = outcomes.count(1.0), outcomes.count(0.5)
    score = sum(outcomes) / len(outcomes)
    progress(
        f"against {name} itself, keys sampled, seats swapped: {wins} wins, {draws} draws, "
        f"{len(outcomes) - wins - draws} losses, {100 * score:.1f} % with draws as halves"
    )
    return {"score_against_original": score, "matches_against_original": float(len(outcomes))}
