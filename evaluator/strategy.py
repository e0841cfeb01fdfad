"""Whom a snapshot meets, how often, and which of these matches are still to be played. All pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from evaluator.settings import EvaluatorSettings
from league.exploiters import EXPLOITING, CandidateGate, GateState
from league.ids import SnapshotName
from league.players import Book, Player, PlayerKind, PlayerState, Rating


@dataclass(frozen=True)
class Entry:
    """One line of a gauntlet: `matches` (in all, even) against `opponent` in `book`."""

    opponent: str
    book: Book
    matches: int


@dataclass(frozen=True)
class Slot:
    """One match of a gauntlet: pair `pair` has a seed of its own, `seat` is the evaluated
    player's.
    """

    opponent: str
    book: Book
    pair: int
    seat: int


def is_gated(player: Player) -> bool:
    """Whether it is an exploiter's snapshot that was not accepted: its gate has told all there
    is to tell.
    """
    return player.role in EXPLOITING and player.state is not PlayerState.ACTIVE


def exploiters_to_meet(gates: Iterable[CandidateGate], player: Player, most: int) -> list[str]:
    """At most `most` accepted exploiters for a main's snapshot: those it has yet to beat go before
    those that the main has patched, which it may forget again.

    Where one kind is more than its room, half of the room is for the newest, and who of the others
    is met is drawn by the snapshot's digest: no exploiter waits for ever, and a restart draws the
    same.
    """
    accepted = [gate for gate in gates if gate.is_exploiters and gate.state is GateState.ACCEPTED]
    accepted.sort(key=lambda gate: -gate.decided_at)
    chance = random.Random(f"{player.digest} meets exploiters")
    met: list[str] = []
    for patched in (False, True):
        kind = [
            gate.candidate
            for gate in accepted
            if patched is any(_is_main_of(patch.main, player) for patch in gate.patches)
        ]
        room = most - len(met)
        if len(kind) > room:
            newest = (room + 1) // 2
            kind = kind[:newest] + chance.sample(kind[newest:], room - newest)
        met += kind
    return met


def next_gate(gates: Sequence[CandidateGate], gauntlet_is_due: bool) -> CandidateGate | None:
    """Which of the open gates is played now, None for a gauntlet before it. `gates` in order of
    opening.

    Exploiters' come first, for a main is exploited meanwhile. Those of mains' snapshots take turns
    with gauntlets (`gauntlet_is_due`): a curriculum waits for these.
    """
    urgent = next((gate for gate in gates if gate.is_exploiters), None)
    if urgent is not None or gauntlet_is_due:
        return urgent
    return gates[0] if gates else None


def _is_main_of(main: str, snapshot: Player) -> bool:
    return snapshot.name.startswith((f"{main}@", f"{main}."))


def _opponents(
    player: Player,
    players: Mapping[str, Player],
    ratings: Sequence[Rating],
    settings: EvaluatorSettings,
) -> list[str]:
    """Snapshots it meets, each once: parent, the best others, imported ones; for milestones the
    oldest.
    """

    def usable(name: str) -> bool:
        other = players.get(name)
        return (
            other is not None
            and name != player.name
            and other.kind is PlayerKind.SNAPSHOT
            and other.state is not PlayerState.QUARANTINED
            and not is_gated(other)
        )

    best = [r.player.name for r in ratings if usable(r.player.name)]
    active_best = [name for name in best if players[name].state is PlayerState.ACTIVE]
    chosen = [player.parent] if usable(player.parent) else []
    chosen += [name for name in active_best if name not in chosen][: settings.best_snapshots]
    imported = [p.name for p in players.values() if usable(p.name) and is_imported(p)]
    chosen += [name for name in imported if name not in chosen][: settings.imported_snapshots]
    if player.milestone:
        own = [p for p in players.values() if usable(p.name) and p.name not in imported]
        oldest = min(own, key=lambda p: p.step, default=None)
        if oldest is not None and oldest.name not in chosen:
            chosen.append(oldest.name)
    return chosen


def is_imported(player: Player) -> bool:
    """Whether it is another run's snapshot: an anchor, which others are measured by."""
    return player.kind is PlayerKind.SNAPSHOT and bool(SnapshotName.parse(player.name).run)


def compose(
    player: Player,
    players: Iterable[Player],
    ratings: Sequence[Rating],
    bots: Sequence[str],
    settings: EvaluatorSettings,
    exploiters: Sequence[str] = (),
) -> tuple[Entry, ...]:
    """The gauntlet of `player`: sampled matches against all bots first (curricula wait for them),
    then against `exploiters` and snapshots, then greedy ones against bots.

    `ratings` are those of the eval book, best first; `bots` the names of the game's bots, held-out
    ones too.
    """

    def matches(name: str) -> int:
        return settings.matches_against(name, milestone=player.milestone)

    # Whom a curriculum waits for comes first.
    in_order = sorted(bots, key=lambda name: name not in settings.matches_by_opponent)
    known = {p.name: p for p in players}
    met = [name for name in exploiters if name in known and name != player.name]
    met += [name for name in _opponents(player, known, ratings, settings) if name not in met]
    entries = [Entry(name, Book.EVAL, matches(name)) for name in [*in_order, *met]]
    greedy = [Entry(name, Book.GREEDY, settings.greedy_matches(matches(name))) for name in in_order]
    return (*entries, *(entry for entry in greedy if entry.matches))


def missing_slots(entry: Entry, done: AbstractSet[tuple[int, int]], counted: int) -> list[Slot]:
    """The matches of `entry` that are still to be played, pair by pair.

    `done` are (pair, seat) known to be played, `counted` the matches that the matchmaker's log
    holds of these two in this book: what it counts beyond `done` stands for whole missing pairs.
    """
    slots = [
        Slot(entry.opponent, entry.book, pair, seat)
        for pair in range(entry.matches // 2)
        for seat in (0, 1)
        if (pair, seat) not in done
    ]
    credit = max(0, counted - len(done)) // 2
    if credit == 0:
        return slots
    untouched = sorted({s.pair for s in slots if {(s.pair, 0), (s.pair, 1)}.isdisjoint(done)})
    covered = set(untouched[:credit])
    return [slot for slot in slots if slot.pair not in covered]


def pair_seed(seed: int, pair: int) -> int:
    """Seed of pair `pair`, the same for every opponent and snapshot; fits in 63 bits."""
    return (seed << 32) | pair
