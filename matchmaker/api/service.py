"""Serves the gRPC calls: decodes a request, calls a function of `matchmaker.acts`, and encodes the
reply.

A call that changes the league has a request id and takes effect once for each id. Only heartbeats
and uploads have no request id, because they are safe to repeat without an id.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from league.errors import InvalidInput, Refused, Unavailable, plain
from league.evaluations import Report
from league.ids import checked_learner_name
from league.players import (
    Book,
    Event,
    MatchResult,
    Pairing,
    Player,
    PlayerKind,
    PlayerState,
    Role,
    Verdict,
)
from league.rpc.convert import encoded, from_enum, from_message, plain_names, to_message
from league.runs.store import Store
from league.security.roles import AccessRole
from league.service.interceptor import CALLER
from league.stages import Stage
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t
from league.v1.evaluator_pb2_grpc import EvaluatorServiceServicer
from league.v1.exploiters_pb2_grpc import ExploiterServiceServicer
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceServicer
from matchmaker import limits
from matchmaker.acts import (
    assign,
    checks,
    evaluate,
    exploit,
    gate,
    incarnate,
    players,
    population,
    report,
    stage,
    steer,
    watch,
)
from matchmaker.api import queries
from matchmaker.api.blobs import Blobs
from matchmaker.state.league import League
from matchmaker.store.sqlite import once
from matchmaker.store.transaction import Transaction

Reply = TypeVar("Reply", bound=Message)
WATCH_PAGE = 500
REPORT_SECONDS = 0.5
"""A stream of reports waits this many seconds before it checks again whether a commit has changed
the reports.
"""


def _result(message: t.Result) -> MatchResult | Verdict:
    """Decodes a result. A malformed result becomes a refusal, so that the rest of its batch can be
    accepted.
    """
    try:
        return from_message(MatchResult, message)
    except InvalidInput as error:
        return report.refused(message.match_id, error)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "Result": _result,
    **{cls.__name__: partial(from_message, cls) for cls in (Pairing, Player, Stage)},
}
"""Functions that decode a message to a domain value, by the message's name."""
_ENUMS: dict[str, Callable[[Any], Any]] = {
    "Role": partial(from_enum, Role),
    "Book": partial(from_enum, Book, unspecified=Book.EVAL),
}


def _decoder(field: Any) -> Callable[[Any], Any]:
    """Returns a function that converts a field of a request to an argument of an act (a function of
    `matchmaker.acts`).
    """
    if field.enum_type is not None:
        return _ENUMS[field.enum_type.name]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return plain_names
    if field.message_type is not None:
        decode = _DECODERS[field.message_type.name]
    elif field.type == field.TYPE_STRING:
        decode = plain
    else:
        return lambda value: value
    if not field.is_repeated:
        return decode

    def decoded(values: Any) -> list[Any]:
        checks.number(len(values), field.name, 0, checks.MAX_BATCH)  # before they are decoded
        return list(map(decode, values))

    return decoded


def mutation(module: Any, name: str, act: Callable[..., Any]) -> Any:
    """Makes a method that decodes a request, calls `act` in a transaction, and encodes the reply.

    Args:
        module: the generated module with the messages ``{name}Request`` and ``{name}Response``.
        act: takes the league, the transaction and the request's fields by name. It returns the
            reply's only field, or a named tuple of the reply's fields.
    """
    request_class, reply_class = (getattr(module, name + word) for word in ("Request", "Response"))
    decoders = {field.name: _decoder(field) for field in request_class.DESCRIPTOR.fields}
    is_repeatable = decoders.pop("request_id", None) is not None
    reply_fields = [field.name for field in reply_class.DESCRIPTOR.fields]

    async def method(self: MatchmakerService, request: Any, _: Any) -> Any:
        caller = CALLER.get()
        token = caller.name if caller and caller.role is AccessRole.WORKER else ""

        def effect(tx: Transaction) -> Any:
            arguments = {
                field: decode(getattr(request, field)) for field, decode in decoders.items()
            }
            value = act(self.league, tx, **arguments)
            values = value._asdict() if len(reply_fields) > 1 else {reply_fields[0]: value}
            return reply_class(**{field: encoded(value) for field, value in values.items()})

        change = self.once(request, reply_class, effect) if is_repeatable else effect

        def checked(tx: Transaction) -> Any:
            if token:  # also for repeated requests: a reply is only for the worker's owner
                worker = getattr(request, "worker", "")
                number = getattr(request, "incarnation", 0)
                incarnate.check_owner(self.league, tx, token, worker, number)
            return change(tx)

        return await self.league.store.submitted(checked)

    return method


