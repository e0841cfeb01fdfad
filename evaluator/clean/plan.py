"""Decides which clean matches (both players frozen) are due: the first matches of new snapshots,
milestones' matches, and requested matches.

Milestones are snapshots that are measured more precisely. Rivals are other people's agents.

A plan is not stored. It follows from the players, from the matches in the matchmaker's log, and
from the queue of requests. So a restarted evaluator continues the work, and several evaluators make
the same plan. Each entry of a plan gives a total number of matches for two players. The matchmaker
leases these matches to any evaluator that asks, up to the total, so the evaluators share the work.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import NamedTuple

from evaluator.settings import EvaluatorSettings
from league.evaluations import FILES, Evaluation, targets
from league.exploiters import EXPLOITING, is_mains_snapshot
from league.gates import CandidateGate, GateState
from league.ids import SnapshotName, lineage_of
from league.players import Book, Player, PlayerKind, PlayerState, Rating, Role
from league.stages import CurriculumStatus

PARENT, GRANDPARENT, STRONG, AWAITED, CLOSE = 3, 1, 2, 4, 2
"""The number of pairs that a new snapshot plays against each of its first opponents. The opponents
are, in this order: its parent, its grandparent, each of the strongest snapshots, the bot that its
learner has to beat to end a stage, and each other bot and imported snapshot, the closest in
strength first. If the snapshot needs more matches, it meets the opponents of the last kind
(`CLOSE`) again.
"""
STRONGEST = 2
"""A new snapshot meets this many of the highest rated other snapshots."""
ANCESTORS = 4
"""Number of earlier snapshots of the same learner that a milestone (a snapshot to measure
precisely) meets, evenly spaced.
"""
EXPLOITERS, EXPLOITER_MATCHES = 12, 20
"""Largest number of accepted exploiters that a main's newest snapshot meets, and number of matches
against each. With a limit of four exploiters, the early exploiters of a short run would play too
few matches to show that a main beats them.
"""
MET = 5
"""Largest number of snapshots that a new rival meets in its first matches."""
BATCH_MATCHES = 128
"""At most this many matches of a request are planned before other work gets its turn."""
TOGETHER = 24
"""Batches are played together as long as they have at most this many matches in total. A single
batch may have more. The number is small because a new snapshot waits until these matches are
played.
"""
ALLOCATED = 16
"""Number of matches that are allocated at once, from a single fit of the ratings
(`evaluator.clean.allocation`).
"""
Counts = Mapping[tuple[str, str, Book], int]
"""Number of matches in the matchmaker's log by player, opponent and book (kind of match)."""


class Entry(NamedTuple):
    """Says how many matches of one kind (book) two players need.

    Attributes:
        until: total number of matches that the log needs, including matches already played.
        pairs: number of pairs of matches that are still missing.
    """

    player: str
    opponent: str
    book: Book
    until: int
    pairs: int = 0


@dataclass(frozen=True)
class Batch:
    """Describes matches that are played together. `subject` is the player that the matches
    evaluate. It is "" for matches that don't evaluate a certain player.
    """

    subject: str
    entries: tuple[Entry, ...]
    of_exploiters: bool = False

    @property
    def matches(self) -> int:
        return sum(2 * entry.pairs for entry in self.entries)


def is_imported(player: Player) -> bool:
    """Returns whether a player is an imported snapshot of another run."""
    if player.kind is not PlayerKind.SNAPSHOT or ":" not in player.name:
        return False  # without parsing the names of thousands of snapshots
    return bool(SnapshotName.parse(player.name).run)


def is_met(player: Player) -> bool:
    """Returns whether a player is an active rival. New snapshots meet such rivals like bots."""
    return player.kind is PlayerKind.RIVAL and player.state is PlayerState.ACTIVE


def can_be_evaluated(player: Player) -> bool:
    """Returns whether a player is a snapshot that may play. An exploiter's snapshot may play once
    its gate (a test against its victims) has accepted it.
    """
    return (
        player.kind is PlayerKind.SNAPSHOT
        and player.state is not PlayerState.QUARANTINED
        and (player.role not in EXPLOITING or player.state is PlayerState.ACTIVE)
    )


