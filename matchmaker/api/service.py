"""The gRPC servicer: decode, call an act, encode. Each mutation runs once for its request id."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from league.errors import InvalidInput, Unavailable
from league.players import Book, MatchResult, Pairing, Player, PlayerKind, PlayerState, Verdict
from league.rpc.convert import from_enum, from_message, to_enum, to_message
from league.stages import Place, Stage, StageRequest
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceServicer
from matchmaker import limits
from matchmaker.acts import (
    assign,
    checks,
    incarnate,
    lease,
    operate,
    register,
    report,
    retiring,
    stage,
)
from matchmaker.api import queries
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction

Reply = TypeVar("Reply", bound=Message)
Body = Callable[["MatchmakerService", Any, Transaction], Reply]
WATCH_PAGE = 500
WATCH_POLL_SECONDS = 1.0


def _mutation(reply: type[Reply]) -> Callable[[Body[Reply]], Any]:
    """Makes a servicer's method of a body that gets a transaction and runs once for its request."""

    def decorate(body: Body[Reply]) -> Any:
        @wraps(body)
        def method(self: MatchmakerService, request: Any, context: Any) -> Reply:
            return self.once(request, reply, lambda tx: body(self, request, tx))

        return method

    return decorate


class MatchmakerService(MatchmakerServiceServicer):
    """Serves one league. `stopping` ends the watch streams."""

    def __init__(self, league: League, *, read_only: bool = False) -> None:
        self.league = league
        self.read_only = read_only
        self.stopping = threading.Event()
        self._watchers = threading.Semaphore(limits.MAX_WATCHERS)

    def once(
        self, request: Any, reply: type[Reply], effect: Callable[[Transaction], Reply]
    ) -> Reply:
        """The reply of `effect`, which runs once however often the request is sent."""
        checks.identifier(request.request_id, "request_id")
        stored = self.league.store.once(
            request.request_id,
            type(request).__name__,
            fingerprint(request),
            self.league.clock.now(),
            lambda tx: effect(tx).SerializeToString(),
        )
        return reply.FromString(stored)

    @_mutation(m.RegisterPlayersResponse)
    def RegisterPlayers(self, request: Any, tx: Transaction) -> m.RegisterPlayersResponse:
        players = [from_message(Player, player) for player in request.players]
        registered, retired = register.register_players(
            self.league, tx, players, request.incarnation
        )
        return m.RegisterPlayersResponse(players=map(to_message, registered), retired=retired)

    @_mutation(m.OpenIncarnationResponse)
    def OpenIncarnation(self, request: Any, tx: Transaction) -> m.OpenIncarnationResponse:
        opened = incarnate.open_incarnation(
            self.league,
            tx,
            request.worker,
            request.player,
            request.checkpoint_step,
            request.checkpoint_log_position,
            request.carried_matches,
        )
        return m.OpenIncarnationResponse(
            incarnation=opened.number,
            carried=map(to_message, opened.carried),
            lost_results=opened.lost_results,
        )

    @_mutation(m.AcquireMatchesResponse)
    def AcquireMatches(self, request: Any, tx: Transaction) -> m.AcquireMatchesResponse:
        found = assign.acquire_matches(
            self.league, tx, request.incarnation, request.count, request.mix
        )
        return m.AcquireMatchesResponse(assignments=map(to_message, found))

    @_mutation(m.AcquirePairingsResponse)
    def AcquirePairings(self, request: Any, tx: Transaction) -> m.AcquirePairingsResponse:
        pairings = [from_message(Pairing, pairing) for pairing in request.pairings]
        found = assign.acquire_pairings(self.league, tx, request.incarnation, pairings)
        return m.AcquirePairingsResponse(assignments=map(to_message, found))

    @_mutation(m.ReleaseMatchesResponse)
    def ReleaseMatches(self, request: Any, tx: Transaction) -> m.ReleaseMatchesResponse:
        given = request.incarnation, request.match_ids, request.reason
        return m.ReleaseMatchesResponse(released=lease.release_matches(self.league, tx, *given))

    @_mutation(m.ReportResultsResponse)
    def ReportResults(self, request: Any, tx: Transaction) -> m.ReportResultsResponse:
        results = [_decoded(result) for result in request.results]
        verdicts, position = report.report_results(self.league, tx, request.incarnation, results)
        return m.ReportResultsResponse(verdicts=map(to_message, verdicts), log_position=position)

    def Heartbeat(self, request: m.HeartbeatRequest, context: Any) -> m.HeartbeatResponse:
        fenced, deadline, asked = self.league.store.submit(
            lambda tx: incarnate.heartbeat(
                self.league,
                tx,
                request.incarnation,
                request.progress,
                request.step,
                request.mix,
                request.activity,
                request.metrics,
            )
        )
        return m.HeartbeatResponse(fenced=fenced, lease_deadline=deadline, asked=_optional(asked))

    @_mutation(m.KeepReferencesResponse)
    def KeepReferences(self, request: Any, tx: Transaction) -> m.KeepReferencesResponse:
        retired, returned = retiring.keep_references(
            self.league, tx, request.incarnation, request.names
        )
        return m.KeepReferencesResponse(retired=retired, returned=returned)

    @_mutation(m.EnterStageResponse)
    def EnterStage(self, request: Any, tx: Transaction) -> m.EnterStageResponse:
        asked = stage.enter_stage(
            self.league,
            tx,
            request.incarnation,
            request.step,
            [from_message(Stage, one) for one in request.stages],
            from_message(Place, request),
            request.reason,
        )
        return m.EnterStageResponse(asked=_optional(asked))

    @_mutation(m.AskStageResponse)
    def AskStage(self, request: Any, tx: Transaction) -> m.AskStageResponse:
        asked = stage.ask_stage(self.league, tx, request.player, request.stage, request.by)
        return m.AskStageResponse(asked=_optional(asked))

    @_mutation(m.PinRatingResponse)
    def PinRating(self, request: Any, tx: Transaction) -> m.PinRatingResponse:
        mu = None if request.unpin else request.mu
        position = operate.pin(self.league, tx, request.player, mu, request.by)
        return m.PinRatingResponse(log_position=position)

    @_mutation(m.QuarantineResponse)
    def Quarantine(self, request: Any, tx: Transaction) -> m.QuarantineResponse:
        given = self.league, tx, request.player, request.by
        if request.release:
            return m.QuarantineResponse(state=to_enum(operate.release(*given)))
        return m.QuarantineResponse(state=to_enum(operate.quarantine(*given, request.reason)))

    def GetCurricula(self, request: m.GetCurriculaRequest, context: Any) -> m.GetCurriculaResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            found = stage.curricula(self.league, reader)
        return m.GetCurriculaResponse(curricula=map(to_message, found))

    def ListPlayers(self, request: m.ListPlayersRequest, context: Any) -> m.ListPlayersResponse:
        checks.number(len(request.kinds), "kinds", 0, checks.MAX_KINDS)
        checks.number(len(request.states), "states", 0, checks.MAX_KINDS)
        kinds = {from_enum(PlayerKind, kind) for kind in request.kinds} or set(PlayerKind)
        states = {from_enum(PlayerState, state) for state in request.states} or set(PlayerState)
        view = self.league.view.checked()
        with view.lock:
            players = list(view.players.values())
        found = (one for one in players if one.kind in kinds and one.state in states)
        return m.ListPlayersResponse(players=map(to_message, found))

    def GetRatings(self, request: m.GetRatingsRequest, context: Any) -> m.GetRatingsResponse:
        book = from_enum(Book, request.book, Book.EVAL)
        view = self.league.view.checked()
        with view.lock:
            table = view.tables[book]
            ratings, anchors = table.leaderboard(view.players), table.anchors()
            position, event = view.books.log_position, view.books.event_position
        return m.GetRatingsResponse(
            ratings=map(to_message, ratings),
            log_position=position,
            anchors=anchors,
            event_position=event,
        )

    def GetPayoff(self, request: m.GetPayoffRequest, context: Any) -> m.GetPayoffResponse:
        book = from_enum(Book, request.book, Book.EVAL)
        checks.names(request.rows, "rows")
        checks.names(request.columns, "columns")
        view = self.league.view.checked()
        with view.lock:
            cells = view.tables[book].payoff.cells(request.rows, request.columns)
            position, event = view.books.log_position, view.books.event_position
        return m.GetPayoffResponse(
            cells=map(to_message, cells), log_position=position, event_position=event
        )

    def GetMatch(self, request: m.GetMatchRequest, context: Any) -> m.GetMatchResponse:
        self.league.view.checked()
        with self.league.store.read() as reader:
            return to_message(queries.match_record(self.league, reader, request.match_id))

    def GetStatus(self, request: m.GetStatusRequest, context: Any) -> m.GetStatusResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            return to_message(queries.status(self.league, reader))

    def Watch(self, request: m.WatchRequest, context: grpc.ServicerContext) -> Iterator[m.Event]:
        """Streams events; only a read-only league ends the stream, as nothing more can happen."""
        checks.number(request.after, "after", -1, self.league.view.event_position)
        if not self._watchers.acquire(blocking=False):
            raise Unavailable(f"{limits.MAX_WATCHERS} clients watch already, the most: stop one")
        try:
            yield from self._events(request.after, context)
        finally:
            self._watchers.release()

    def _events(self, after: int, context: grpc.ServicerContext) -> Iterator[m.Event]:
        view = self.league.view
        position = view.durable_position if after < 0 else after
        while context.is_active() and not self.stopping.is_set():
            with self.league.store.read() as reader:
                page = reader.events(position, WATCH_PAGE)
            for event in page:
                position = event.position
                yield to_message(event)
            if page:
                continue
            if self.read_only:
                return
            with view.changed:
                if view.durable_position <= position:
                    view.changed.wait(WATCH_POLL_SECONDS)


def _decoded(message: t.Result) -> MatchResult | Verdict:
    """A malformed result is refused alone; the others of its batch are accepted."""
    try:
        return from_message(MatchResult, message)
    except InvalidInput as error:
        return report.refused(message.match_id, error)


def _optional(value: StageRequest | None) -> Any:
    return None if value is None else to_message(value)


def fingerprint(request: Message) -> str:
    """The hash by which a request is compared with another one of the same id."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
