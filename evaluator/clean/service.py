"""The evaluator's gRPC service."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from evaluator.clean.plan import ALLOCATED
from evaluator.clean.runner import Evaluator
from league.rpc.channel import CALL_SECONDS
from league.rpc.client import MatchmakerClient
from league.rpc.status import error_of
from league.security.credentials import HEADER
from league.security.settings import SecuritySettings, joined
from league.service.interceptor import Call, Observer
from league.service.logs import CallLog
from league.service.server import GrpcServer
from league.service.settings import OperationsSettings
from league.v1 import evaluator_pb2, evaluator_pb2_grpc

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

SERVICE = evaluator_pb2.DESCRIPTOR.services_by_name["EvaluatorService"].full_name
THREADS = 4
MAX_REQUEST_BYTES = 64 * 1024
STOP_SECONDS = 0.25
"""When the server stops, calls in progress get this much time to finish. This time is short,
because the whole program must end within `evaluator.main.STOP_SECONDS`.
"""
_log = logging.getLogger("evaluator")


class EvaluatorServicer(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Answers `GetEvaluatorStatus` itself, and passes all other calls on to the matchmaker."""

    def __init__(self, evaluator: Evaluator, client: MatchmakerClient) -> None:
        self._evaluator = evaluator
        self._client = client
        self._channel: grpc.aio.Channel | None = None

    def GetEvaluatorStatus(
        self, request: evaluator_pb2.GetEvaluatorStatusRequest, context: Any
    ) -> evaluator_pb2.GetEvaluatorStatusResponse:
        progress, drained, unspent = self._evaluator.progress, False, 0
        waiting: Sequence[str] = progress.waiting
        if not progress.current:  # idle: only a new plan is up to date
            plan = self._evaluator.plan(self._client)
            gates = [gate.candidate for gate in plan.gates]
            due = [batch.subject for kind in plan.batches() for batch in kind]
            waiting = list(dict.fromkeys([*gates, *due]))
            drained, unspent = not waiting, plan.budget
        return evaluator_pb2.GetEvaluatorStatusResponse(
            queue=waiting,
            current=progress.current,
            matches_done=progress.matches_done,
            matches_total=progress.matches_total,
            snapshots_done=self._evaluator.snapshots_done,
            drained=drained,
            unspent=unspent if unspent >= ALLOCATED else 0,
        )

    async def RequestEvaluation(self, request: Any, context: Any) -> Any:
        return await self._passed_on("RequestEvaluation", request, context)

    async def CancelEvaluation(self, request: Any, context: Any) -> Any:
        return await self._passed_on("CancelEvaluation", request, context)

    async def GetReport(self, request: Any, context: Any) -> Any:
        return await self._passed_on("GetReport", request, context)

    async def ListReports(self, request: Any, context: Any) -> Any:
        return await self._passed_on("ListReports", request, context)

    async def WatchReports(self, request: Any, context: Any) -> AsyncIterator[Any]:
        with self._matchmaker(context) as (stub, metadata):
            async for report in stub.WatchReports(request, metadata=metadata):
                yield report

    async def _passed_on(self, name: str, request: Any, context: Any) -> Any:
        """Passes a call on to the matchmaker and returns the answer."""
        with self._matchmaker(context) as (stub, metadata):
            return await getattr(stub, name)(request, metadata=metadata, timeout=CALL_SECONDS)

    @contextmanager
    def _matchmaker(self, context: Any) -> Iterator[tuple[Any, Any]]:
        """Yields the matchmaker's stub and the caller's token. Errors of the matchmaker become
        errors of this service.
        """
        self._channel = self._channel or self._client.asynchronous()
        token = [(key, value) for key, value in context.invocation_metadata() if key == HEADER]
        try:
            yield evaluator_pb2_grpc.EvaluatorServiceStub(self._channel), token
        except grpc.RpcError as failure:
            raise error_of(failure) from None


class EvaluatorServer:
    """Serves `evaluator` while the context is open.

    Raises:
        ConfigError: the certificates can't be used.
        Refused: the port is taken.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        client: MatchmakerClient,
        *,
        port: int = 0,
        run_dir: Path = Path(),
        security: SecuritySettings | None = None,
        operations: OperationsSettings | None = None,
    ) -> None:
        security, operations = security or SecuritySettings(), operations or OperationsSettings()
        observers: list[Observer] = [CallLog(operations.log_calls)]
        with ExitStack() as opened:
            if operations.metrics_port:
                from league.service.prometheus import MetricsPort

                metrics, called = _metrics(evaluator)
                opened.callback(MetricsPort(operations.metrics_port + 1, metrics).close)
                observers.append(called)
            self._frame = GrpcServer(
                "the evaluator",
                (SERVICE,),
                threads=THREADS,
                most_bytes=MAX_REQUEST_BYTES,
                security=security,
                run_dir=run_dir,
                observers=observers,
                audit=_audit,
            )
            opened.callback(self._frame.stop, STOP_SECONDS)
            servicer = EvaluatorServicer(evaluator, client)
            self._frame.add(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, servicer)
            self.port = self._frame.listen(port)
            self._opened = opened.pop_all()
        self.address = joined(security.host, self.port)

    def __enter__(self) -> EvaluatorServer:
        self._frame.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _metrics(evaluator: Evaluator) -> tuple[Collector, Observer]:
    """Returns Prometheus metrics of the calls and of the evaluator's progress. Each scrape reads
    the present progress.
    """
    from prometheus_client import CollectorRegistry, Gauge

    from league.service.prometheus import CallMetrics

    registry = CollectorRegistry()
    values: tuple[tuple[str, str, Callable[[], float]], ...] = (
        (
            "players_waiting",
            "Players whose matches come next.",
            lambda: len(evaluator.progress.waiting),
        ),
        (
            "matches_done",
            "Reported matches of the present batch.",
            lambda: evaluator.progress.matches_done,
        ),
        (
            "matches_total",
            "Its matches in all, 0 while idle.",
            lambda: evaluator.progress.matches_total,
        ),
        ("matches_per_second", "Its speed.", lambda: evaluator.progress.matches_per_second),
        (
            "snapshots_total",
            "Snapshots that have played their first matches.",
            lambda: evaluator.snapshots_done,
        ),
    )
    for name, description, value in values:
        Gauge(f"kumite_evaluator_{name}", description, registry=registry).set_function(value)
    return registry, CallMetrics(registry)


def _audit(call: Call) -> None:
    """Logs operators' calls, and why they are refused."""
    caller = call.caller
    assert caller is not None
    asked = str(call.request).strip()[:200]
    words = f"{caller.who} ({caller.role.word}) calls {call.method} from {call.peer}: {asked}"
    if call.error is not None:
        words += f" is refused: {call.error}"
    _log.info("%s", words, extra={"audit": True})
