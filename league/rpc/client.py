"""The typed client of the matchmaker: domain types in and out, errors as `league.errors` classes.

A call has one request id however often it is sent (`league.rpc.channel`), so it takes effect once.
A reply means: on disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from league.ids import new_id
from league.players import (
    Assignment,
    Book,
    Event,
    Incarnation,
    LeagueStatus,
    MatchRecord,
    MatchResult,
    Pairing,
    PayoffCell,
    Player,
    PlayerKind,
    PlayerState,
    Rating,
    Verdict,
)
from league.rpc import convert as wire
from league.rpc import convert_stages as wire_stages
from league.rpc import convert_status as wire_status
from league.rpc.client_exploiters import ExploiterCalls
from league.rpc.client_operators import OperatorCalls
from league.stages import CurriculumStatus, Place, Stage, StageRequest
from league.v1 import matchmaker_pb2 as m


class Beat(NamedTuple):
    """What a heartbeat is answered: whether a newer incarnation fenced this one, the leases' new
    deadline (Unix seconds), and the stage that the worker's learner is asked to enter, if there
    is one.
    """

    fenced: bool
    lease_deadline: float
    asked: StageRequest | None


class Leaderboard(NamedTuple):
    """Ratings of a book, best first; the anchors of all books; the newest result and event in
    them.
    """

    ratings: list[Rating]
    anchors: dict[str, float]
    log_position: int
    event_position: int


class Payoffs(NamedTuple):
    """Counts of the pairs of a book that met, and the newest result and event in them."""

    cells: list[PayoffCell]
    log_position: int
    event_position: int


class MatchmakerClient(ExploiterCalls, OperatorCalls):
    """The matchmaker's calls. Opening one never fails: the first call waits for the service."""

    def register_players(
        self, players: Iterable[Player], incarnation: int = 0
    ) -> tuple[list[Player], list[str]]:
        """Registers players, parents first, for a worker's `incarnation` if it has one; again is
        fine.

        Returns:
            The players as they stand, and the names that were retired because of ``max_saved``.

        Raises:
            AlreadyExists: a name is taken by something else.
            Fenced: a newer incarnation of this worker exists.
        """
        request = m.RegisterPlayersRequest(
            request_id=new_id(),
            players=map(wire.to_player, players),
            incarnation=_number(incarnation),
        )
        reply = self._call("RegisterPlayers", request)
        return [wire.from_player(player) for player in reply.players], list(reply.retired)

    def open_incarnation(
        self,
        worker: str,
        player: str = "",
        checkpoint_step: int = 0,
        checkpoint_log_position: int = 0,
        carried_matches: Sequence[str] = (),
    ) -> Incarnation:
        """Begins a worker's life and fences its earlier ones."""
        request = m.OpenIncarnationRequest(
            request_id=new_id(),
            worker=worker,
            player=player,
            checkpoint_step=checkpoint_step,
            checkpoint_log_position=checkpoint_log_position,
            carried_matches=carried_matches,
        )
        reply = self._call("OpenIncarnation", request)
        return Incarnation(
            number=reply.incarnation,
            carried=tuple(wire.from_assignment(a) for a in reply.carried),
            lost_results=reply.lost_results,
        )

    def acquire_matches(self, incarnation: int, count: int, mix: str) -> list[Assignment]:
        """Leases `count` matches of the incarnation's learner against opponents drawn by `mix`.

        Raises:
            Fenced: a newer incarnation of this worker exists.
        """
        request = m.AcquireMatchesRequest(
            request_id=new_id(), incarnation=_number(incarnation), count=count, mix=mix
        )
        return [wire.from_assignment(a) for a in self._call("AcquireMatches", request).assignments]

    def acquire_pairings(self, incarnation: int, pairings: Sequence[Pairing]) -> list[Assignment]:
        """Leases matches between named players: pairing by pairing, pair by pair, two seats
        each.
        """
        request = m.AcquirePairingsRequest(
            request_id=new_id(),
            incarnation=_number(incarnation),
            pairings=[wire.to_pairing(p) for p in pairings],
        )
        return [wire.from_assignment(a) for a in self._call("AcquirePairings", request).assignments]

    def release_matches(
        self, incarnation: int, match_ids: Sequence[str] = (), reason: str = ""
    ) -> int:
        """Hands leases back (all open ones when none is named) and returns how many."""
        request = m.ReleaseMatchesRequest(
            request_id=new_id(),
            incarnation=_number(incarnation),
            match_ids=match_ids,
            reason=reason,
        )
        return self._call("ReleaseMatches", request).released

    def report_results(
        self, incarnation: int, results: Sequence[MatchResult], request_id: str | None = None
    ) -> tuple[list[Verdict], int]:
        """Hands results in; each is accepted exactly once or refused with a reason.

        Returns:
            A verdict for each result, in order, and the log position of the newest result.
        """
        names = wire.stat_names_of(results)
        request = m.ReportResultsRequest(
            request_id=request_id or new_id(),
            incarnation=_number(incarnation),
            results=[wire.to_result(r, names) for r in results],
            stat_names=names,
            brief=True,
        )
        reply = self._call("ReportResults", request)
        if not reply.first_position:
            return [wire.from_verdict(v) for v in reply.verdicts], reply.log_position
        numbered = enumerate(results, start=reply.first_position)
        taken = [Verdict(match_id=r.match_id, accepted=True, log_position=n) for n, r in numbered]
        return taken, reply.log_position

    def heartbeat(
        self,
        incarnation: int,
        progress: int,
        step: int = 0,
        mix: str = "",
        activity: str = "",
        metrics: Mapping[str, float] | None = None,
    ) -> Beat:
        """Tells that the worker lives and how far it got (`progress`: frames played)."""
        request = m.HeartbeatRequest(
            incarnation=_number(incarnation),
            progress=progress,
            step=step,
            mix=mix,
            activity=activity,
            metrics=metrics or {},
        )
        reply = self._call("Heartbeat", request)
        return Beat(reply.fenced, reply.lease_deadline, wire_stages.request_of(reply))

    def keep_references(
        self, incarnation: int, names: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """Of a learner's references only these are drawn as opponents from now on.

        Returns:
            Names of those that retired, and of those that came back.
        """
        request = m.KeepReferencesRequest(
            request_id=new_id(), incarnation=_number(incarnation), names=list(names)
        )
        reply = self._call("KeepReferences", request)
        return list(reply.retired), list(reply.returned)

    def enter_stage(
        self, incarnation: int, step: int, stages: Iterable[Stage], place: Place, reason: str = ""
    ) -> StageRequest | None:
        """Tells a learner's stages and its place in them. Returns the request that it has yet to
        obey.
        """
        request = m.EnterStageRequest(
            request_id=new_id(),
            incarnation=_number(incarnation),
            step=step,
            stages=map(wire_stages.to_stage, stages),
            index=place.index,
            since_step=place.since_step,
            by_hand=place.by_hand,
            obeyed=place.obeyed,
            reason=reason,
        )
        return wire_stages.request_of(self._call("EnterStage", request))

    def anchors(self) -> dict[str, float]:
        """The pinned players with their points, with or without a match."""
        return self.leaderboard().anchors

    def curricula(self) -> list[CurriculumStatus]:
        """The stages of every learner that has told them, and which one is on."""
        reply = self._call("GetCurricula", m.GetCurriculaRequest())
        return [wire_stages.from_curriculum(curriculum) for curriculum in reply.curricula]

    def players(
        self, kinds: Iterable[PlayerKind] = (), states: Iterable[PlayerState] = ()
    ) -> list[Player]:
        """Players in order of registration, all or of these kinds and states."""
        request = m.ListPlayersRequest(
            kinds=[wire.to_kind(kind) for kind in kinds],
            states=[wire.to_state(state) for state in states],
        )
        return [wire.from_player(player) for player in self._call("ListPlayers", request).players]

    def ratings(self, book: Book = Book.EVAL) -> list[Rating]:
        """The leaderboard of a book, best first."""
        return self.leaderboard(book).ratings

    def leaderboard(self, book: Book = Book.EVAL) -> Leaderboard:
        """The leaderboard of a book, best first, with where in the log it stands."""
        reply = self._call("GetRatings", m.GetRatingsRequest(book=wire.to_book(book)))
        ratings = [wire.from_rating(rating) for rating in reply.ratings]
        return Leaderboard(ratings, dict(reply.anchors), reply.log_position, reply.event_position)

    def payoff(
        self, book: Book = Book.EVAL, rows: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> list[PayoffCell]:
        """Counts of every pair that met, from each row's point of view."""
        return self.payoffs(book, rows, columns).cells

    def payoffs(
        self, book: Book = Book.EVAL, rows: Sequence[str] = (), columns: Sequence[str] = ()
    ) -> Payoffs:
        """The same, with where in the log it stands."""
        request = m.GetPayoffRequest(book=wire.to_book(book), rows=rows, columns=columns)
        reply = self._call("GetPayoff", request)
        cells = [wire.from_cell(cell) for cell in reply.cells]
        return Payoffs(cells, reply.log_position, reply.event_position)

    def match(self, match_id: str) -> MatchRecord:
        """All that is known of a match, by its id or the beginning of it; raises `NotFound`."""
        return wire.from_match(self._call("GetMatch", m.GetMatchRequest(match_id=match_id)))

    def status(self) -> LeagueStatus:
        """Workers, open leases, and the shares of the mix in use."""
        return wire_status.from_status(self._call("GetStatus", m.GetStatusRequest()))

    def watch(self, after: int = 0) -> Iterator[Event]:
        """Events behind position `after` (-1: only new ones) as they come.

        It reconnects by itself and goes on behind the last event it gave. A matchmaker that
        serves read-only ends the stream behind its last event.
        """
        position = after

        def opened() -> Iterator[m.Event]:
            request = m.WatchRequest(after=position)
            return self._stub.Watch(request, wait_for_ready=False, metadata=self._metadata)

        for message in self._follow(opened):
            position = message.position
            yield wire_status.from_event(message)


def _number(incarnation: int | Incarnation) -> int:
    """Callers may hand over the whole `Incarnation`."""
    return incarnation.number if isinstance(incarnation, Incarnation) else incarnation
