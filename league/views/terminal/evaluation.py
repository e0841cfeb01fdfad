"""Asks the evaluator how far it is."""

from __future__ import annotations

import grpc

from league.rpc.channel import CHANNEL_OPTIONS
from league.security.credentials import Credentials, from_environment
from league.v1 import evaluator_pb2, evaluator_pb2_grpc
from league.views.terminal.facts import EvaluatorFacts

_DEADLINE_SECONDS = 1.0


class EvaluatorReader:
    """A reader of one evaluator's state that never raises: an evaluator may be restarting."""

    def __init__(self, address: str, credentials: Credentials | None = None) -> None:
        shown = from_environment() if credentials is None else credentials
        self._metadata = shown.metadata
        self._stub = evaluator_pb2_grpc.EvaluatorServiceStub(
            shown.channel(address, CHANNEL_OPTIONS)
        )

    def status(self) -> EvaluatorFacts | None:
        """None while it can't be reached."""
        request = evaluator_pb2.GetEvaluatorStatusRequest()
        try:
            reply = self._stub.GetEvaluatorStatus(
                request, timeout=_DEADLINE_SECONDS, metadata=self._metadata
            )
        except grpc.RpcError:
            return None
        return EvaluatorFacts(
            current=reply.current,
            matches_done=reply.matches_done,
            matches_total=reply.matches_total,
            queue=tuple(reply.queue),
            gauntlets_done=reply.gauntlets_done,
            drained=reply.drained,
        )
