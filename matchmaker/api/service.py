"""The gRPC face: decode, call the domain, encode. Every mutation runs once for its request id."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from league.errors import InvalidInput, Unavailable
from league.players import Assignment, Book, MatchResult, Player, Verdict
from league.rpc import convert as wire
from league.rpc import convert_stages as wire_stages
from league.rpc import convert_status as wire_status
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceServicer
from matchmaker.acts import assign as assigning
from matchmaker.acts import checks, retiring
from matchmaker.acts import incarnate as incarnations
from matchmaker.acts import lease as leases
from matchmaker.acts import pin as pins
from matchmaker.acts import register as registration
from matchmaker.acts import report as reporting
from matchmaker.acts import stage as curricula
from matchmaker.acts.quarantine import quarantine, release
from matchmaker.api import queries as reading
from matchmaker.state import bygone
from matchmaker.state.league import League
from matchmaker.store.base import Transaction

Reply = TypeVar("Reply", bound=Message)
WATCH_PAGE = 500
WATCH_POLL_SECONDS = 1.0
_SPAN = struct.Struct("<BQQ")
"""A zero, with which no message begins, and the first and number of the assignments (by ordinal)
or results (by log position) that a reply consists of: the log has them, so it keeps no second
copy.
"""
_MARK = b"\0"


class MatchmakerService(MatchmakerServiceServicer):
    """Serves one league. `stopping` ends the watch streams."""

    def __init__(self, league: League, *, read_only: bool = False) -> None:
        self.league = league
        self.read_only = read_only
        self.stopping = threading.Event()
        self._players: dict[str, tuple[Player, t.Player]] = {}
        self._watchers = threading.Semaphore(league.settings.max_watchers)

    def _once(
        self, request: Any, reply: type[Reply], effect: Callable[[Transaction], Reply]
    ) -> Reply:
        """The reply of `effect`, which takes place once however often the request comes."""
        return reply.FromString(self._kept(request, lambda tx: effect(tx).SerializeToString()))

    def _assigned(
        self, request: Any, reply: type[Reply], effect: Callable[[Transaction], list[Assignment]]
    ) -> Reply:
        """As `_once`, of a call whose reply the log holds anyway: what is kept is where."""
        made: list[Assignment] = []

        def kept(tx: Transaction) -> bytes:
            made.extend(effect(tx))
            return _SPAN.pack(0, made[0].ordinal, len(made))

        span = self._kept(request, kept)
        if span[:1] != _MARK:  # the whole reply, which older versions kept
            return reply.FromString(span)
        if not made:
            with self.league.store.read() as reader:
                rows = reader.assignments(*_SPAN.unpack(span)[1:])
            made.extend(assigning.assignments_of(self.league, rows))
        message: Any = reply()
        for match in made:
            wire.add_assignment(message.assignments, match, self._player)
        return message

    def _player(self, player: Player) -> t.Player:
        """Its message, made once for as long as it stays as it is."""
        made = self._players.get(player.name)
        if made is None or made[0] is not player:
            made = self._players[player.name] = player, wire.to_seat_player(player)
        return made[1]

    def _kept(self, request: Any, effect: Callable[[Transaction], bytes]) -> bytes:
        """What `effect` returned when it took place."""
        checks.identifier(request.request_id, "request_id")
        method = type(request).__name__
        fingerprint = hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()
        return self.league.store.once(
            request.request_id, method, fingerprint, self.league.clock.now(), effect
        )

    def once(
        self, request: Any, reply: type[Reply], effect: Callable[[Transaction], Reply]
    ) -> Reply:
        """The same for the services beside this one, which work on the same league."""
        return self._once(request, reply, effect)

    def RegisterPlayers(
        self, request: m.RegisterPlayersRequest, context: Any
    ) -> m.RegisterPlayersResponse:
        players = [wire.from_player(player) for player in request.players]

        def effect(tx: Transaction) -> m.RegisterPlayersResponse:
            registered, retired = registration.register_players(
                self.league, tx, players, request.incarnation
            )
            return m.RegisterPlayersResponse(
                players=map(wire.to_player, registered), retired=retired
            )

        return self._once(request, m.RegisterPlayersResponse, effect)

    def OpenIncarnation(
        self, request: m.OpenIncarnationRequest, context: Any
    ) -> m.OpenIncarnationResponse:
        def effect(tx: Transaction) -> m.OpenIncarnationResponse:
            opened = incarnations.open_incarnation(
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
                carried=map(wire.to_assignment, opened.carried),
                lost_results=opened.lost_results,
            )

        return self._once(request, m.OpenIncarnationResponse, effect)

    def AcquireMatches(
        self, request: m.AcquireMatchesRequest, context: Any
    ) -> m.AcquireMatchesResponse:
        def effect(tx: Transaction) -> list[Assignment]:
            return assigning.acquire_matches(
                self.league, tx, request.incarnation, request.count, request.mix
            )

        return self._assigned(request, m.AcquireMatchesResponse, effect)

    def AcquirePairings(
        self, request: m.AcquirePairingsRequest, context: Any
    ) -> m.AcquirePairingsResponse:
        pairings = [wire.from_pairing(pairing) for pairing in request.pairings]

        def effect(tx: Transaction) -> list[Assignment]:
            return assigning.acquire_pairings(self.league, tx, request.incarnation, pairings)

        return self._assigned(request, m.AcquirePairingsResponse, effect)

    def ReleaseMatches(
        self, request: m.ReleaseMatchesRequest, context: Any
    ) -> m.ReleaseMatchesResponse:
        def effect(tx: Transaction) -> m.ReleaseMatchesResponse:
            released = leases.release_matches(
                self.league, tx, request.incarnation, request.match_ids, request.reason
            )
            return m.ReleaseMatchesResponse(released=released)

        return self._once(request, m.ReleaseMatchesResponse, effect)

    def ReportResults(
        self, request: m.ReportResultsRequest, context: Any
    ) -> m.ReportResultsResponse:
        names = checks.stat_names(request.stat_names)
        results = [_decoded(result, names) for result in request.results]
        made: list[Verdict] = []

        def effect(tx: Transaction) -> bytes:
            verdicts, position = reporting.report_results(
                self.league, tx, request.incarnation, results
            )
            if verdicts and all(verdict.accepted and not verdict.duplicate for verdict in verdicts):
                made.extend(verdicts)
                return _SPAN.pack(0, verdicts[0].log_position, len(verdicts))
            reply = m.ReportResultsResponse(
                verdicts=map(wire.to_verdict, verdicts), log_position=position
            )
            return reply.SerializeToString()

        kept = self._kept(request, effect)
        if kept[:1] != _MARK:
            return m.ReportResultsResponse.FromString(kept)
        first, count = _SPAN.unpack(kept)[1:]
        newest = first + count - 1
        if request.brief:
            return m.ReportResultsResponse(first_position=first, log_position=newest)
        if not made:
            with self.league.store.read() as reader:
                for row in reader.results(first - 1, newest):
                    made.append(
                        Verdict(match_id=row.match_id, accepted=True, log_position=row.position)
                    )
        return m.ReportResultsResponse(verdicts=map(wire.to_verdict, made), log_position=newest)

    def Heartbeat(self, request: m.HeartbeatRequest, context: Any) -> m.HeartbeatResponse:
        fenced, deadline, asked = self.league.store.submit(
            lambda tx: incarnations.heartbeat(
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
        return m.HeartbeatResponse(
            fenced=fenced, lease_deadline=deadline, asked=wire_stages.to_request(asked)
        )

    def KeepReferences(
        self, request: m.KeepReferencesRequest, context: Any
    ) -> m.KeepReferencesResponse:
        def effect(tx: Transaction) -> m.KeepReferencesResponse:
            retired, returned = retiring.keep_references(
                self.league, tx, request.incarnation, request.names
            )
            return m.KeepReferencesResponse(retired=retired, returned=returned)

        return self._once(request, m.KeepReferencesResponse, effect)

    def EnterStage(self, request: m.EnterStageRequest, context: Any) -> m.EnterStageResponse:
        stages, place = map(wire_stages.from_stage, request.stages), wire_stages.from_place(request)

        def effect(tx: Transaction) -> m.EnterStageResponse:
            asked = curricula.enter_stage(
                self.league,
                tx,
                request.incarnation,
                request.step,
                list(stages),
                place,
                request.reason,
            )
            return m.EnterStageResponse(asked=wire_stages.to_request(asked))

        return self._once(request, m.EnterStageResponse, effect)

    def AskStage(self, request: m.AskStageRequest, context: Any) -> m.AskStageResponse:
        def effect(tx: Transaction) -> m.AskStageResponse:
            asked = curricula.ask_stage(self.league, tx, request.player, request.stage, request.by)
            return m.AskStageResponse(asked=wire_stages.to_request(asked))

        return self._once(request, m.AskStageResponse, effect)

    def PinRating(self, request: m.PinRatingRequest, context: Any) -> m.PinRatingResponse:
        mu = None if request.unpin else request.mu

        def effect(tx: Transaction) -> m.PinRatingResponse:
            return m.PinRatingResponse(
                log_position=pins.pin(self.league, tx, request.player, mu, request.by)
            )

        return self._once(request, m.PinRatingResponse, effect)

    def Quarantine(self, request: m.QuarantineRequest, context: Any) -> m.QuarantineResponse:
        def effect(tx: Transaction) -> m.QuarantineResponse:
            given = (self.league, tx, request.player, request.by)
            state = (
                release(*given) if request.release else quarantine(*given, reason=request.reason)
            )
            return m.QuarantineResponse(state=wire.to_state(state))

        return self._once(request, m.QuarantineResponse, effect)

    def GetCurricula(self, request: m.GetCurriculaRequest, context: Any) -> m.GetCurriculaResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            found = curricula.curricula(self.league, reader)
        return m.GetCurriculaResponse(curricula=map(wire_stages.to_curriculum, found))

    def ListPlayers(self, request: m.ListPlayersRequest, context: Any) -> m.ListPlayersResponse:
        checks.number(len(request.kinds), "kinds", 0, checks.MAX_KINDS)
        checks.number(len(request.states), "states", 0, checks.MAX_KINDS)
        kinds = {wire.from_kind(kind) for kind in request.kinds}
        states = {wire.from_state(state) for state in request.states}
        view = self.league.view.checked()
        with view.lock:
            players = list(view.players.values())
        return m.ListPlayersResponse(
            players=[
                wire.to_player(player)
                for player in players
                if (not kinds or player.kind in kinds) and (not states or player.state in states)
            ]
        )

    def GetRatings(self, request: m.GetRatingsRequest, context: Any) -> m.GetRatingsResponse:
        book = wire.from_book(request.book, Book.EVAL)
        view = self.league.view.checked()
        with view.lock:
            ratings, anchors = (
                view.tables[book].leaderboard(view.players),
                view.tables[book].anchors(),
            )
            position, event = view.books.log_position, view.books.event_position
        return m.GetRatingsResponse(
            ratings=[wire.to_rating(rating, self._player) for rating in ratings],
            log_position=position,
            anchors=anchors,
            event_position=event,
        )

    def GetPayoff(self, request: m.GetPayoffRequest, context: Any) -> m.GetPayoffResponse:
        book = wire.from_book(request.book, Book.EVAL)
        checks.names(request.rows, "rows")
        checks.names(request.columns, "columns")
        view = self.league.view.checked()
        with view.lock:
            cells = view.tables[book].payoff.cells(request.rows, request.columns)
            position, event = view.books.log_position, view.books.event_position
        return m.GetPayoffResponse(
            cells=map(wire.to_cell, cells), log_position=position, event_position=event
        )

    def GetMatch(self, request: m.GetMatchRequest, context: Any) -> m.GetMatchResponse:
        self.league.view.checked()
        with self.league.store.read() as reader:
            return wire.to_match(reading.match_record(self.league, reader, request.match_id))

    def GetStatus(self, request: m.GetStatusRequest, context: Any) -> m.GetStatusResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            return wire_status.to_status(reading.status(self.league, reader))

    def Watch(self, request: m.WatchRequest, context: grpc.ServicerContext) -> Iterator[m.Event]:
        """Ends by itself only when the league is served read-only: nothing more can come then."""
        checks.number(request.after, "after", -1, self.league.view.event_position)
        if not self._watchers.acquire(blocking=False):
            raise Unavailable(
                f"{self.league.settings.max_watchers} clients watch already, which is the most: "
                f"stop one, or raise matchmaker.max_watchers"
            )
        try:
            yield from self._events(request.after, context)
        finally:
            self._watchers.release()

    def _events(self, after: int, context: grpc.ServicerContext) -> Iterator[m.Event]:
        view = self.league.view
        position = view.told_position if after < 0 else after
        while context.is_active() and not self.stopping.is_set():
            with self.league.store.read() as reader:
                page = reader.events(position, WATCH_PAGE)
            for event in page:
                position = event.position
                if bygone.had_happened(event, view.moment):
                    yield wire_status.to_event(event)
            if page and (view.moment is None or position <= view.moment.event_position):
                continue
            if self.read_only:
                return
            with view.changed:
                if view.told_position <= position:
                    view.changed.wait(WATCH_POLL_SECONDS)


def _decoded(message: t.Result, stat_names: Sequence[str]) -> MatchResult | Verdict:
    """A malformed result is refused by itself; the others of its batch are taken."""
    try:
        return wire.from_result(message, stat_names)
    except InvalidInput as error:
        return reporting.refused(message.match_id, error)
