"""Combines the state on which the matchmaker's calls work."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from league.clock import Clock, SystemClock
from league.errors import Fenced, NotFound, Quarantined, VersionMismatch
from league.players import EVENT_KINDS, Event, Player, Verdict
from league.status import Vitals
from matchmaker import limits
from matchmaker.settings import MatchmakerSettings
from matchmaker.state import folding
from matchmaker.state.folding import Fold
from matchmaker.state.view import LeagueView
from matchmaker.store.rows import DrawRow, FoldRow, IncarnationRow
from matchmaker.store.sqlite import Memory, SqliteStore
from matchmaker.store.transaction import Reader, Transaction

GAME_VERSION = "game_version"
"""Key under which the log keeps the version of the game's rules. All results after the last event
`rules_changed` are from matches under this version.
"""
_PAYOFF_UNIT = "payoff_unit"


@dataclass
class League:
    """Combines a league's log, its state in memory, its settings and its clock."""

    store: SqliteStore
    settings: MatchmakerSettings
    clock: Clock = field(default_factory=SystemClock)
    view: LeagueView = field(default_factory=LeagueView)
    vitals: Callable[[], Vitals] = Vitals
    on_verdicts: Callable[[Sequence[Verdict]], None] = lambda verdicts: None
    fold_position: int = 0
    nodes: dict[str, str] = field(default_factory=dict)
    """The machine of each worker, from its newest heartbeat."""
    waiting: Callable[[], Mapping[str, tuple[str, float]]] = dict
    """Returns the workers that the supervisor waits for, with the reason, and since when."""
    _policies: dict[int, tuple[MatchmakerSettings, str]] = field(default_factory=dict)
    _stored_policy: str = ""

    def open(self, seed: int, new_epoch: bool = False) -> None:
        """Checks that the log belongs to the settings' game, records changed settings, and loads
        the league's state into memory.

        Raises:
            VersionMismatch: the log belongs to another game or to another version of its rules.
        """
        self.store.memory = Memory(self.view.lock, self._rebuild_view, self.view.wake)
        now, wanted = self.clock.now(), self.settings.game
        with self.store.write() as tx:
            tx.verify("meta")
            game = tx.meta("game")
            if game is None:
                tx.set_meta("game", wanted)
                tx.set_meta("seed", str(seed))
            elif game != wanted:
                raise VersionMismatch(
                    f"this league plays {game!r} but the settings say {wanted!r}: "
                    f"use another run folder, or set game.name = {game!r}"
                )
            version, stored = self.settings.game_version, tx.meta(GAME_VERSION)
            if version and not stored:
                tx.set_meta(GAME_VERSION, version)
            elif version and version != stored and not new_epoch:
                raise VersionMismatch(
                    f"the results of this league are of version {stored} of {wanted}'s rules, and "
                    f"{wanted} has version {version} here: use the Kumite and the game that it "
                    "was played with, or add --new-epoch, which begins new ratings"
                )
            if tx.meta(_PAYOFF_UNIT) != self.settings.payoff_unit:
                tx.set_meta(_PAYOFF_UNIT, self.settings.payoff_unit)
            self._load(tx)
            for name in self.view.steering.outdated(self.settings.mixes):
                text = f"mix {name!r} is as the settings say: they are newer than its change"
                self.log(tx, "mix_reset", text, mix=name)
            self._store_policy(tx)
            # so that workers keep their leases after downtime, or after the clock was set back
            tx.renew_leases(now + limits.LEASE_SECONDS, now + limits.LEASE_LIMIT_SECONDS)

    def open_read_only(self) -> None:
        """Loads the league's state and the newest sampling settings from the log."""
        with self.store.read() as reader:
            reader.verify("meta")
            self._load(reader)
            policy = json.loads(reader.policy_json() or "{}")
            self.settings = self.settings.under(policy).model_copy(
                update={
                    "game": reader.meta("game"),
                    "payoff_unit": reader.meta(_PAYOFF_UNIT) or "",
                }
            )

    def _load(self, reader: Reader) -> None:
        self.view.load(reader)
        usable = [row for row in reader.folds() if row.version == folding.VERSION]
        self.fold_position = usable[0].log_position if usable else 0
        self.seed = int(reader.meta("seed") or 0)

    def _rebuild_view(self) -> None:
        self.view.stale = True  # until the load succeeds
        with self.store.read() as reader:
            self.view.load(reader)
        self.view.wake()

    def reload_fold(self, reader: Reader) -> None:
        """Loads ratings and payoffs from the log again, after a worker's restart marked results as
        lost.
        """
        self.view.load_fold(reader)
        self.fold_position = 0

    def recount(self, reader: Reader) -> None:
        """Counts the results of clean matches (both players frozen) again after a worker's
        quarantine began or ended.
        """
        self.view.recount(reader)
        self.fold_position = 0

    def store_fold(self, fewest: int) -> None:
        """Writes the current fold (state after the whole log) to the log's database, if at least
        `fewest` results were folded since the last stored fold.

        Calls to the matchmaker have to wait meanwhile. `matchmaker.acts.fold` stores folds without
        blocking calls.
        """
        view = self.view
        with view.lock:
            fold = view.fold
            if fold.books.log_position - self.fold_position < fewest:
                return
            row = fold.row(self.clock.now())
        self.add_fold(fold, row)

    def add_fold(self, fold: Fold, row: FoldRow) -> None:
        """Stores `row` if memory still holds `fold`, the state on which the row is based."""

        def stored() -> None:
            self.fold_position = row.log_position

        with self.store.write() as tx:
            if self.view.fold is fold:  # it is replaced when results no longer count
                tx.add_fold(row, folding.KEPT)
                tx.after_commit(stored)

    def log(self, tx: Transaction, kind: str, text: str, /, **data: Any) -> Event:
        """Adds an event to the log, with the position of the newest result. Memory is updated after
        the commit.

        Args:
            tx: the transaction.
            kind: one of `EVENT_KINDS`.
            text: a sentence for people.
            data: further fields.
        """
        assert kind in EVENT_KINDS, kind
        encoded = json.dumps({**data, "log_position": tx.positions()[0]}, separators=(",", ":"))
        event = tx.add_event(self.clock.now(), kind, text, encoded)
        tx.after_commit(lambda: self.view.add_event(event))
        return event

    def add_draw(self, tx: Transaction, body_json: str, stream: int | None = None) -> int:
        """Records why the next matches are made: a draw from probabilities, or players that were
        paired by name.

        Args:
            tx: the transaction.
            body_json: the draw table, or the reason why named players are paired.
            stream: seed of the random stream, None for matches paired by name.

        Returns:
            The record's number.
        """
        self._store_policy(tx)
        now = self.view.log_position, self.view.event_position
        return tx.add_draw(DrawRow(0, self.policy_hash, *now, stream, body_json))

    @property
    def sampling(self) -> MatchmakerSettings:
        """Returns the settings by which new matches are drawn: `settings` with the operators'
        changes of mixes applied.
        """
        return self._policy[0]

    @property
    def policy_hash(self) -> str:
        return self._policy[1]

    @property
    def _policy(self) -> tuple[MatchmakerSettings, str]:
        steering = self.view.steering
        if steering.number not in self._policies:
            settings = self.settings.under({"mixes": steering.mixes(self.settings.mixes)})
            self._policies = {steering.number: (settings, settings.policy_hash())}
        return self._policies[steering.number]

    def _store_policy(self, tx: Transaction) -> None:
        """Stores the settings that draws depend on, unless the log has them."""
        settings, policy = self._policy
        if policy == self._stored_policy:
            return
        policy_json = json.dumps(settings.policy(), sort_keys=True)
        if tx.add_policy(policy, policy_json, self.clock.now()):
            text = "recorded the settings by which opponents are drawn"
            self.log(tx, "configuration", text, policy=policy)
        tx.after_commit(lambda: setattr(self, "_stored_policy", policy))

    def player(self, name: str) -> Player:
        """Returns a player, or raises `NotFound`."""
        player = self.view.players.get(name)
        if player is None:
            hint = "`bin/league players` lists them, register a new one first"
            raise NotFound(f"there is no player {name[:80]!r}: {hint}")
        return player

    def incarnation(self, reader: Reader, number: int) -> IncarnationRow:
        """Returns the incarnation (start of a worker) with a number, or raises `NotFound`."""
        row = reader.incarnation(number)
        if row is None:
            raise NotFound(f"there is no incarnation {number}: open one first with OpenIncarnation")
        return row

    def trusted_incarnation(self, reader: Reader, number: int) -> IncarnationRow:
        """Returns an incarnation (start of a worker). It must be the worker's newest incarnation,
        and the worker must not be in quarantine.

        Raises:
            Quarantined: the worker is in quarantine.
            Fenced: a newer start of the worker has replaced this incarnation, or the game's rules
                have changed.
            NotFound: there is no such incarnation.
        """
        row = self.current_incarnation(reader, number)
        if refusal := self.view.quarantines.sentence(row.worker):
            raise Quarantined(refusal)
        return row

    def current_incarnation(self, reader: Reader, number: int) -> IncarnationRow:
        """Returns an incarnation (start of a worker), which must be the newest incarnation of its
        worker.

        Raises:
            Fenced: a newer start of the worker has replaced this incarnation, or the game's rules
                have changed.
            NotFound: there is no such incarnation.
        """
        row = self.incarnation(reader, number)
        if row.fenced_by is not None:
            raise Fenced(
                f"incarnation {number} of {row.worker} is fenced: {row.fenced_by} took its place, "
                "so stop this one"
            )
        if self.view.is_of_other_rules(row):
            raise Fenced(
                f"incarnation {number} of {row.worker} was opened before the game's rules changed: "
                "start the worker again"
            )
        return row
