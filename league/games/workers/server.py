"""Plays matches for learners on other machines, which call by gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from league.errors import Busy
from league.games.hosted import Process
from league.games.workers.links import worker_process
from league.security.settings import SecuritySettings, joined, named
from league.v1 import workers_pb2 as pb

MOST_BYTES = 256 << 20
"""Size of the largest request, which carries saved matches."""
MOST_STREAMS = 32
"""Largest number of streams that play at the same time."""
LOOK_SECONDS = 1.0
"""While a game plays, its process is checked this often."""


class WorkerServicer:
    """Plays each stream in a worker process. The process is killed at the end of its stream, even
    if its game hangs.

    Args:
        game: the arguments of `make_batched`, as JSON.
    """

    def __init__(self, game: str) -> None:
        self._game, self._streams = game, 0

    async def Play(
        self, requests: AsyncIterator[pb.WorkRequest], context: Any
    ) -> AsyncIterator[pb.WorkResponse]:
        if self._streams >= MOST_STREAMS:
            raise Busy(f"{MOST_STREAMS} streams play here already: start another game worker")
        self._streams += 1
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "game-worker")
        process = worker_process(self._game)
        try:
            async for request in requests:
                yield await loop.run_in_executor(thread, _exchanged, process, request)
        finally:
            self._streams -= 1
            process.popen.kill()  # which also ends a request that waits for a hanging game
            thread.submit(process.end)
            thread.shutdown(wait=False)


def _exchanged(process: Process, request: pb.WorkRequest) -> pb.WorkResponse:
    """Returns the response of a worker process."""
    connection = process.connection
    try:
        connection.send_bytes(request.SerializeToString())
        while not connection.poll(LOOK_SECONDS):
            # Processes that the game has forked may keep the connection open.
            if process.popen.poll() is not None:
                raise EOFError
        return pb.WorkResponse.FromString(connection.recv_bytes())
    except (EOFError, OSError):
        return pb.WorkResponse(error=f"its process has died (exit status {process.end()})")


class WorkerServer:
    """Serves matches while the context is open.

    Args:
        game: the arguments of `make_batched`, as JSON.
        port: the port, or 0 for any free port.
        security: the address to listen on, and who may call.
        folder: the folder of the tokens, if the settings ask for tokens.

    Raises:
        ConfigError: the certificates can't be used, or other machines can reach the server and
            every caller would be accepted.
        Refused: the port is taken.
    """

    def __init__(self, game: str, port: int, *, security: SecuritySettings, folder: Path) -> None:
        from league.service.server import GrpcServer
        from league.v1.workers_pb2_grpc import add_WorkerServiceServicer_to_server

        name = pb.DESCRIPTOR.services_by_name["WorkerService"].full_name
        self._server = GrpcServer(
            "the game worker", (name,), threads=1, most_bytes=MOST_BYTES, security=security,
            run_dir=folder,
        )  # fmt: skip
        self._server.add(add_WorkerServiceServicer_to_server, WorkerServicer(game))
        self.port = self._server.listen(port)
        self.address = joined(named(security.host), self.port)

    def __enter__(self) -> WorkerServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
