"""Anchors: players whose rating an operator puts somewhere, where it stays."""

from __future__ import annotations

import math

from league.errors import InvalidInput, NotFound
from league.players import Book, PlayerKind
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

FARTHEST = 1000.0
"""Points an anchor may lie from 0: a newcomer has 25, and learners stay within a few dozen of
it.
"""


def pin(league: League, tx: Transaction, name: str, mu: float | None, by: str) -> int:
    """Pins a player at `mu` points in every book, or unpins it if `mu` is None.

    Returns:
        The log position after which it holds.
    """
    checks.text(by, "by", checks.MAX_NAME)
    player = league.view.players.get(name)
    if player is None:
        raise NotFound(
            f"there is no player {name[: checks.MAX_NAME]!r} to pin: `bin/league players` lists them"
        )
    position = tx.positions()[0]
    who = f"{by} " if by else ""
    if mu is None:
        if name not in league.view.tables[Book.EVAL].anchors():
            raise InvalidInput(f"{name} is not pinned: `bin/league pin` lists those that are")
        words = (
            f"{who}lets {name} go from log position {position + 1} on: it is rated by its results"
        )
        league.log(tx, "rating_unpinned", words, player=name, by=by)
        return position
    if player.kind is PlayerKind.LIVE:
        raise InvalidInput(
            f"{name} learns, so its rating can't stay anywhere: pin one of its snapshots"
        )
    if not (math.isfinite(mu) and abs(mu) <= FARTHEST):
        raise InvalidInput(
            f"mu = {mu} is no rating: give points from {-FARTHEST:g} to {FARTHEST:g}"
        )
    words = f"{who}pins {name} at {mu:.2f} points from log position {position + 1} on"
    league.log(tx, "rating_pinned", words, player=name, mu=mu, by=by)
    return position
