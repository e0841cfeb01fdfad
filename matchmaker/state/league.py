"""What every operation of the matchmaker works on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from league.clock import Clock, SystemClock
from league.errors import Fenced, NotFound, VersionMismatch
from league.players import EVENT_KINDS, Event, Verdict, Vitals
from matchmaker.sampling.draw import Stream, derived_seed
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import MARK_KINDS, Mark, marks_of
from matchmaker.state.history import moment_of
from matchmaker.state.view import LeagueView
from matchmaker.store.base import Reader, Store, Transaction
from matchmaker.store.rows import DrawRow, IncarnationRow


@dataclass
class League:
    """One league: its log, what memory holds of it, its settings and its clock."""

    store: Store
    settings: MatchmakerSettings
    clock: Clock = field(default_factory=SystemClock)
    view: LeagueView = field(default_factory=LeagueView)
    vitals: Callable[[], Vitals] = Vitals
    """How the service that serves it is."""
    on_verdicts: Callable[[Sequence[Verdict]], None] = lambda verdicts: None
    """Told of the verdicts on reported results, once each."""

    def open(self, seed: int) -> None:
        """Checks the log against the settings, records what changed in them, loads the view.

        Args:
            seed: of all draws of a new league; an old one keeps its own.

        Raises:
            VersionMismatch: the log is another game's.
        """
        self.store.follow(self._rebuild_view, self.view.lock, self.view.wake)
        with self.store.write() as tx:
            self._check_game(tx)
            self._record_settings(tx, seed)
            self._forgive_downtime(tx)
            self.view.load(tx)
        self.seed = int(self._meta("seed"))

    def open_read_only(self, at: str | None = None) -> None:
        """Loads the view, as the league is or, with `at`, as it was."""
        with self.store.read() as reader:
            if at is None:
                self.view.load(reader)
            else:
                self.view.load_moment(reader, moment_of(reader, at))
            # Whoever looks at a run knows nothing of its settings file: its log tells how it draws.
            policy = json.loads(reader.policy_json(self.view.log_position) or "{}")
            self.settings = self.settings.under(policy).model_copy(
                update={"game": reader.meta("game")}
            )

    def _rebuild_view(self) -> None:
        """After an effect that failed; until this succeeds, nobody is told what memory holds."""
        self.view.is_behind = True
        with self.store.read() as reader:
            self.view.load(reader)
        self.view.wake()

    def _meta(self, key: str) -> str:
        with self.store.read() as reader:
            value = reader.meta(key)
        assert value is not None
        return value

    def _check_game(self, tx: Transaction) -> None:
        game = tx.meta("game")
        if game is not None and game != self.settings.game:
            raise VersionMismatch(
                f"this league plays {game!r} but the settings say {self.settings.game!r}: "
                f"use another run folder, or set matchmaker.game = {game!r}"
            )

    def _record_settings(self, tx: Transaction, seed: int) -> None:
        now = self.clock.now()
        if tx.meta("game") is None:
            tx.set_meta("game", self.settings.game)
            tx.set_meta("seed", str(seed))
        policy_hash = self.settings.policy_hash()
        if tx.add_policy(policy_hash, json.dumps(self.settings.policy(), sort_keys=True), now):
            self.log(
                tx,
                "configuration",
                f"opponents are drawn by policy {policy_hash}",
                policy=policy_hash,
            )
        self._record_rating_settings(tx)

    def _record_rating_settings(self, tx: Transaction) -> None:
        """Those that a setting changes by hand; what is measured from the log has epochs of its
        own.
        """
        wanted = {
            "draw_probability": self.settings.draw_probability,
            "drift": self.settings.rating_drift,
        }
        by_hand = [
            mark.data for mark in marks_of(tx.events_of("rating_epoch")) if "book" not in mark.data
        ]
        if by_hand and {name: by_hand[-1].get(name) for name in wanted} == wanted:
            return
        after = tx.positions()[0]
        self.log(
            tx,
            "rating_epoch",
            f"from log position {after + 1} ratings expect {wanted['draw_probability']:.3g} draws a match "
            f"and learners to drift by {wanted['drift']:.3g} points² while their steps grow e-fold",
            **wanted,
        )

    def _forgive_downtime(self, tx: Transaction) -> None:
        """The matchmaker's own absence is not its workers' fault: their leases start anew.

        Also where the machine's clock was set back meanwhile: else they would live until it has
        caught up.
        """
        tx.renew_leases(self.clock.now() + self.settings.lease_seconds)

    def log(self, tx: Transaction, kind: str, text: str, /, **data: Any) -> int:
        """Adds an event, with the position of the newest result before it; returns its own.

        What ratings depend on is taken in by the view after the commit.
        """
        data["log_position"] = tx.positions()[0]
        position = self.log_all(tx, [self.event(kind, text, data)])
        if kind in MARK_KINDS:
            at = data["log_position"]
            mark = Mark(log_position=at, event_position=position, kind=kind, data=data)
            tx.after_commit(lambda: self.view.add_mark(mark))
        return position

    def event(self, kind: str, text: str, data: Mapping[str, Any]) -> Event:
        assert kind in EVENT_KINDS, kind
        encoded = json.dumps(data, separators=(",", ":"))
        return Event(position=0, at=self.clock.now(), kind=kind, text=text, data_json=encoded)

    def log_all(self, tx: Transaction, events: list[Event]) -> int:
        position = tx.add_events(events)
        tx.after_commit(lambda: self.view.set_event_position(position))
        return position

    def draw_row(self, body_json: str, stream: int | None = None) -> DrawRow:
        """What matches are drawn from now, to be stored."""
        return DrawRow(
            number=0,
            policy_hash=self.policy_hash,
            log_position=self.view.log_position,
            event_position=self.view.event_position,
            body_json=body_json,
            stream=stream,
        )

    @cached_property
    def stream(self) -> Stream:
        """That all opponents are drawn from, each from the words of its match's ordinal."""
        return Stream(derived_seed(self.seed))

    @cached_property
    def policy_hash(self) -> str:
        return self.settings.policy_hash()

    def incarnation(self, reader: Reader, number: int) -> IncarnationRow:
        """Raises `NotFound` when it was never opened."""
        row = reader.incarnation(number)
        if row is None:
            raise NotFound(f"there is no incarnation {number}: open one first with OpenIncarnation")
        return row

    def remembered_incarnation(self, tx: Transaction, number: int) -> IncarnationRow:
        """As `incarnation`, for calls that come thousands of times; not for what opens or fences
        one.

        In transactions alone: a reader beside them sees an incarnation unfenced until the commit
        that fences it, behind which nothing would take it out of memory again.
        """
        row = self.view.incarnations.get(number)
        if row is None:
            row = self.view.incarnations[number] = self.incarnation(tx, number)
        return row

    def current_incarnation(self, tx: Transaction, number: int) -> IncarnationRow:
        """Raises `Fenced` when a newer one of its worker exists."""
        return unfenced(self.remembered_incarnation(tx, number))


def unfenced(row: IncarnationRow) -> IncarnationRow:
    """Raises `Fenced` when a newer incarnation of its worker exists."""
    if row.fenced_by is not None:
        raise Fenced(
            f"incarnation {row.number} of {row.worker} is fenced: {row.fenced_by} took its place, "
            f"so stop this one"
        )
    return row
