"""The evaluator's gRPC service."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluator.runner import Evaluator
from league.ids import checked_player_name
from league.rpc.client import MatchmakerClient
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
"""The program itself must end soon after a signal (`evaluator.main.STOP_SECONDS`)."""
_log = logging.getLogger("evaluator")


class EvaluatorServicer(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Answers from the evaluator's queue and from the league as `client` sees it."""

    def __init__(self, evaluator: Evaluator, client: MatchmakerClient) -> None:
        self._evaluator = evaluator
        self._client = client

    def RequestEvaluation(
        self, request: evaluator_pb2.RequestEvaluationRequest, context: Any
    ) -> evaluator_pb2.RequestEvaluationResponse:
        name = checked_player_name(request.player)
        place = self._evaluator.queue.request(name, self._client.players())
        return evaluator_pb2.RequestEvaluationResponse(place=place)

    def GetEvaluatorStatus(
        self, request: evaluator_pb2.GetEvaluatorStatusRequest, context: Any
    ) -> evaluator_pb2.GetEvaluatorStatusResponse:
        gates = [gate.candidate for gate in self._client.gates(open_only=True)]
        waiting = gates + [p.name for p in self._evaluator.queue.waiting(self._client.players())]
        progress = self._evaluator.progress
        return evaluator_pb2.GetEvaluatorStatusResponse(
            queue=[name for name in dict.fromkeys(waiting) if name != progress.current],
            current=progress.current,
            matches_done=progress.matches_done,
            matches_total=progress.matches_total,
            gauntlets_done=self._evaluator.queue.gauntlets_done,
            drained=not waiting,
        )


class EvaluatorServer:
    """Serves `evaluator` while the context is open; `port` 0 takes any free one."""

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
    """Prometheus metrics of the calls, and of the evaluator's progress on each scrape."""
    from prometheus_client import CollectorRegistry, Gauge

    from league.service.prometheus import CallMetrics

    registry = CollectorRegistry()
    for name, what, value in (
        ("snapshots_waiting", "Snapshots whose gauntlet has not begun.", "progress.waiting"),
        ("matches_done", "Reported matches of the present gauntlet.", "progress.matches_done"),
        ("matches_total", "Its matches in all, 0 while idle.", "progress.matches_total"),
        ("matches_per_second", "Its speed.", "progress.matches_per_second"),
        ("gauntlets_total", "Gauntlets finished, over all starts.", "queue.gauntlets_done"),
    ):
        gauge = Gauge(f"kumite_evaluator_{name}", what, registry=registry)
        gauge.set_function(partial(attrgetter(value), evaluator))
    return registry, CallMetrics(registry)


def _audit(call: Call) -> None:
    """Logs what operators ask of the evaluator, and what it refuses."""
    caller = call.caller
    assert caller is not None
    asked = str(call.request).strip()[:200]
    words = f"{caller.who} ({caller.role.word}) calls {call.method} from {call.peer}: {asked}"
    if call.error is not None:
        words += f" is refused: {call.error}"
    _log.info("%s", words, extra={"audit": True})
