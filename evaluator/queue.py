"""What is to be played: the next gate or gauntlet, its opponents, and the matches still missing.

The queue is derived from the matchmaker's players and the journal. Requests come first (the latest
before earlier ones), then the newest snapshot, since a curriculum decides on it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from evaluator.journal import DONE, OPEN, SKIPPED, Entry, Gauntlet, Journal, Slot
from evaluator.settings import EvaluatorSettings
from league.errors import NotFound
from league.exploiters import EXPLOITING, CandidateGate, GateState
from league.ids import SnapshotName
from league.players import Book, Player, PlayerKind, PlayerState, Rating

GREEDY_SHARE = 0.5
"""Greedy matches against each bot, as a share of the sampled ones."""
BEST_SNAPSHOTS = 2
"""The highest rated snapshots of a gauntlet, next to bots and parent."""
IMPORTED_SNAPSHOTS = 4
"""Snapshots imported from other runs that a gauntlet meets, in the order in which they came."""
EXPLOITERS = 12
"""Accepted exploiters that a main's snapshot meets; with 4 the early ones of a short run were met
too seldom to be patched."""
Counts = Mapping[tuple[str, str, Book], int]
"""Matches in the matchmaker's log by (row, column, book)."""


def is_imported(player: Player) -> bool:
    """Whether it is another run's snapshot: an anchor, which others are measured by."""
    return player.kind is PlayerKind.SNAPSHOT and bool(SnapshotName.parse(player.name).run)


def next_gate(gates: Sequence[CandidateGate], gauntlet_is_due: bool) -> CandidateGate | None:
    """The open gate to play now, None for a gauntlet before it. `gates` in order of opening.

    Exploiters' come first; those of mains' snapshots take turns with gauntlets, which curricula
    await.
    """
    urgent = next((gate for gate in gates if gate.is_exploiters), None)
    if urgent is not None or gauntlet_is_due:
        return urgent
    return gates[0] if gates else None


def exploiters_to_meet(
    gates: Iterable[CandidateGate], player: Player, most: int = EXPLOITERS
) -> list[str]:
    """At most `most` accepted exploiters for a main's snapshot, those it has not patched first.

    Where one kind is more than its room, half of the room is for the newest, and the others are
    drawn by the snapshot's digest, so that each has its turn and a restart draws the same.
    """
    accepted = [gate for gate in gates if gate.is_exploiters and gate.state is GateState.ACCEPTED]
    accepted.sort(key=lambda gate: -gate.decided_at)
    chance = random.Random(f"{player.digest} meets exploiters")

    def is_patched(gate: CandidateGate) -> bool:
        mains = [patch.main for patch in gate.patches]
        return any(player.name.startswith((f"{main}@", f"{main}.")) for main in mains)

    met: list[str] = []
    for patched in (False, True):
        kind = [gate.candidate for gate in accepted if is_patched(gate) is patched]
        room = most - len(met)
        if len(kind) > room:
            newest = (room + 1) // 2
            kind = kind[:newest] + chance.sample(kind[newest:], room - newest)
        met += kind
    return met


def compose(
    player: Player,
    players: Iterable[Player],
    ratings: Sequence[Rating],
    bots: Sequence[str],
    settings: EvaluatorSettings,
    exploiters: Sequence[str] = (),
) -> tuple[Entry, ...]:
    """The gauntlet of `player`: sampled matches first against bots, for which curricula wait."""
    in_order = sorted(bots, key=lambda name: name not in settings.matches_by_opponent)
    known = {p.name: p for p in players}
    met = [name for name in exploiters if name in known and name != player.name]
    met += [name for name in _snapshots_to_meet(player, known, ratings) if name not in met]
    counts = {n: settings.matches_against(n, milestone=player.milestone) for n in [*bots, *met]}
    sampled = [Entry(name, Book.EVAL, counts[name]) for name in [*in_order, *met]]
    greedy = [Entry(n, Book.GREEDY, 2 * round(counts[n] * GREEDY_SHARE / 2)) for n in in_order]
    return tuple(entry for entry in [*sampled, *greedy] if entry.matches)


def _snapshots_to_meet(
    player: Player, players: Mapping[str, Player], ratings: Sequence[Rating]
) -> list[str]:
    """Parent, the best others, imported ones; for milestones the oldest; each once."""

    def usable(name: str) -> bool:
        return name != player.name and name in players and _can_be_evaluated(players[name])

    others = [p for p in players.values() if usable(p.name)]
    rated = [rating.player.name for rating in ratings if usable(rating.player.name)]
    best = [name for name in rated if players[name].state is PlayerState.ACTIVE]
    chosen = [player.parent] if usable(player.parent) else []
    chosen += [name for name in best if name not in chosen][:BEST_SNAPSHOTS]
    imported = [p.name for p in others if is_imported(p)]
    chosen += [name for name in imported if name not in chosen][:IMPORTED_SNAPSHOTS]
    if player.milestone:
        own = [p for p in others if not is_imported(p)]
        chosen += [p.name for p in sorted(own, key=lambda p: p.step)[:1]]
    return list(dict.fromkeys(chosen))


