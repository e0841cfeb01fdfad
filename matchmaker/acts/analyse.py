"""Computes the league's Nash mixture from time to time, begins rating epochs, and retires snapshots
if a lineage has more than `max_saved`.

The Nash mixture is computed from the clean matches, in which both players are frozen
(`league.stats.structure`). It decides which snapshots retire last, and the sampling rule "nash"
draws opponents by it. So it is computed only under this rule, or if some lineage (the snapshots of
a learner) has at least `max_saved` active snapshots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from league.ids import lineage_of
from league.players import Book, Player, PlayerKind, PlayerState
from league.stats.ratings import RatingTable
from matchmaker.state.analysis import EVENT, Analysis
from matchmaker.state.books import epoch_data
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

FIRST_MATCHES = 200
"""Number of clean matches (both players frozen) that the first analysis of the league needs. With
fewer matches, ratings are too uncertain.
"""
GROWTH = 1.1
"""Factor by which the number of clean matches must grow before the next analysis. So at most about
a tenth of the snapshots are newer than the mixture, and 100,000 clean matches make 66 analyses.
"""


def analyse(league: League) -> bool:
    """Computes the Nash mixture if an analysis is due, and records its shares in the log. Returns
    whether the analysis was due.
    """
    view = league.view.checked()
    with view.lock:
        table, last = view.tables[Book.EVAL], view.analysis
        players, matches = list(view.players.values()), table.games
    snapshots = [player for player in players if is_active_snapshot(player)]
    sizes = Counter(lineage_of(snapshot.name) for snapshot in snapshots)
    is_full = max(sizes.values(), default=0) >= league.settings.max_saved
    is_wanted = is_full or league.settings.within_snapshots == "nash"
    if not is_wanted or not is_due(last, matches):
        return False
    shares = {snapshot.name: 0.0 for snapshot in snapshots if table.has(snapshot.name)}
    nash = {name: round(share, 9) for name, share in nash_of(players, table).items()}
    text = f"{len(nash)} snapshots are in the Nash support and retire last"
    with league.store.write() as tx:
        league.log(tx, EVENT, text, matches=matches, support=list(nash), shares=shares | nash)
    return True


def is_due(last: Analysis, matches: int) -> bool:
    """Returns whether enough clean matches have been played for a new analysis."""
    return matches >= max(FIRST_MATCHES, GROWTH * last.matches)


def nash_of(players: Iterable[Player], table: RatingTable) -> dict[str, float]:
    """Computes the shares of active snapshots in the Nash mixture of the results in `table`."""
    # scipy takes half a second to load
    from league.stats.structure.mixtures import mixed_players, nash_mixture
    from league.stats.structure.table import table_of_book

    names = mixed_players(players, table.has)
    return nash_mixture(table_of_book(names, table)) if names else {}


def first_to_retire(snapshots: Sequence[Player], support: Collection[str]) -> list[Player]:
    """Returns the snapshots of a lineage (of a learner) that may retire, in the order in which they
    retire.

    Milestones and the newest snapshot never retire. Snapshots in `support`, which have a share of
    the Nash mixture, retire last.

    Args:
        snapshots: the lineage's active snapshots, in order of registration.
        support: names of the snapshots in the support of the Nash mixture.
    """
    old = [player for player in snapshots[:-1] if not player.milestone]
    return sorted(old, key=lambda player: player.name in support)


def retire_surplus(
    league: League, tx: Transaction, players: dict[str, Player], lineages: set[str]
) -> list[str]:
    """Retires snapshots of each lineage (of each learner) until `max_saved` active snapshots are
    left, or until only the newest snapshot and milestones (which never retire) are left. Marks the
    retired snapshots in `players`, and returns their names.
    """
    retired: list[str] = []
    most, support = league.settings.max_saved, league.view.analysis.support
    by_lineage: dict[str, list[Player]] = {lineage: [] for lineage in sorted(lineages)}
    for player in players.values():  # once for all, because a league may have 1,000 lineages
        lineage = lineage_of(player.name)
        if lineage in by_lineage and is_active_snapshot(player):
            by_lineage[lineage].append(player)
    for lineage, active in by_lineage.items():
        for player in first_to_retire(active, support)[: max(len(active) - most, 0)]:
            players[player.name] = replace(player, state=PlayerState.RETIRED)
            tx.update_player(players[player.name])
            words = f"{player.name} retires: {lineage} keeps {most} snapshots"
            league.log(tx, "player_retired", words, player=player.name)
            retired.append(player.name)
    return retired


def is_active_snapshot(player: Player) -> bool:
    """Returns whether a player is a snapshot that may be drawn as an opponent."""
    return player.kind is PlayerKind.SNAPSHOT and player.state is PlayerState.ACTIVE


def open_due_epochs(league: League) -> list[Book]:
    """Begins a new rating epoch in each book that has enough new results, and returns these books.
    A book holds the ratings and payoffs of one kind of match.

    An event of the log begins the epoch. This event sets two measurements that apply until the next
    epoch: the share of draws that the ratings expect, and the link function from ratings to
    predicted scores.
    """
    view = league.view.checked()
    with view.lock:
        due = [book for book, table in view.tables.items() if table.is_epoch_due()]
    if not due:
        return []
    with league.store.write() as tx:
        return [book for book in due if _open_epoch(league, tx, book)]


def _open_epoch(league: League, tx: Transaction, book: Book) -> bool:
    """Begins a rating epoch of a book (one kind of match) if the ratings in memory include every
    logged result. Otherwise returns False, and the matchmaker's next sweep tries again.
    """
    position = tx.positions()[0]
    with league.view.lock:
        if league.view.books.log_position != position:
            return False
        epoch = league.view.tables[book].next_epoch(position)
    if epoch is None:
        return False
    text = (
        f"{book.value} ratings: {epoch.draw_probability:.1%} draws are expected from now on, "
        f"measured in {epoch.games:,} results"
    )
    league.log(tx, "rating_epoch", text, book=book.value, **epoch_data(epoch))
    return True
