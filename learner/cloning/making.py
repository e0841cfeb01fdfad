"""Makes a clone: replays in, a snapshot with its card out."""

from __future__ import annotations

import copy
from collections.abc import Callable
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
from league.settings.base import Sections, sections_hash
from learner.cloning.demonstrations import demonstrations, read_replays
from learner.cloning.settings import CloningSettings
from learner.cloning.training import marginal_log_loss, new_network, split, train


def make_clone(
    replays: Path,
    seat: str,
    sections: Sections,
    blobs: BlobFolder,
    device: torch.device,
    *,
    matches: int = 200,
    progress: Callable[[str], None] = print,
) -> tuple[str, SnapshotCard]:
    """Learns from replays to play as `seat` did, and saves the snapshot.

    The same replays and settings give the same file on one device and one thread.

    Args:
        replays: their folder.
        seat: the player to clone, as the replays name it.
        sections: settings; [game], [agent] and [cloning] count.
        blobs: where the snapshot goes.
        device: where to learn.
        matches: played at the end against a cloned bot, 0 for none.
        progress: called with a line for each step.

    Returns:
        The digest of the weights, and the card.
    """
    game, settings = sections.of(GameSettings), sections.of(CloningSettings)
    spec = game.spec()
    found = demonstrations(read_replays(replays, game), seat, frame_skip=game.frame_skip)
    learnt, held_out = split(found, settings.seed)
    marginal = marginal_log_loss(learnt, held_out)
    progress(
        f"{seat}: {len(learnt)} matches ({sum(map(len, learnt)):,} decisions) to learn "
        f"from, {len(held_out)} held out; key rates alone cost {marginal:.3f} nats a decision"
    )
    config = AgentConfig.of(sections.of(AgentSettings), spec)
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
    if matches and seat in (bot.name for bot in spec.bots):
        original = (Contender(name=seat), spec.bot_index(seat))
        metrics |= _play_original(network.cpu(), game, original, matches, settings.seed, progress)
    card = SnapshotCard(
        agent=config,
        game=spec.name,
        game_version=spec.version,
        frame_skip=game.frame_skip,
        role="clone",
        cloned_from=seat,
        seed=settings.seed,
        reward_preset=game.reward,
        config_hash=sections_hash({name: sections[name] for name in ("game", "agent", "cloning")}),
        metrics=metrics,
    )
    return save_snapshot(blobs, network, card), card


def _play_original(
    network: AgentNetwork,
    game: GameSettings,
    original: tuple[Contender, int],
    matches: int,
    seed: int,
    progress: Callable[[str], None],
) -> dict[str, float]:
    """Plays the clone, sampled, against the bot that it was cloned from, seats swapped."""
    frozen = copy.deepcopy(network).requires_grad_(False).eval()
    clone, (bot, index) = Contender(name="the clone", digest="clone"), original
    replays = play_bouts(
        Recipe.of(game),
        paired(clone, bot, (EXTERNAL, index), matches, seed=0),
        lambda _: frozen,
        frame_skip=game.frame_skip,
        seed=seed,
    )
    outcomes = [r.outcome if r.seats[0] == clone else 1.0 - r.outcome for r in replays]
    wins, draws = outcomes.count(1.0), outcomes.count(0.5)
    score = sum(outcomes) / len(outcomes)
    progress(
        f"against {bot.name} itself, keys sampled, seats swapped: {wins} wins, {draws} draws, "
        f"{len(outcomes) - wins - draws} losses, {100 * score:.1f} % with draws as halves"
    )
    return {"score_against_original": score, "matches_against_original": float(len(outcomes))}