def missing_slots(entry: Entry, done: AbstractSet[tuple[int, int]], counted: int) -> list[Slot]:
    """The matches of `entry` that are still to be played, pair by pair.

    Matches that the log counts beyond the (pair, seat)s in `done` replace whole missing pairs.
    """
    started = {pair for pair, _ in done}
    untouched = [pair for pair in range(entry.matches // 2) if pair not in started]
    covered = set(untouched[: max(0, counted - len(done)) // 2])
    return [
        Slot(entry.opponent, entry.book, pair, seat)
        for pair in range(entry.matches // 2)
        for seat in (0, 1)
        if pair not in covered and (pair, seat) not in done
    ]


class Queue:
    """The order of gauntlets over a `Journal` and the player lists that the caller fetches."""

    def __init__(self, journal: Journal, settings: EvaluatorSettings, bots: Sequence[str]) -> None:
        self._journal = journal
        self._settings = settings
        self._bots = tuple(bots)

    def waiting(self, players: Sequence[Player]) -> list[Player]:
        """Snapshots without their complete gauntlet, next first; imported ones only on request."""
        gauntlets, requests = self._journal.gauntlets(), self._journal.requests()
        snapshots = {p.name: p for p in players if _can_be_evaluated(p)}
        asked = [snapshots[name] for name in requests if name in snapshots]
        rest = [
            p
            for p in reversed(snapshots.values())
            if p.name not in requests
            and not is_imported(p)
            and not _is_complete(p, gauntlets.get(p.name))
        ]
        return asked + rest

    def request(self, name: str, players: Sequence[Player]) -> int:
        """Puts a snapshot at the head, also an evaluated one; returns its place, from 1."""
        if not any(p.name == name and _can_be_evaluated(p) for p in players):
            raise NotFound(f"no snapshot {name!r} exists: `bin/league players` lists them")
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
        """The gauntlet to play now: the one begun earlier, or a new one, which is written down.

        A request for a finished one repeats it; a player that has become a milestone tops its up.
        """
        old = self._journal.gauntlets().get(player.name)
        if old is not None and old.digest != player.digest:
            self._journal.forget(player.name)
            old = None
        same_length = old is not None and old.milestone == player.milestone
        if old is not None and same_length and old.state == OPEN:
            return old
        plan = compose(player, players, ratings, self._bots, self._settings, exploiters)
        if old is not None and same_length and old.state == DONE:
            plan = tuple(self._again(player.name, entry, counts) for entry in plan)
        gauntlet = Gauntlet(player.name, player.digest, player.milestone, plan)
        self._journal.write(gauntlet)
        return gauntlet

    def _so_far(
        self, player: str, entry: Entry, counts: Counts
    ) -> tuple[set[tuple[int, int]], int]:
        """The (pair, seat)s of an entry in the journal, and how many matches the log counts."""
        pair = player, entry.opponent, entry.book
        return self._journal.done_slots(*pair), counts.get(pair, 0)

    def _again(self, player: str, entry: Entry, counts: Counts) -> Entry:
        done, counted = self._so_far(player, entry, counts)
        so_far = max(len(done), counted)
        return replace(entry, matches=entry.matches + so_far - so_far % 2)

    def missing(self, gauntlet: Gauntlet, counts: Counts) -> list[Slot]:
        """What is still to be played of `gauntlet`, in its order."""
        return [
            slot
            for entry in gauntlet.plan
            for slot in missing_slots(entry, *self._so_far(gauntlet.player, entry, counts))
        ]

    def finish(self, gauntlet: Gauntlet) -> None:
        """Marks it complete."""
        self._journal.write(replace(gauntlet, state=DONE))

    def skip(self, player: Player, reason: str) -> None:
        """Marks a gauntlet that can't be played; a request tries it again."""
        skipped = Gauntlet(player.name, player.digest, player.milestone, (), SKIPPED, reason)
        self._journal.write(skipped)

    def drop_opponent(self, gauntlet: Gauntlet, opponent: str) -> Gauntlet:
        """Returns the gauntlet without an opponent that can't be played."""
        shorter = replace(gauntlet, plan=tuple(e for e in gauntlet.plan if e.opponent != opponent))
        self._journal.write(shorter)
        return shorter

    def reconcile(self, counts: Counts) -> list[str]:
        """Reopens what the journal calls done and the log lacks, as after a restored backup."""
        reopened = []
        for gauntlet in self._journal.gauntlets().values():
            known = (self._so_far(gauntlet.player, entry, counts) for entry in gauntlet.plan)
            if any(counted < len(done) for done, counted in known):
                self._journal.forget(gauntlet.player)
                reopened.append(gauntlet.player)
        return reopened

    @property
    def gauntlets_done(self) -> int:
        """Gauntlets finished in this run folder, over all starts."""
        return sum(gauntlet.state == DONE for gauntlet in self._journal.gauntlets().values())


def _can_be_evaluated(player: Player) -> bool:
    """An exploiter's snapshot has to be accepted first."""
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.state is not PlayerState.QUARANTINED
        and (player.role not in EXPLOITING or player.state is PlayerState.ACTIVE)
    )


def _is_complete(player: Player, gauntlet: Gauntlet | None) -> bool:
    if gauntlet is None or gauntlet.state == OPEN or gauntlet.digest != player.digest:
        return False
    return gauntlet.milestone or not player.milestone
