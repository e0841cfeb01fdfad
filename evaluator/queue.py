"""What is to be played: the next gate or gauntlet, its opponents, and the matches still missing.

Nothing is stored for it. The report names the snapshots that have been evaluated, and the
matchmaker's log counts the matches of the others. Requests come first (the latest before earlier
ones), then the newest snapshot, since a curriculum decides on it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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


class Entry(NamedTuple):
    """One line of a gauntlet: `matches` (in all, even) against `opponent` in `book`."""

    opponent: str
    book: Book
    matches: int


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
) -> list[Entry]:
    """The gauntlet of `player`: sampled matches first against bots, for which curricula wait."""
    in_order = sorted(bots, key=lambda name: name not in settings.matches_by_opponent)
    known = {p.name: p for p in players}
    met = [name for name in exploiters if name in known and name != player.name]
    met += [name for name in _snapshots_to_meet(player, known, ratings) if name not in met]
    counts = {n: settings.matches_against(n, milestone=player.milestone) for n in [*bots, *met]}
    sampled = [Entry(name, Book.EVAL, counts[name]) for name in [*in_order, *met]]
    greedy = [Entry(n, Book.GREEDY, 2 * round(counts[n] * GREEDY_SHARE / 2)) for n in in_order]
    return [entry for entry in [*sampled, *greedy] if entry.matches]


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


def missing_pairs(player: str, plan: Iterable[Entry], counts: Counts) -> list[tuple[Entry, int]]:
    """The pairs of matches (two seats, one seed) that a plan still needs, by entry and number.

    Pairs are played in order, so what the log counts stands for the first ones, as after a restart.
    """
    return [
        (entry, pair)
        for entry in plan
        for pair in range(
            counts.get((player, entry.opponent, entry.book), 0) // 2, entry.matches // 2
        )
    ]


class Queue:
    """The order of gauntlets of the players that the caller fetches."""

    def __init__(self, settings: EvaluatorSettings, bots: Sequence[str]) -> None:
        self._settings, self._bots = settings, tuple(bots)
        # by name, for which weights and whether as a milestone
        self._done: dict[str, tuple[str, bool]] = {}
        self._skipped: dict[str, tuple[str, bool]] = {}
        self._requests: list[str] = []

    def resume(
        self, rows: Iterable[Mapping[str, str]], players: Iterable[Player], counts: Counts
    ) -> list[str]:
        """Takes the players of a report's rows as evaluated, unless the rows have no end. Returns
        those whose matches the log lacks, as after a restored backup: they are evaluated again.
        """
        by_player, lacking = defaultdict(list), []
        for row in rows:
            by_player[row["player"]].append(row)
        for player in players:
            own = by_player[player.name]
            matches = [
                (
                    int(row["matches"]),
                    counts.get((player.name, row["opponent"], Book(row["book"])), 0),
                )
                for row in own
            ]
            if any(reported > counted for reported, counted in matches):
                lacking.append(player.name)
            elif own and all(row["finished_at"] for row in own):
                longest = max(reported for reported, _ in matches)
                as_milestone = longest >= self._settings.milestone_matches
                self._done[player.name] = (player.digest, as_milestone)
        return lacking

    def waiting(self, players: Sequence[Player]) -> list[Player]:
        """Snapshots without their complete gauntlet, next first; imported ones only on request."""
        snapshots = {p.name: p for p in players if _can_be_evaluated(p)}
        asked = [snapshots[name] for name in reversed(self._requests) if name in snapshots]
        return asked + [
            p
            for p in reversed(snapshots.values())
            if p not in asked and not is_imported(p) and not self._is_over(p)
        ]

    def _is_over(self, player: Player) -> bool:
        for over in (self._done, self._skipped):
            digest, as_milestone = over.get(player.name, ("", False))
            if digest == player.digest and as_milestone >= player.milestone:
                return True
        return False

    def request(self, name: str, players: Sequence[Player]) -> int:
        """Puts a snapshot at the head, also an evaluated one; returns its place, from 1."""
        if not any(p.name == name and _can_be_evaluated(p) for p in players):
            raise NotFound(f"no snapshot {name!r} exists: `bin/league players` lists them")
        self._requests = [one for one in self._requests if one != name] + [name]
        return 1

    def plan(
        self,
        player: Player,
        players: Iterable[Player],
        ratings: Sequence[Rating],
        counts: Counts,
        exploiters: Sequence[str] = (),
    ) -> list[Entry]:
        """The gauntlet to play now; a request for a finished one repeats all of its matches."""
        plan = compose(player, players, ratings, self._bots, self._settings, exploiters)
        if player.name not in self._requests or self._done.get(player.name, "") != (
            player.digest,
            player.milestone,
        ):
            return plan
        so_far = [counts.get((player.name, entry.opponent, entry.book), 0) for entry in plan]
        return [
            entry._replace(matches=entry.matches + played - played % 2)
            for entry, played in zip(plan, so_far, strict=True)
        ]

    def finish(self, player: Player) -> None:
        """Marks its gauntlet complete."""
        self._done[player.name] = (player.digest, player.milestone)
        self._requests = [name for name in self._requests if name != player.name]

    def skip(self, player: Player) -> None:
        """Leaves out a snapshot that can't be played; a request or a restart tries it again."""
        self._skipped[player.name] = (player.digest, True)
        self._requests = [name for name in self._requests if name != player.name]

    @property
    def gauntlets_done(self) -> int:
        """Gauntlets finished in this run folder, over all starts."""
        return len(self._done)


def _can_be_evaluated(player: Player) -> bool:
    """An exploiter's snapshot has to be accepted first."""
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.state is not PlayerState.QUARANTINED
        and (player.role not in EXPLOITING or player.state is PlayerState.ACTIVE)
    )
