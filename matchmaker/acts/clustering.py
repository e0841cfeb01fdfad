"""Near-copies share weight: whose payoff rows are alike, found now and then and kept in the log.

Found from the clean matches of the active snapshots (`league.stats.structure.clusters`), never per
draw. Each clustering is an event of the log, and every draw names the one in force, so that it can
be made again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from league.players import Book, Event, Player, PlayerKind, PlayerState
from league.stats.ratings import RatingTable
from matchmaker.state.clean_table import clean_table

if TYPE_CHECKING:
    from matchmaker.state.league import League

EVENT = "clusters"
FIRST_MATCHES = 200
"""Clean matches before which nobody is known well enough to be a copy."""
GROWTH = 1.1
"""By how much the clean matches have grown when the next clustering is due."""
MOST_PLAYERS = 3000
"""Snapshots that are compared, the newest ones: more would take gigabytes."""


@dataclass(frozen=True)
class Clustering:
    """Near-copies by name.

    Attributes:
        position: of its event in the log, 0 for none.
        matches: clean ones that it was found from.
        within: how near they are.
    """

    position: int = 0
    matches: int = 0
    within: float = 0.0
    cluster: Mapping[str, int] = field(default_factory=dict)

    def parts(self, names: Sequence[str]) -> list[float]:
        """What each of `names` has of one player's weight: 1 by itself, ½ beside one near-copy."""
        if not self.cluster:
            return [1.0] * len(names)
        numbers = [self.cluster.get(name) for name in names]
        size = Counter(numbers)
        return [1.0 if number is None else 1.0 / size[number] for number in numbers]


NO_CLUSTERING = Clustering()


def clustering_of(event: Event) -> Clustering:
    """As the log keeps it."""
    data = json.loads(event.data_json)
    numbered = enumerate(data["clusters"])
    cluster = {name: number for number, names in numbered for name in names}
    return Clustering(event.position, data["matches"], data["within"], cluster)


def newest_clustering(events: Iterable[Event]) -> Clustering:
    """The one in force after these events."""
    told = list(events)
    return clustering_of(told[-1]) if told else NO_CLUSTERING


def is_due(last: Clustering, matches: int, within: float) -> bool:
    """Whether there are enough new clean matches for another clustering, or another nearness is
    wanted.
    """
    wanted = FIRST_MATCHES if last.within != within else GROWTH * last.matches
    return matches >= wanted


def near_copies(players: Sequence[Player], table: RatingTable, within: float) -> list[list[str]]:
    """Names of near-copies among the active snapshots, a list for each cluster of two or more.

    Args:
        table: the eval book's; it is only read.
        within: root mean square difference of shares of matches up to which two players are alike.
    """
    # it loads scipy, which takes half a second
    from league.stats.structure.clusters import clusters_of

    names = [player.name for player in players if _is_compared(player) and table.has(player.name)]
    compared = names[-MOST_PLAYERS:]
    met = {other for name in compared for other in table.payoff.row(name)}
    found = clusters_of(
        clean_table([*compared, *sorted(met.difference(compared))], table, rows=len(compared)),
        within,
    )
    clusters = (
        [compared[index] for index in one if index < len(compared)] for one in found.members()
    )
    return [cluster for cluster in clusters if len(cluster) > 1]


def _is_compared(player: Player) -> bool:
    return player.kind is PlayerKind.SNAPSHOT and player.state is PlayerState.ACTIVE


def look(league: League) -> bool:
    """Finds the near-copies anew when that is due; returns whether it did.

    The matchmaker answers meanwhile: only a look at the players and the write take its lock.
    """
    view, within = league.view, league.settings.near_copies
    if not within or view.is_behind:
        return False
    with view.lock:
        table, last = view.tables[Book.EVAL], view.clustering
        matches = table.games
        if not is_due(last, matches, within):
            return False
        players = list(view.players.values())
    copies = near_copies(players, table, within)
    told = sum(map(len, copies))
    text = f"{told} snapshots are near-copies of another, in {len(copies)} clusters that each weigh as one"
    data = {"within": within, "matches": matches, "clusters": copies}
    with league.store.write() as tx:
        event = league.event(
            EVENT, text if copies else "no snapshot is a near-copy of another", data
        )
        position = league.log_all(tx, [event])
        cluster = {name: number for number, names in enumerate(copies) for name in names}
        found = Clustering(position, matches, within, cluster)
        tx.after_commit(lambda: view.set_clustering(found))
    return True
