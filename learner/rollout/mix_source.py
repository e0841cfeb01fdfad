"""Draws matches of an opponent mix without a matchmaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from league.games.base import GameSpec
from league.players import Assignment, Book, MatchResult, Player, PlayerKind


class MixSource:
    """Draws endless matches from an opponent mix without a matchmaker.

    Each draw chooses a category by weight, and then a player of the category with equal
    probabilities. Categories without players (such as exploiters and clones) are left out. If all
    categories are empty, the learner plays against itself.

    Args:
        mix: weight of each category. A bot's or a snapshot's name is a category of its own.
        spec: the game, with its bots.
        live: the learner.
        snapshots: frozen players of the category `snapshots`.
        seed: seed of the draws.
        matches_per_draw: number of consecutive matches against an opponent before another opponent
            is drawn.
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
        players |= {snapshot.name: [snapshot] for snapshot in snapshots}
        drawn = [name for name, weight in mix.items() if weight > 0 and players.get(name)]
        self._groups = {name: players[name] for name in drawn or ["self"]}
        weights = np.array([mix[name] for name in drawn] or [1.0])
        self._shares = weights / weights.sum()
        self._live, self._opponent, self._category = live, live, ""
        self._matches_per_draw = matches_per_draw
        self._rng = np.random.default_rng(seed)
        self._drawn = 0
        self.failed = ""
        """Why the last failed match failed."""

    def take(self) -> Assignment:
        """Draws the next match."""
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
        """Keeps the reason if the match failed."""
        if result.failed:
            self.failed = result.failure

    def hand_back(self, assignment: Assignment) -> None:
        """Does nothing, because drawn matches are not counted."""
