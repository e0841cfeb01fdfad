"""Who must not be lost: the snapshots in the support of the league's Nash mixture, which retire
last.

A snapshot with mass there has something that nobody else answers: without it, the league forgets
how to beat somebody (`league.stats.structure.nash`). An old one that all others beat has none.
Found from the clean matches of the active players once a lineage has `max_saved` snapshots, so that
the next one makes another retire; kept in the log as an event, so that who retires is the same
after a restart.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from league.ids import SnapshotName
from league.players import Book, Event, Player, PlayerKind, PlayerState
from league.stats.ratings import RatingTable
from matchmaker.state.clean_table import clean_table

if TYPE_CHECKING:
    from matchmaker.state.league import League

EVENT = "nash_support"
FIRST_MATCHES = 200
"""Clean matches before which nobody's payoff is known well enough."""
GROWTH = 1.1
"""By how much the clean matches have grown when it is looked for again."""
MOST_PLAYERS = 500
"""That are compared, the newest ones: where half of them have mass, 500 take 1.7 s, and 1,000
take 27.
"""
MASS = 1e-6
"""What is less is rounding."""


@dataclass(frozen=True)
class Support:
    """Snapshots with mass in the mixture of the event at `position`, found from so many clean
    matches.
    """

    position: int = 0
    matches: int = 0
    names: frozenset[str] = frozenset()


NO_SUPPORT = Support()


def newest_support(events: Iterable[Event]) -> Support:
    """The one in force after these events."""
    told = list(events)
    if not told:
        return NO_SUPPORT
    data = json.loads(told[-1].data_json)
    return Support(told[-1].position, data["matches"], frozenset(data["names"]))


def first_to_retire(snapshots: Sequence[Player], support: Support) -> list[Player]:
    """Of one lineage in order of registration: the oldest first, milestones and the newest
    never, and those in the support behind all others (kept for good, they could be more than a
    lineage may have).
    """
    old = [player for player in snapshots[:-1] if not player.milestone]
    return sorted(old, key=lambda player: player.name in support.names)


def supporting(players: Iterable[Player], table: RatingTable) -> list[str]:
    """Names of the active snapshots with mass, among all active snapshots and the bots that are no
    secret.

    Args:
        table: the eval book's; it is only read.
    """
    # these load scipy, which takes half a second
    from league.stats.structure.nash import nash_averaging
    from league.stats.structure.table import margins

    rated = {
        player.name: player for player in players if _is_played(player) and table.has(player.name)
    }
    names = list(rated)[-MOST_PLAYERS:]
    if not names:
        return []
    found = nash_averaging(margins(clean_table(names, table).chance_NN))
    return [
        name
        for name, mass in zip(names, found.mass_N, strict=True)
        if mass > MASS and rated[name].kind is PlayerKind.SNAPSHOT
    ]


def _is_played(player: Player) -> bool:
    kinds = (PlayerKind.SNAPSHOT, PlayerKind.BOT)
    return player.kind in kinds and player.state is PlayerState.ACTIVE and not player.held_out


def is_due(last: Support, matches: int, players: Iterable[Player], max_saved: int) -> bool:
    """Whether a lineage is full, and there are enough new clean matches."""
    if matches < max(FIRST_MATCHES, GROWTH * last.matches):
        return False
    active = Counter(
        SnapshotName.parse(player.name).lineage
        for player in players
        if player.kind is PlayerKind.SNAPSHOT and player.state is PlayerState.ACTIVE
    )
    return max(active.values(), default=0) >= max_saved


def look(league: League) -> bool:
    """Finds the support anew when that is due; returns whether it did.

    The matchmaker answers meanwhile: only a look at the players and the write take its lock.
    """
    view = league.view
    if view.is_behind:
        return False
    with view.lock:
        table, last, players = view.tables[Book.EVAL], view.support, list(view.players.values())
        matches = table.games
    if not is_due(last, matches, players, league.settings.max_saved):
        return False
    names = supporting(players, table)
    text = f"{len(names)} snapshots are in the support of the Nash mixture, and retire behind all others"
    with league.store.write() as tx:
        event = league.event(EVENT, text, {"matches": matches, "names": names})
        position = league.log_all(tx, [event])
        found = Support(position, matches, frozenset(names))
        tx.after_commit(lambda: view.set_support(found))
    return True
