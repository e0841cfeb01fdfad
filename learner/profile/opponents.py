"""The league that a profile plays against: bots, and as many frozen snapshots as a run would
come to hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from league.agent.architectures import network_of
from league.agent.config import AgentConfig
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.errors import ConfigError
from league.games.base import GameSpec
from league.ids import SnapshotName
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role
from league.runs.blobs import BlobFolder
from learner.train.assembly import SessionSettings

LARGEST_POOL = 2 << 30
"""Bytes of snapshots that are made for a profile at most."""


def snapshots_of_a_run(sections: Mapping[str, Mapping[str, Any]]) -> int:
    """How many snapshots the league of a whole run holds at its end."""
    learner, matchmaker = sections["learner"], sections["matchmaker"]
    return max(1, min(matchmaker["max_saved"], learner["steps"] // learner["snapshot_interval"]))


def make_snapshots(folder: Path, settings: SessionSettings, count: int) -> list[Player]:
    """Freezes `count` networks with fresh weights, each of its own seed, as files that the batched policy
    loads.

    Fewer where their files would take more than `LARGEST_POOL` bytes.
    """
    spec = settings.game.spec()
    config = AgentConfig.of(settings.agent, spec)
    blobs = BlobFolder(folder)
    made: list[Player] = []
    with torch.random.fork_rng(devices=[]):
        for number in range(count):
            torch.manual_seed(settings.learner.seed + 1 + number)
            step = (number + 1) * settings.learner.snapshot_interval
            card = SnapshotCard(
                agent=config,
                game=spec.name,
                game_version=spec.version,
                frame_skip=settings.game.frame_skip,
                step=step,
            )
            digest = save_snapshot(blobs, network_of(config), card)
            made.append(_snapshot(spec, digest, step))
            size = blobs.path(digest).stat().st_size
            if (len(made) + 1) * size > LARGEST_POOL:
                break
    return made


def _snapshot(spec: GameSpec, digest: str, step: int) -> Player:
    return Player(
        name=str(SnapshotName("main", step)),
        game=spec.name,
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        digest=digest,
        step=step,
    )


def opponents_by_category(
    mix: Mapping[str, float], spec: GameSpec, live: Player, snapshots: Sequence[Player]
) -> dict[str, list[Player]]:
    """Who may be drawn under each category of `mix` that has players and a weight; self-play when
    none has.

    Exploiters, clones and references are none yet: their share goes to the others, as in a young
    league.
    """
    bots = {
        bot.name: Player(name=bot.name, game=spec.name, kind=PlayerKind.BOT)
        for bot in spec.bots
        if not bot.held_out
    }
    groups: dict[str, list[Player]] = {}
    for category, weight in mix.items():
        if category == "self":
            found = [live]
        elif category == "snapshots":
            found = list(snapshots)
        else:
            found = [bots[category]] if category in bots else []
        if found and weight > 0:
            groups[category] = found
    return groups or {"self": [live]}


class MixSource:
    """Draws matches from an opponent mix without a matchmaker, and without end.

    Categories by weight, players within one uniformly: what a run gets before results weigh in.
    `matches_per_draw` matches in a row have one opponent, as under `matchmaker.matches_per_draw`.
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
        self._live, self._opponent, self._category = live, live, ""
        self._matches_per_draw = matches_per_draw
        self._groups = opponents_by_category(mix, spec, live, snapshots)
        weights = np.array([mix.get(category, 1.0) for category in self._groups])
        self._shares = weights / weights.sum()
        self._rng = np.random.default_rng(seed)
        self._drawn = 0
        self.ended = 0
        """Matches reported so far."""
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
            match_id=f"profile-{self._drawn}",
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
        """Counts the match."""
        self.ended += 1
        if result.failed:
            self.failed = result.failure


def mix_of(
    sections: Mapping[str, Mapping[str, Any]], settings: SessionSettings
) -> dict[str, float]:
    """The mix of the curriculum's last stage, in which most of a run is played."""
    name = settings.curriculum.stages[-1].mix
    mixes: dict[str, dict[str, float]] = sections["matchmaker"]["mixes"]
    if name not in mixes:
        raise ConfigError(
            f"the curriculum's last stage plays the mix {name!r}, which [matchmaker.mixes] lacks: it has "
            f"{', '.join(sorted(mixes))}"
        )
    return mixes[name]