def fingerprint(request: Message) -> str:
    """Returns the hash of a request. Two requests with the same id must have the same hash."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()


class MatchmakerService(
    MatchmakerServiceServicer, ExploiterServiceServicer, EvaluatorServiceServicer
):
    """Serves a league. `mutation` makes the methods that change the league.

    Setting the event `stopping` ends the streams.

    Args:
        league: the league.
        blobs: the folder of the run's blobs.
        sections: the run's settings for workers on other machines. If it is None, `GetSettings`
            is refused.
        read_only: whether the league must not change.
    """

    RegisterPlayers = mutation(m, "RegisterPlayers", players.register_players)
    OpenIncarnation = mutation(m, "OpenIncarnation", incarnate.open_incarnation)
    AcquireMatches = mutation(m, "AcquireMatches", assign.acquire_matches)
    AcquirePairings = mutation(m, "AcquirePairings", assign.acquire_pairings)
    ReleaseMatches = mutation(m, "ReleaseMatches", assign.release_matches)
    ReportResults = mutation(m, "ReportResults", report.report_results)
    Heartbeat = mutation(m, "Heartbeat", incarnate.heartbeat)
    KeepReferences = mutation(m, "KeepReferences", players.keep_references)
    CompareMember = mutation(m, "CompareMember", population.compare_member)
    EnterStage = mutation(m, "EnterStage", stage.enter_stage)
    AskStage = mutation(m, "AskStage", stage.ask_stage)
    SetMix = mutation(m, "SetMix", steer.set_mix)
    PauseLearners = mutation(m, "PauseLearners", steer.pause_learners)
    PinRating = mutation(m, "PinRating", players.pin_rating)
    Quarantine = mutation(m, "Quarantine", players.quarantine)
    QuarantineWorker = mutation(m, "QuarantineWorker", watch.quarantine_worker)
    AddRival = mutation(m, "AddRival", players.add_rival)
    RemoveRival = mutation(m, "RemoveRival", players.remove_rival)
    BeginGeneration = mutation(x, "BeginGeneration", exploit.begin_generation)
    OpenGate = mutation(x, "OpenGate", players.open_gate)
    AcquireGateMatches = mutation(x, "AcquireGateMatches", gate.acquire_gate_matches)
    DecideGate = mutation(x, "DecideGate", gate.decide_gate)
    GiveUpGate = mutation(x, "GiveUpGate", gate.give_up_gate)
    ReviewExploiters = mutation(x, "ReviewExploiters", exploit.review_exploiters)
    RequestEvaluation = mutation(e, "RequestEvaluation", evaluate.request_evaluation)
    CancelEvaluation = mutation(e, "CancelEvaluation", evaluate.cancel_evaluation)

    def __init__(
        self,
        league: League,
        blobs: Path,
        sections: Mapping[str, Any] | None = None,
        *,
        read_only: bool = False,
        store: Store | None = None,
    ) -> None:
        self.league = league
        self.read_only = read_only
        self.stopping = threading.Event()
        self._blobs = Blobs(league, blobs, read_only=read_only, store=store)
        self._sections = sections

    def once(
        self, request: Any, reply: type[Reply], effect: Callable[[Transaction], Reply]
    ) -> Callable[[Transaction], Reply]:
        """Wraps an effect so that it runs only once, even if its request arrives several times.

        Args:
            request: a request with a request id.
            reply: class of the reply to the request.
            effect: function that carries out the request and returns the reply.

        Returns:
            The wrapped effect. When repeated, it returns the reply of the first run.

        Raises:
            InvalidInput: the request's id is not a valid id.
        """
        checks.identifier(request.request_id, "request_id")
        fresh: list[Reply] = []

        def stored(tx: Transaction) -> bytes:
            fresh.append(effect(tx))
            return fresh[0].SerializeToString()

        name, now = type(request).__name__, self.league.clock.now()
        effect_once = once(request.request_id, name, fingerprint(request), now, stored)

        def replied(tx: Transaction) -> Reply:
            first = effect_once(tx)
            return fresh[0] if fresh else reply.FromString(first)

        return replied

    def GetCurricula(self, request: m.GetCurriculaRequest, context: Any) -> m.GetCurriculaResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            curricula = stage.curricula(self.league, reader)
        return m.GetCurriculaResponse(curricula=map(to_message, curricula))

    def GetPopulation(self, request: m.GetPopulationRequest, context: Any) -> Any:
        with self.league.view.checked().lock:
            return to_message(self.league.view.population.all())

    def ListPlayers(self, request: m.ListPlayersRequest, context: Any) -> m.ListPlayersResponse:
        checks.number(len(request.kinds), "kinds", 0, checks.MAX_KINDS)
        checks.number(len(request.states), "states", 0, checks.MAX_KINDS)
        kinds = {from_enum(PlayerKind, kind) for kind in request.kinds} or set(PlayerKind)
        states = {from_enum(PlayerState, state) for state in request.states} or set(PlayerState)
        view = self.league.view.checked()
        with view.lock:
            players = list(view.players.values())
        wanted = (player for player in players if player.kind in kinds and player.state in states)
        return m.ListPlayersResponse(players=map(to_message, wanted))

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
        if request.climb and book is not Book.TRAIN:
            raise InvalidInput(f"a climb is of the train book, and {book} is asked for: name train")
        view = self.league.view.checked()
        with view.lock:
            payoff = view.books.climb if request.climb else view.tables[book].payoff
            cells = payoff.cells(request.rows, request.columns, with_stats=request.with_stats)
            position, event = view.books.log_position, view.books.event_position
        return m.GetPayoffResponse(
            cells=map(to_message, cells), log_position=position, event_position=event
        )

    def GetMatch(self, request: m.GetMatchRequest, context: Any) -> m.GetMatchResponse:
        self.league.view.checked()
        with self.league.store.read() as reader:
            record = queries.match_record(self.league, reader, request.match_id)
        reply: m.GetMatchResponse = to_message(record)
        reply.has_result = record.result is not None
        return reply

    def ListMatches(self, request: m.ListMatchesRequest, context: Any) -> m.ListMatchesResponse:
        checks.number(request.limit, "limit", 1, queries.MATCHES)
        checks.number(request.before, "before", 0, checks.MAX_STEP)
        checks.text(request.player, "player", checks.MAX_PLAYER_NAME)
        checks.text(request.opponent, "opponent", checks.MAX_PLAYER_NAME)
        checks.text(request.category, "category", checks.MAX_NAME)
        if request.opponent and not request.player:
            raise InvalidInput("an opponent is named and no player: name the player")
        book = from_enum(Book, request.book) if request.book else None
        self.league.view.checked()
        with self.league.store.read() as reader:
            lines, before = queries.matches(
                reader,
                plain(request.player),
                plain(request.opponent),
                book,
                plain(request.category),
                request.before,
                request.limit,
            )
        return m.ListMatchesResponse(matches=map(to_message, lines), next_before=before)

    def GetStatus(self, request: m.GetStatusRequest, context: Any) -> m.GetStatusResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            return to_message(queries.status(self.league, reader))

    async def Watch(self, request: m.WatchRequest, context: Any) -> AsyncIterator[m.Event]:
        """Streams events. In a read-only league the stream ends after the last event."""
        view = self.league.view
        checks.number(request.after, "after", -1, view.event_position)
        position = view.durable_position if request.after < 0 else request.after
        with self._commits() as is_new:
            while not self.stopping.is_set():
                is_new.clear()
                page = await asyncio.to_thread(self._events, position)
                for event in page:
                    position = event.position
                    yield to_message(event)
                if self.read_only and not page:
                    return
                if not page:
                    await is_new.wait()

    def GetSettings(self, request: m.GetSettingsRequest, context: Any) -> m.GetSettingsResponse:
        if self._sections is None:
            raise Refused("this matchmaker was started without the settings of its run")
        return m.GetSettingsResponse(settings_json=json.dumps(self._sections))

    def GetBlob(self, request: m.GetBlobRequest, context: Any) -> AsyncIterator[m.GetBlobResponse]:
        return self._blobs.sent(request)

    async def PutBlob(
        self, requests: AsyncIterator[m.PutBlobRequest], context: Any
    ) -> m.PutBlobResponse:
        return await self._blobs.received(requests)

    @contextmanager
    def _commits(self) -> Iterator[asyncio.Event]:
        """Yields an `asyncio.Event` that each commit of the log sets."""
        watchers, is_new = self.league.view.watchers, asyncio.Event()
        if len(watchers) >= limits.MAX_WATCHERS:
            raise Unavailable(f"{limits.MAX_WATCHERS} clients watch already, the most: stop one")
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, is_new.set)
        watchers.append(wake)
        try:
            yield is_new
        finally:
            watchers.remove(wake)

    def _events(self, after: int) -> list[Event]:
        with self.league.store.read() as reader:
            return reader.events(after, WATCH_PAGE)

    def GetGeneration(self, asked: x.GetGenerationRequest, _: Any) -> x.GetGenerationResponse:
        learner = checked_learner_name(asked.learner)
        view = self.league.view.checked()
        with view.lock:
            newest = view.exploiters.newest(learner)
        generation = None if newest is None else to_message(newest)
        return x.GetGenerationResponse(generation=generation)

    def GetStanding(self, asked: x.GetStandingRequest, _: Any) -> x.GetStandingResponse:
        with self.league.view.checked().lock:
            standing = exploit.standing(self.league, asked.player, asked.steps, asked.interval)
        return to_message(standing)

    def GetGates(self, asked: x.GetGatesRequest, _: Any) -> x.GetGatesResponse:
        with self.league.store.read() as reader, self.league.view.checked().lock:
            state = self.league.view.exploiters
            wanted = state.open_gates() if asked.open_only else list(state.gates.values())
            gates = [gate.judged(self.league, reader, candidate) for candidate in wanted]
        messages = [to_message(judged) for judged in gates]
        if not asked.with_certificates:
            for test in (test for message in messages for test in message.victims):
                test.ClearField("certificate_json")
        return x.GetGatesResponse(gates=messages)

    def GetReport(self, request: e.GetReportRequest, context: Any) -> e.GetReportResponse:
        with self.league.view.checked().lock:
            report = evaluate.report(self.league, request.number)
        return e.GetReportResponse(report=to_message(report))

    def ListReports(self, request: e.ListReportsRequest, context: Any) -> e.ListReportsResponse:
        with self.league.view.checked().lock:
            summaries = evaluate.summaries(self.league)
        wanted = (report for report in summaries if report.is_open or not request.open_only)
        return e.ListReportsResponse(reports=map(to_message, wanted))

    async def WatchReports(
        self, request: e.WatchReportsRequest, context: Any
    ) -> AsyncIterator[e.Report]:
        """Streams reports on the requested evaluation, or on all open evaluations if the request's
        number is 0. Each report is sent at the start, and again whenever it changes.

        The stream ends when the requested evaluation ends. In a read-only league it ends after the
        first reports.
        """
        number, sent = request.number, dict[int, Report]()
        with self._commits() as is_new:
            while not self.stopping.is_set():
                is_new.clear()
                for report in await asyncio.to_thread(self._changed, number, sent):
                    sent[report.evaluation.number] = replace(report, scores=())
                    yield to_message(report)
                if self.read_only or (number and not sent[number].is_open):
                    return
                await asyncio.sleep(REPORT_SECONDS)
                await is_new.wait()

    def _changed(self, number: int, sent: Mapping[int, Report]) -> list[Report]:
        """Returns the reports that differ from the reports sent last.

        Args:
            number: the evaluation to report on. 0 means all open evaluations, and evaluations that
                have ended since their last report was sent.
            sent: the last report sent on each evaluation, by the evaluation's number.
        """
        with self.league.view.checked().lock:
            return [
                evaluate.report(self.league, summary.evaluation.number)
                for summary in evaluate.summaries(self.league, number)
                if summary != sent.get(summary.evaluation.number)
                and (number or summary.is_open or summary.evaluation.number in sent)
            ]

    def GetEvaluatorStatus(
        self, request: e.GetEvaluatorStatusRequest, context: Any
    ) -> e.GetEvaluatorStatusResponse:
        raise Refused(
            "the matchmaker plays no matches: ask an evaluator, at the address in the run's "
            "evaluator.json"
        )
