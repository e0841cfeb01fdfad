"""A league without a matchmaker: bots, and the snapshots that a run would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from league.agent.architectures import network_of
from league.agent.config import AgentConfig
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.games.base import GameSpec
from league.ids import SnapshotName
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role
from league.runs.blobs import BlobFolder
from learner.train.build import SessionSettings

LARGEST_POOL = 2 << 30
"""Bytes of snapshots that are made at most."""


def make_snapshots(folder: Path, settings: SessionSettings, count: int) -> list[Player]:
    """Freezes `count` networks with fresh weights, each from its own seed, as blobs in `folder`.

    Fewer where their files would take more than `LARGEST_POOL` bytes.
    """
    spec, blobs = settings.game.spec(), BlobFolder(folder)
    config = AgentConfig.of(settings.agent, spec)
    made: list[Player] = []
    with torch.random.fork_rng(devices=[]):
        for number in range(1, count + 1):
            torch.manual_seed(settings.learner.seed + number)
            step = number * settings.learner.snapshot_interval
            card = SnapshotCard(
                agent=config,
                game=spec.name,
                game_version=spec.version,
                frame_skip=settings.game.frame_skip,
                step=step,
            )
            digest = save_snapshot(blobs, network_of(config), card)
            made.append(
                Player(
                    name=str(SnapshotName("main", step)),
                    game=spec.name,
                    kind=PlayerKind.SNAPSHOT,
                    role=Role.MAIN,
                    digest=digest,
                    step=step,
                )
            )
            if (number + 1) * blobs.path(digest).stat().st_size > LARGEST_POOL:
                break
    return made


class MixSource:
    """Draws endless matches from an opponent mix without a matchmaker.

    Categories by weight, players within one uniformly, which is what a young league does.
    Categories without players (exploiters, clones) leave their share to the others; without any
    the learner plays itself.

    Args:
        mix: weight of each category.
        spec: the game, with its bots.
        live: the learner.
        snapshots: its frozen ones.
        seed: of the draws.
        matches_per_draw: matches in a row against one drawn opponent.
    """

    def __init__(
        self,
        mix: Mapping[str, float],
        spec: GameSpec,
        live: Player,
        snapshots: Sequence[Player],
        seed: int,
        matches_per_draw: int = 1,
    ) -> None:
        players = {
            bot.name: [Player(name=bot.name, game=spec.name, kind=PlayerKind.BOT)]
            for bot in spec.bots
            if not bot.held_out
        }
        players |= {"self": [live], "snapshots": list(snapshots)}
        drawn = [name for name, weight in mix.items() if weight > 0 and players.get(name)]
        self._groups = {name: players[name] for name in drawn or ["self"]}
        weights = np.array([mix[name] for name in drawn] or [1.0])
        self._shares = weights / weights.sum()
        self._live, self._opponent, self._category = live, live, ""
        self._matches_per_draw = matches_per_draw
        self._rng = np.random.default_rng(seed)
        self._drawn = 0
        self.failed = ""
        """What went wrong in the last match that failed."""

    def take(self) -> Assignment:
        """The next match."""
        if self._drawn % self._matches_per_draw == 0:
            self._category = list(self._groups)[self._rng.choice(len(self._shares), p=self._shares)]
            group = self._groups[self._category]
            self._opponent = group[self._rng.integers(len(group))]
        opponent, seat = self._opponent, int(self._rng.integers(2))
        self._drawn += 1
        return Assignment(
            match_id=f"drawn-{self._drawn}",
            ordinal=self._drawn,
            lease_token="",
            lease_deadline=0.0,
            seats=(self._live, opponent) if seat == 0 else (opponent, self._live),
            learner_seat=seat,
            book=Book.TRAIN,
            seed=int(self._rng.integers(1 << 62)),
            category=self._category,
        )

    def report(self, result: MatchResult) -> None:
        """Keeps what went wrong."""
        if result.failed:
            self.failed = result.failure
