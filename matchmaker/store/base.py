"""The store's contract: one writer's transactions, concurrent readers, replies kept by request id.

Everything that a transaction writes is on disk when `write` or `once`
returns, or not there at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from league.players import Event, MatchResult, Player
from matchmaker.store.rows import (
    AggregateRow,
    AssignmentRow,
    BeatRow,
    DrawRow,
    IncarnationRow,
    ResultRow,
)

T = TypeVar("T")


class Reader(ABC):
    """A consistent look at what is committed."""

    @abstractmethod
    def select(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        """Any query over the tables of `store.schema`: for the invariants, which are written in
        SQL.
        """

    @abstractmethod
    def meta(self, key: str) -> str | None: ...

    @abstractmethod
    def players(self) -> list[Player]:
        """In order of registration."""

    @abstractmethod
    def incarnation(self, number: int) -> IncarnationRow | None: ...

    @abstractmethod
    def newest_incarnations(self) -> list[IncarnationRow]:
        """The newest of each worker."""

    @abstractmethod
    def beat(self, incarnation: int) -> BeatRow | None: ...

    @abstractmethod
    def assignment(self, match_id: str) -> AssignmentRow | None: ...

    @abstractmethod
    def assignments(self, first: int, count: int) -> list[AssignmentRow]:
        """Those of `count` ordinals from `first` on, in order."""

    @abstractmethod
    def matches_beginning(self, start: str, limit: int) -> list[str]:
        """Ids of matches that begin so, in order, `limit` of them at most."""

    @abstractmethod
    def open_assignments(self, incarnation: int | None = None) -> list[AssignmentRow]:
        """Open leases, of one incarnation or all, in order of assignment."""

    @abstractmethod
    def open_count(self, incarnation: int) -> int:
        """How many leases an incarnation holds open."""

    @abstractmethod
    def replacement(self, match_id: str) -> str | None:
        """Match that carries this one on."""

    @abstractmethod
    def draw(self, number: int) -> DrawRow | None: ...

    @abstractmethod
    def result(self, ordinal: int) -> ResultRow | None: ...

    @abstractmethod
    def results(self, after: int = 0, until: int | None = None) -> Iterator[ResultRow]:
        """In commit order, behind position `after`, up to position `until`."""

    @abstractmethod
    def stats(self, row: ResultRow) -> tuple[dict[str, float], dict[str, float]]:
        """Behaviour numbers of both seats."""

    @abstractmethod
    def events(self, after: int, limit: int) -> list[Event]:
        """In order; that of a result too."""

    @abstractmethod
    def policy_json(self, log_position: int) -> str | None:
        """The settings by which was drawn last when the log was so long; before any draw the
        newest.
        """

    @abstractmethod
    def events_of(self, *kinds: str) -> list[Event]:
        """All of these kinds, in order; those of results are not kept by themselves."""

    @abstractmethod
    def category_counts(
        self, after: int = 0, until: int | None = None
    ) -> list[tuple[str, str, str, int]]:
        """(player, mix, category, matches) of all drawn assignments but carried ones, of
        ordinals behind `after` up to `until`.
        """

    @abstractmethod
    def match_at(self, position: int) -> str:
        """Match of the result at a position of the log, "" where there is none."""

    @abstractmethod
    def aggregates(self, until: int | None = None) -> Iterator[AggregateRow]:
        """What is kept of results up to position `until`, newest first."""

    @abstractmethod
    def next_deadline(self, incarnation: int) -> float | None:
        """Of an incarnation's open leases; none when it has none."""

    @abstractmethod
    def overdue(self, now: float, before: float) -> list[AssignmentRow]:
        """Open leases whose deadline has passed, in order of assignment. Progress does not move
        it for those whose first deadline was `before`.
        """

    @abstractmethod
    def positions(self) -> tuple[int, int, int]:
        """Newest result, event and assignment: (position, position, ordinal)."""


