"""The evaluator's gRPC face: protobuf in, domain calls, protobuf out; health and reflection beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from evaluator.worker import Evaluator
from league.client import MatchmakerClient
from league.errors import Unavailable
from league.status import ErrorInterceptor
from league.v1 import evaluator_pb2, evaluator_pb2_grpc

SERVICE = evaluator_pb2.DESCRIPTOR.services_by_name["EvaluatorService"].full_name


class EvaluatorServicer(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Answers from the worker's queue and from what `client` says the league is just now."""

    def __init__(self, evaluator: Evaluator, client: MatchmakerClient) -> None:
        self._evaluator = evaluator
        self._client = client

    def RequestEvaluation(
        self, request: evaluator_pb2.RequestEvaluationRequest, context: grpc.ServicerContext
    ) -> evaluator_pb2.RequestEvaluationResponse:
        place = self._evaluator.queue.request(request.player, self._client.players())
        return evaluator_pb2.RequestEvaluationResponse(place=place)

    def GetEvaluatorStatus(
        self, request: evaluator_pb2.GetEvaluatorStatusRequest, context: grpc.ServicerContext
    ) -> evaluator_pb2.GetEvaluatorStatusResponse:
        waiting = [p.name for p in self._evaluator.queue.waiting(self._client.players())]
        standing = self._evaluator.standing
        return evaluator_pb2.GetEvaluatorStatusResponse(
            queue=[name for name in waiting if name != standing.current],
            current=standing.current,
            matches_done=standing.matches_done,
            matches_total=standing.matches_total,
            gauntlets_done=self._evaluator.queue.gauntlets_done,
            drained=not waiting,
        )


class EvaluatorServer:
    """Serves `evaluator` while the context is open; `port` 0 takes any free one. Stopping twice is fine.

    Raises `Unavailable` when the port is taken.
    """

    def __init__(
        self, evaluator: Evaluator, client: MatchmakerClient, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._server = grpc.server(
            ThreadPoolExecutor(max_workers=4, thread_name_prefix="evaluator-rpc"),
            interceptors=[ErrorInterceptor()],
            options=[("grpc.so_reuseport", 0)],
        )
        evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server(
            EvaluatorServicer(evaluator, client), self._server
        )
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)
        try:
            self.port = self._server.add_insecure_port(f"{host}:{port}")
        except RuntimeError:
            self.port = 0
        if self.port == 0:
            raise Unavailable(
                f"port {port} of {host} is taken: give another with --port, or 0 for any free one"
            )
        self.address = f"{host}:{self.port}"

    def __enter__(self) -> EvaluatorServer:
        self._server.start()
        for name in ("", SERVICE):
            self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends open calls within a quarter of a second."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace=0.25).wait()
