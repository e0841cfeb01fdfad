"""The fit of all games for the terminal's leaderboard, found anew as far as it costs little."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from league.players import Book, Rating
from league.rpc.client import MatchmakerClient

if TYPE_CHECKING:
    from league.stats.ratings.cross_check import CrossCheck

MOST_PLAYERS = 500
"""Rated players up to which it is looked for: a fit of more takes longer than a look at the
league may.
"""
FIT_EVERY = 30
"""It takes at most this part of the time: learners want the machine's cores."""


class OpinionReader:
    """Keeps the newest opinion; what it says of a player stays until there is another."""

    def __init__(self) -> None:
        self._matches = 0
        self._next_at = 0.0
        self._found: CrossCheck | None = None

    def read(
        self, client: MatchmakerClient, ratings: tuple[Rating, ...], *, now: bool = False
    ) -> CrossCheck | None:
        """Of the clean matches; None before the first ones, and of a league that is too large.

        Args:
            ratings: the eval book's.
            now: whether it must be the newest, however long that takes.
        """
        matches = sum(rating.games for rating in ratings)
        if not matches or len(ratings) > MOST_PLAYERS:
            return None
        began = time.monotonic()
        if matches != self._matches and (now or began >= self._next_at):
            from league.stats.ratings.cross_check import (
                cross_check,  # it loads scipy, which takes half a second
            )

            self._found = cross_check(ratings, client.payoff(Book.EVAL))
            self._matches = matches
            took = time.monotonic() - began
            self._next_at = began + FIT_EVERY * took
        return self._found
