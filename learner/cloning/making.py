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
from league.games.base import EXTERNAL
from league.games.settings import GameSettings
from league.replay import Contender, Recipe
from league.runs.blobs import BlobFolder
from learner.cloning.demonstrations import demonstrations, read_replays
from learner.cloning.settings import CloningSettings
from learner.cloning.training import marginal_log_loss, new_network, split, train


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
    """Learns from the replays and saves the snapshot.

    The same request gives the same file on one device and one thread.

    Args:
        request: what to clone.
        blobs: where the snapshot goes.
        device: where to learn.
        progress: called with a line for each step.
    """
    game, settings, spec = request.game, request.cloning, request.game.spec()
    replays = read_replays(request.replays, game)
    found = demonstrations(replays, request.seat, frame_skip=game.frame_skip)
    learnt, held_out = split(found, settings.seed)
    marginal = marginal_log_loss(learnt, held_out)
    progress(
        f"{request.seat}: {len(learnt)} matches ({sum(map(len, learnt)):,} decisions) to learn "
        f"from, {len(held_out)} held out; key rates alone cost {marginal:.3f} nats a decision"
    )
    config = AgentConfig.of(request.agent, spec)
    network = new_network(config, learnt, settings.seed).to(device)
    metrics = {
        "matches": float(len(found)),
        "decisions": float(sum(map(len, found))),
        "marginal_log_loss": marginal,
    }
    for epoch in train(network, learnt, held_out, settings):
        progress(
            f"pass {epoch.number} of {settings.epochs} at most, {epoch.seconds:.0f} s: loss "
            f"{epoch.loss:.3f}, held out {epoch.held_out:.3f}{' (best)' * epoch.is_best}"
        )
        if epoch.is_best:
            metrics |= {"log_loss": epoch.loss, "held_out_log_loss": epoch.held_out}
    if request.matches and request.seat in (bot.name for bot in spec.bots):
        metrics |= _play_original(network.cpu(), request, progress)
    card = SnapshotCard(
        agent=config,
        game=spec.name,
        game_version=spec.version,
        frame_skip=game.frame_skip,
        role="clone",
        cloned_from=request.seat,
        seed=settings.seed,
        reward_preset=game.reward,
        config_hash=request.config_hash,
        metrics=metrics,
    )
    return Clone(save_snapshot(blobs, network, card), card)


def _play_original(
    network: AgentNetwork, request: CloneRequest, progress: Callable[[str], None]
) -> dict[str, float]:
    """Plays the clone, sampled, against the bot that it was cloned from, seats swapped."""
    game, name = request.game, request.seat
    frozen = copy.deepcopy(network).requires_grad_(False).eval()
    clone, original = Contender(name="the clone", digest="clone"), Contender(name=name)
    bots = (EXTERNAL, game.spec().bot_index(name))
    replays = play_bouts(
        Recipe.of(game),
        paired(clone, original, bots, request.matches, seed=0),
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
