"""Which snapshots still need their gauntlet, and in which order.

Nothing is queued by hand: the queue is derived from the matchmaker's players and the journal, so
there is no list that could get lost. Requests come first (the latest before earlier ones), then the
newest snapshot, for a curriculum decides on the newest; older ones follow when time allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evaluator.journal import DONE, OPEN, SKIPPED, Gauntlet, Journal
from evaluator.settings import EvaluatorSettings
from evaluator.strategy import Entry, Slot, compose, is_gated, is_imported, missing_slots
from league.errors import NotFound
from league.players import Book, PayoffCell, Player, PlayerKind, PlayerState, Rating

Counts = Mapping[tuple[str, str, Book], int]
"""Matches in the matchmaker's log by (row, column, book)."""


def count_matches(cells: Iterable[PayoffCell], book: Book) -> dict[tuple[str, str, Book], int]:
    """Payoff cells of `book` as match counts."""
    return {(cell.row, cell.column, book): cell.games for cell in cells}


class Queue:
    """The order of gauntlets over a `Journal` and the player lists that the caller fetches."""

    def __init__(self, journal: Journal, settings: EvaluatorSettings, bots: Sequence[str]) -> None:
        self._journal = journal
        self._settings = settings
        self._bots = tuple(bots)

    def waiting(self, players: Sequence[Player]) -> list[Player]:
        """Snapshots without their complete gauntlet, next first. `players` in order of
        registration.

        Imported ones meet this league's in their gauntlets, and have one of their own on request
        only.
        """
        gauntlets = self._journal.gauntlets()
        requests = self._journal.requests()
        snapshots = {
            p.name: p
            for p in players
            if p.kind is PlayerKind.SNAPSHOT
            and p.state is not PlayerState.QUARANTINED
            and not is_gated(p)
        }
        # rated where they came from
        imported = {name for name, p in snapshots.items() if is_imported(p)}
        asked = [snapshots[name] for name in requests if name in snapshots]
        rest = [
            p
            for p in reversed(snapshots.values())
            if p.name not in requests
            and p.name not in imported
            and not _is_complete(p, gauntlets.get(p.name))
        ]
        return asked + rest

    def request(self, name: str, players: Sequence[Player]) -> int:
        """Puts snapshot `name` at the head, again if it had been evaluated; returns its place, from
        1.

        Raises `NotFound` when no snapshot of the league is called so.
        """
        found = {p.name: p for p in players if p.kind is PlayerKind.SNAPSHOT}.get(name)
        if found is None or found.state is PlayerState.QUARANTINED or is_gated(found):
            raise NotFound(
                f"no snapshot {name!r} can be evaluated: `bin/league players` lists what there is"
            )
        self._journal.request(name)
        return 1 + [p.name for p in self.waiting(players)].index(name)

    def open(
        self,
        player: Player,
        players: Sequence[Player],
        ratings: Sequence[Rating],
        counts: Counts,
        exploiters: Sequence[str] = (),
    ) -> Gauntlet:
        """The gauntlet to play now: the one begun earlier, or a new one that is written down first.

        A main's snapshot meets `exploiters`, whom its main has to beat, too.

        A request for a finished gauntlet asks for as many matches again; a player that has become a
        milestone since tops its own up.
        """
        old = self._journal.gauntlets().get(player.name)
        if old is not None and old.digest != player.digest:
            self._journal.forget(player.name)
            old = None
        if old is not None and old.state == OPEN and old.milestone == player.milestone:
            return old
        plan = compose(player, players, ratings, self._bots, self._settings, exploiters)
        if old is not None and old.state == DONE and old.milestone == player.milestone:
            plan = tuple(self._again(player.name, entry, counts) for entry in plan)
        gauntlet = Gauntlet(player.name, player.digest, player.milestone, plan)
        self._journal.write(gauntlet)
        return gauntlet

    def _again(self, player: str, entry: Entry, counts: Counts) -> Entry:
        played = len(self._journal.done_slots(player, entry.opponent, entry.book))
        so_far = max(played, counts.get((player, entry.opponent, entry.book), 0))
        return replace(entry, matches=entry.matches + so_far - so_far % 2)

    def missing(self, gauntlet: Gauntlet, counts: Counts) -> list[Slot]:
        """What is still to be played of `gauntlet`, in its order."""
        slots: list[Slot] = []
        for entry in gauntlet.plan:
            done = self._journal.done_slots(gauntlet.player, entry.opponent, entry.book)
            slots += missing_slots(
                entry, done, counts.get((gauntlet.player, entry.opponent, entry.book), 0)
            )
        return slots

    def finish(self, gauntlet: Gauntlet) -> None:
        """Marks it complete."""
        self._journal.write(replace(gauntlet, state=DONE))

    def skip(self, player: Player, reason: str) -> None:
        """Marks a gauntlet that can't be played; a request tries it again."""
        self._journal.write(
            Gauntlet(player.name, player.digest, player.milestone, (), SKIPPED, reason)
        )

    def drop_opponent(self, gauntlet: Gauntlet, opponent: str) -> Gauntlet:
        """The gauntlet without an opponent that can't be played."""
        shorter = replace(gauntlet, plan=tuple(e for e in gauntlet.plan if e.opponent != opponent))
        self._journal.write(shorter)
        return shorter

    def reconcile(self, counts: Counts) -> list[str]:
        """Once at the start: reopens what the journal calls done and the log does not have.

        (A league.db restored from an older copy, for instance.) Returns the players concerned.
        """
        reopened = []
        for gauntlet in self._journal.gauntlets().values():
            lost = [
                entry
                for entry in gauntlet.plan
                if counts.get((gauntlet.player, entry.opponent, entry.book), 0)
                < len(self._journal.done_slots(gauntlet.player, entry.opponent, entry.book))
            ]
            if lost:
                self._journal.forget(gauntlet.player)
                reopened.append(gauntlet.player)
        return reopened

    @property
    def gauntlets_done(self) -> int:
        """Gauntlets finished in this run folder, over all starts."""
        return sum(1 for g in self._journal.gauntlets().values() if g.state == DONE)


def _is_complete(player: Player, gauntlet: Gauntlet | None) -> bool:
    if gauntlet is None or gauntlet.state == OPEN or gauntlet.digest != player.digest:
        return False
    return gauntlet.milestone or not player.milestone