def exploiters_to_meet(
    gates: Iterable[CandidateGate], player: Player, most: int = EXPLOITERS
) -> list[str]:
    """Chooses the accepted exploiters that a main's snapshot meets. Exploiters that no earlier
    snapshot of the main has beaten come first.

    If there are more than `most`, half of the chosen exploiters are the newest. The other half is
    drawn at random, with the snapshot's digest as the seed. So all exploiters are met over time,
    and a restart draws the same exploiters.

    Args:
        gates: the gates (tests) of all candidates.
        player: the snapshot.
        most: largest number of exploiters to meet.
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


def _shortened(batch: Batch, pairs: int) -> Batch:
    """Returns a batch with only the first `pairs` pairs of matches."""
    entries = list[Entry]()
    for entry in batch.entries:
        fewer = entry.pairs - pairs
        entries.append(
            entry if fewer <= 0 else entry._replace(pairs=pairs, until=entry.until - 2 * fewer)
        )
        pairs -= entries[-1].pairs
        if not pairs:
            break
    return replace(batch, entries=tuple(entries))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The state of the league at a moment, as the matchmaker reports it.

    Attributes:
        players: in order of registration.
        counts: matches in the log.
        ratings: ratings by clean matches, best first.
        gates: the gates (tests) of all candidates, in the order in which they opened.
        requests: open evaluations, the earliest first.
        curricula: the learners' stages.
        can_meet: says whether this evaluator can play matches of two players.
        rivals_wait: whether matches of rivals can't begin yet, because earlier matches of rivals
            are in progress.
    """

    players: Mapping[str, Player]
    counts: Counts
    ratings: Sequence[Rating] = ()
    gates: Sequence[CandidateGate] = ()
    requests: Sequence[Evaluation] = ()
    curricula: Sequence[CurriculumStatus] = ()
    can_meet: Callable[[str, str], bool] = field(default=lambda player, opponent: True)
    rivals_wait: bool = False

    def have_rival(self, player: str, opponent: str) -> bool:
        """Returns whether at least one of two players is a rival."""
        both = (self.players.get(name) for name in (player, opponent))
        return any(one is not None and one.kind is PlayerKind.RIVAL for one in both)

    def can_begin(self, player: str, opponent: str) -> bool:
        """Returns whether matches of two players can begin now."""
        return not (self.rivals_wait and self.have_rival(player, opponent))