class Transaction(Reader):
    """One writer's transaction: reads see its own writes."""

    @abstractmethod
    def set_meta(self, key: str, value: str) -> None: ...

    @abstractmethod
    def add_player(self, player: Player) -> None: ...

    @abstractmethod
    def update_player(self, player: Player) -> None:
        """Writes state and milestone; nothing else of a player ever changes."""

    @abstractmethod
    def add_incarnation(self, row: IncarnationRow) -> int:
        """`row.number` is ignored; returns the new one."""

    @abstractmethod
    def fence(self, worker: str, by: int) -> list[int]:
        """Marks the worker's unfenced incarnations before `by`, and returns them."""

    @abstractmethod
    def set_beat(self, row: BeatRow) -> None: ...

    @abstractmethod
    def add_policy(self, policy_hash: str, body_json: str, at: float) -> bool:
        """Whether it is new."""

    @abstractmethod
    def add_draw(self, row: DrawRow) -> int: ...

    @abstractmethod
    def add_assignments(self, rows: Sequence[AssignmentRow]) -> None: ...

    @abstractmethod
    def close_leases(self, ordinals: Iterable[int], state: str, at: float, reason: str) -> None: ...

    @abstractmethod
    def extend_leases(self, incarnation: int, deadline: float) -> None:
        """Moves the deadline of the incarnation's open leases, never back."""

    @abstractmethod
    def renew_leases(self, deadline: float) -> None:
        """Gives every open lease this deadline, also where it had a later one."""

    @abstractmethod
    def add_results(
        self, taken: Sequence[tuple[MatchResult, AssignmentRow, bool]], received_at: float
    ) -> list[ResultRow]:
        """Adds results with their leases, and whether they came late; they follow one another in
        the log.
        """

    @abstractmethod
    def announce(self, results: Sequence[ResultRow]) -> int:
        """Adds the events of results that were added in one call; returns the last one's
        position.
        """

    @abstractmethod
    def lose_results(self, player: str, after: int, by: int) -> int:
        """Marks a live player's train results behind a position as lost, those that earlier
        incarnations of the worker of the incarnation `by` reported; returns how many.
        """

    @abstractmethod
    def add_events(self, events: Sequence[Event]) -> int:
        """Positions are given here; returns the newest."""

    @abstractmethod
    def add_aggregates(self, row: AggregateRow) -> None:
        """In place of those at its position."""

    @abstractmethod
    def forget_aggregates(self, *, behind: int | None = None, newest: int = 0) -> None:
        """Those behind a position of the log, or all but the `newest`."""

    @abstractmethod
    def forget_requests(self, before: float) -> int: ...

    @abstractmethod
    def after_commit(self, effect: Callable[[], None]) -> None:
        """Moves memory on, by `effect`, before anybody else's request or question meets it
        (`Store.follow`).

        That is once the transaction is on disk. Where another request shares its commit, it is once
        this one's part is through, and readers of memory are held off until all of it is on disk.
        """


def _uncounted(seconds: float) -> None: ...


class Store(ABC):
    """A league's log. One process may hold it for writing.

    `on_commit` hears how many seconds each commit took until it was on disk.
    """

    on_commit: Callable[[float], None] = staticmethod(_uncounted)

    @abstractmethod
    def follow(
        self,
        rebuild: Callable[[], None],
        held: AbstractContextManager[Any],
        told: Callable[[], None],
    ) -> None:
        """Names what memory of the log is.

        Args:
            rebuild: brings it level with the log anew, in place of effects that failed or whose
            commit did;
                again before each further transaction until it succeeds.
            held: keeps readers of memory out while it is ahead of the disk.
            told: called behind every commit.
        """

    @abstractmethod
    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction that commits at the end of the block and rolls back on any exception.

        Raises:
            StorageFull: no space; nothing of it is there.
            Refused: the store is open for reading only.
            Unavailable: memory can't follow the log; what was committed is on disk.
        """

    @abstractmethod
    def submit(self, effect: Callable[[Transaction], T]) -> T:
        """What `effect` returns, once it is on disk; concurrent ones share a commit.

        They run one behind the other, in the order they came. One that raises leaves nothing, and
        the others of its commit go on. Raises what `write` does, and what `effect` raised.
        """

    @abstractmethod
    def once(
        self,
        request_id: str,
        method: str,
        fingerprint: str,
        at: float,
        effect: Callable[[Transaction], bytes],
    ) -> bytes:
        """The reply of `effect`, which takes place once however often this is called with this id.

        Raises:
            InvalidInput: the id was used for another request.
        """

    @abstractmethod
    def read(self) -> AbstractContextManager[Reader]:
        """A reader that any thread may use beside the writer."""

    @abstractmethod
    def close(self) -> None:
        """Twice is fine."""