class Plan:
    """All batches that are due according to `facts`.

    Attributes:
        bots: names of the bots and rivals that new snapshots meet.
    """

    def __init__(self, facts: Facts, settings: EvaluatorSettings, bots: Sequence[str]) -> None:
        self.facts, self._settings = facts, settings
        self.bots = [*bots, *(player.name for player in facts.players.values() if is_met(player))]
        self._mu = {rating.player.name: rating.mu for rating in facts.ratings}
        self._played: Counter[str] = Counter()
        for (row, _, book), games in facts.counts.items():
            if book is Book.EVAL:
                self._played[row] += games
        # Computed once, because a league may have thousands of snapshots that wait for matches.
        self._rated = [
            rating.player.name
            for rating in facts.ratings
            if can_be_evaluated(rating.player)
            and rating.player.state is PlayerState.ACTIVE
            and not is_imported(rating.player)
        ]
        self._imported = [
            player.name
            for player in facts.players.values()
            if is_imported(player) and SnapshotName.parse(player.name).run != FILES
        ]
        self.gates = [gate for gate in facts.gates if gate.state is GateState.OPEN]
        self.snapshots = [
            player
            for player in facts.players.values()
            if can_be_evaluated(player) and not is_imported(player)
        ]

    @property
    def evaluated(self) -> list[Player]:
        """Snapshots that have played their first matches."""
        wanted = self._settings.first_matches
        return [player for player in self.snapshots if self._played[player.name] >= wanted]

    @property
    def budget(self) -> int:
        """Returns how many clean matches (both players frozen) may still be allocated.

        The matches that every milestone (a snapshot to measure precisely) plays do not use up the
        budget. Further matches of a milestone do, because otherwise their number would have no
        limit.
        """
        milestones = {player.name for player in self.snapshots if player.milestone}
        sampled, greedy = self._settings.milestone_matches, self._settings.greedy_matches
        spent = 0
        for (*pair, book), games in self.facts.counts.items():
            if not milestones.isdisjoint(pair):
                with_bot = not set(self.bots).isdisjoint(pair)
                games = max(0, games - (sampled if with_bot and book is Book.EVAL else greedy))
            spent += games
        others = len(self.snapshots) - len(milestones)
        return max(0, self._settings.matches_per_snapshot * others - spent // 2)

    def newest(self) -> list[Player]:
        """The newest snapshot of each main."""
        mains = filter(is_mains_snapshot, self.snapshots)
        return list({SnapshotName.parse(player.name).lineage: player for player in mains}.values())

    def batches(self) -> list[list[Batch]]:
        """Returns the batches for requests, for snapshots and rivals, and for milestones."""
        return [
            list(filter(None, map(self._requested, self.facts.requests))),
            [
                *filter(None, map(self._first, reversed(self.snapshots))),
                *filter(
                    None, map(self._first_of_rival, filter(is_met, self.facts.players.values()))
                ),
                *filter(None, map(self._against_exploiters, self.newest())),
            ],
            [
                batch
                for player in reversed(self.snapshots)
                if player.milestone and (batch := self._milestone(player))
            ],
        ]

    def games(self, entry: Entry) -> int:
        """Returns how many matches of an entry are in the log."""
        return self.facts.counts.get((entry.player, entry.opponent, entry.book), 0)

    def most_telling(self, chosen: Mapping[tuple[str, str], int]) -> Batch | None:
        """Returns a batch with the matches that `allocate` has chosen.

        Args:
            chosen: for each pair of players, the number of further matches.
        """
        asked = (Entry(*names, Book.EVAL, count) for names, count in chosen.items())
        return self._batch(
            "", (entry._replace(until=entry.until + self.games(entry)) for entry in asked)
        )

    # --- the batches

    def _batch(self, subject: str, wanted: Iterable[Entry], **more: bool) -> Batch | None:
        """Returns a batch of the entries that lack matches and can be played. If there are no such
        entries, returns None.
        """
        due = (
            entry._replace(pairs=(entry.until - self.games(entry) + 1) // 2)
            for entry in wanted
            if self.facts.can_meet(entry.player, entry.opponent)
        )
        entries = tuple(entry for entry in due if entry.pairs > 0)
        return Batch(subject, entries, **more) if entries else None

    def _requested(self, evaluation: Evaluation) -> Batch | None:
        entries, room = list[Entry](), BATCH_MATCHES
        for entry in (Entry(*target) for target in targets(evaluation)):
            games = self.games(entry)
            count = min(room, max(0, entry.until - games))
            entries.append(entry._replace(until=games + count))
            room -= count
        return self._batch(evaluation.player, entries)

    def _first(self, player: Player) -> Batch | None:
        """Returns the first matches of a snapshot that are still missing. The number of a
        snapshot's first matches is fixed. All of the snapshot's clean matches count toward this
        number, whoever the opponent.
        """
        missing = self._settings.first_matches - self._played[player.name]
        if missing <= 0:
            return None
        pairs, room = Counter[str](), self._settings.first_matches // 2
        for name, count in self._opponents(player):
            pairs[name] += min(count, room)
            room -= min(count, room)
            if not room:
                break
        met = self._batch(
            player.name,
            [Entry(player.name, name, Book.EVAL, 2 * count) for name, count in pairs.items()],
        )
        return met and _shortened(met, -(-missing // 2))

    def _first_of_rival(self, rival: Player) -> Batch | None:
        """Returns the first matches of a rival, against snapshots of all ages. A milestone's many
        matches against the rival don't replace the matches against the other snapshots.
        """
        active = [player.name for player in self.snapshots if player.state is PlayerState.ACTIVE]
        spaced = {active[-1 - index * len(active) // MET] for index in range(MET) if active}
        wanted = self._settings.first_matches
        counts = (
            self.facts.counts.get((one.name, rival.name, Book.EVAL)) for one in self.snapshots
        )
        has_met = sum(map(bool, counts)) >= len(spaced)
        if (has_met and self._played[rival.name] >= wanted) or not spaced:
            return None
        each = 2 * -(-wanted // (2 * len(spaced)))
        return self._batch(
            rival.name,
            [Entry(name, rival.name, Book.EVAL, each) for name in active if name in spaced],
        )

    def _opponents(self, player: Player) -> Iterator[tuple[str, int]]:
        """Yields an endless series of opponents, the most informative first, each with a number of
        pairs.
        """
        neighbours, parent = list[str](), player.parent
        while len(neighbours) < 2 and parent in self.facts.players:
            neighbours.append(parent)
            parent = self.facts.players[parent].parent
        others = (name for name in self._rated if name not in (*neighbours, player.name))
        strongest = list(islice(others, STRONGEST))
        chosen = dict(zip(neighbours, (PARENT, GRANDPARENT), strict=False))
        chosen |= dict.fromkeys(strongest, STRONG) | dict.fromkeys(self._awaited(player), AWAITED)
        first = [(name, n) for name, n in chosen.items() if self._is_usable(player, name)]
        close = [
            (name, CLOSE)
            for name in self._by_closeness(player)
            if name not in chosen and self._is_usable(player, name)
        ]
        yield from first
        yield from cycle(close or first)

    def _is_usable(self, player: Player, name: str) -> bool:
        other = self.facts.players.get(name)
        return (
            other is not None
            and other.state is not PlayerState.QUARANTINED
            and self.facts.can_meet(player.name, name)
        )

    def _awaited(self, player: Player) -> list[str]:
        """Returns the bot that the snapshot's learner has to beat to end its present stage."""
        lineage = SnapshotName.parse(player.name).lineage
        return [
            status.stage.until_opponent
            for status in self.facts.curricula
            if status.player == lineage and status.stage.until_opponent
        ]

    def _by_closeness(self, player: Player) -> list[str]:
        """Returns bots, rivals and imported snapshots. The players whose ratings are closest to the
        rating of `player` come first.
        """
        mu = self._mu.get(player.name, self._mu.get(player.parent))
        if mu is None:
            return [*self.bots, *self._imported]

        def distance(name: str) -> float:
            return abs(self._mu[name] - mu) if name in self._mu else 0.0

        return sorted([*self.bots, *self._imported], key=distance)

    def _against_exploiters(self, player: Player) -> Batch | None:
        if player.role is not Role.MAIN:
            return None
        met = (name for name in exploiters_to_meet(self.facts.gates, player))
        entries = [
            Entry(player.name, name, Book.EVAL, EXPLOITER_MATCHES)
            for name in met
            if self._is_usable(player, name)
        ]
        return self._batch(player.name, entries, of_exploiters=True)

    def _milestone(self, player: Player) -> Batch | None:
        """Returns the matches of a milestone (a snapshot to measure precisely): against all bots,
        with sampled and with greedy actions, and against some earlier snapshots of the same
        learner.
        """
        matches, greedy = self._settings.milestone_matches, self._settings.greedy_matches
        lineage = lineage_of(player.name)
        before = [
            snapshot.name
            for snapshot in self.snapshots
            if snapshot.step < player.step and lineage_of(snapshot.name) == lineage
        ]
        spaced = {before[index * len(before) // ANCESTORS] for index in range(ANCESTORS) if before}
        names = [name for name in self.bots if self._is_usable(player, name)]
        entries = [Entry(player.name, name, Book.EVAL, matches) for name in names]
        entries += [Entry(player.name, name, Book.GREEDY, greedy) for name in names]
        ancestors = [name for name in before if name in spaced and self._is_usable(player, name)]
        entries += [Entry(player.name, name, Book.EVAL, greedy) for name in ancestors]
        return self._batch(player.name, entries)


@dataclass(frozen=True, kw_only=True)
class NextWork:
    """Describes an evaluator's next work: the gate (test) of a candidate, or else batches.

    Attributes:
        turn: index of the chosen kind of work. Pass it to the next call of `next_work`.
        subject: the player whose gate or batch comes first, "" if nothing is due.
        waiting: the subjects of everything else that is due.
        gate: the gate, or None.
        awaited: the batch of the newest snapshot, or None. This batch is played alone, because
            learners wait for its result.
        batches: batches to play together. They come next if there is no awaited batch, or if other
            evaluators have leased all matches of the awaited batch.
        has_room: whether further matches, which `allocate` chooses, may be played together with
            `batches`. It is false if `batches` has too many matches already, or if the budget of
            clean matches is spent.
    """

    turn: int
    subject: str = ""
    waiting: tuple[str, ...] = ()
    gate: CandidateGate | None = None
    awaited: Batch | None = None
    batches: tuple[Batch, ...] = ()
    has_room: bool = False


def next_work(plan: Plan, turn: int) -> NextWork:
    """Chooses the next work. `turn` is the index of the kind of work that had the last turn, 0 at
    the start.

    The gates (tests) of exploiters come first. Gates of mains (ordinary learners), requests,
    snapshots and milestones take turns. Small batches are played together, which costs almost no
    extra time.
    """
    facts, kinds = plan.facts, list[Sequence[CandidateGate | Batch]]([plan.gates])
    for kind in plan.batches():
        now = (
            replace(batch, entries=tuple(x for x in batch.entries if facts.can_begin(*x[:2])))
            for batch in kind
        )
        kinds.append([batch for batch in now if batch.entries])
    order = [(turn + offset) % len(kinds) for offset in range(1, len(kinds) + 1)]
    due = [(kind, item) for kind in order for item in kinds[kind]]
    due.sort(key=lambda pair: not (isinstance(pair[1], CandidateGate) and pair[1].is_exploiters))
    subject, waiting = "", tuple[str, ...]()
    if due:
        subject, *others = dict.fromkeys(_subject(item) for _, item in due)
        turn, waiting = due[0][0], tuple(others)
        if isinstance(due[0][1], CandidateGate):
            return NextWork(turn=turn, subject=subject, waiting=waiting, gate=due[0][1])
    newest = plan.snapshots[-1].name if plan.snapshots else ""
    ready = [item for _, item in due if isinstance(item, Batch)]
    awaited = next((batch for batch in ready if batch.subject == newest), None)
    batches, matches = list[Batch](), 0
    for batch in ready:
        if batch is not awaited and (not batches or matches + batch.matches <= TOGETHER):
            batches.append(batch)
            matches += batch.matches
    total = matches + ALLOCATED
    return NextWork(
        turn=turn,
        subject=subject,
        waiting=waiting,
        awaited=awaited,
        batches=tuple(batches),
        has_room=total <= TOGETHER and plan.budget >= total,
    )


def _subject(item: CandidateGate | Batch) -> str:
    return item.candidate if isinstance(item, CandidateGate) else item.subject
