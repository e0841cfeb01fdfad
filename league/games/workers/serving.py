"""Plays matches for learners: answers the requests of `workers.proto`.

    python -m league.games.workers.serving PARENT_PID GAME CONNECTION

runs a worker process for a learner on this machine. `WorkerServer` serves learners by gRPC.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput, LeagueError, plain
from league.games.base import BatchedGame
from league.games.registry import make_batched
from league.games.workers.records import (
    RESET,
    ends_of,
    rows_of,
    rules_digest,
    state_bytes,
    state_of,
    step_type,
)
from league.security.settings import SecuritySettings, joined
from league.service.die_with_parent import tie_to
from league.v1 import workers_pb2 as pb

MOST_MATCHES = 4096
"""Largest number of matches of a stream."""
MOST_BYTES = 256 << 20
"""Size of the largest request, which carries saved matches."""
MOST_STREAMS = 32
"""Largest number of streams that play at the same time."""
LONGEST_REASON = 500
Make = Callable[[int], BatchedGame]
"""Makes a number of matches."""


class Session:
    """Plays the matches of a stream.

    After a response with an `error`, the session must be closed.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._game: BatchedGame | None = None
        self._lock = threading.Lock()  # a learner may disconnect while its matches are played

    def respond(self, request: pb.WorkRequest) -> pb.WorkResponse:
        """Returns the response to a request."""
        with self._lock:
            try:
                return self._response(request)
            except LeagueError as error:
                return pb.WorkResponse(error=str(error))
            except Exception as error:  # whatever a game may raise
                text = plain(f"the game raised {type(error).__name__}: {error}")
                return pb.WorkResponse(error=text[:LONGEST_REASON])

    def close(self) -> None:
        """Ends all matches."""
        with self._lock:
            if self._game is not None:
                self._game.close()

    def _response(self, request: pb.WorkRequest) -> pb.WorkResponse:
        if request.work == pb.WORK_UNSPECIFIED:
            return pb.WorkResponse()
        if request.work == pb.WORK_OPEN:
            return self._open(request.number)
        game = self._game
        if game is None:
            raise InvalidInput("no matches were made: open first")
        match request.work:
            case pb.WORK_RESET:
                rows_R = _records(request.rows, RESET, game)
                game.bots_N2[:] = rows_R["bots"]
                game.reset(rows_R["seed"].astype(np.uint64), rows_R["begins"])
                return pb.WorkResponse(rows=rows_of(game).tobytes())
            case pb.WORK_STEP:
                return self._step(game, request)
            case pb.WORK_SAVE:
                return pb.WorkResponse(state=state_bytes(game.save()))
            case pb.WORK_LOAD:
                game.load(state_of(request.state))
                return pb.WorkResponse(rows=rows_of(game).tobytes())
            case pb.WORK_CLIPPED:
                return pb.WorkResponse(text=json.dumps(dict(game.clipped())))
            case pb.WORK_FRAME | pb.WORK_FINAL_FRAME:
                if request.number >= game.num_matches:
                    raise InvalidInput(f"there is no match {request.number}")
                show = game.frame if request.work == pb.WORK_FRAME else game.final_frame
                return pb.WorkResponse(text=json.dumps(show(request.number)))
        raise InvalidInput(f"there is no work {request.work}: use the same version of Kumite")

    def _open(self, matches: int) -> pb.WorkResponse:
        if self._game is not None or not 1 <= matches <= MOST_MATCHES:
            raise InvalidInput(
                f"{matches} matches can't be made: a stream makes 1 to {MOST_MATCHES} matches once"
            )
        self._game = game = self._make(matches)
        shown = f"{game.spec.name} {game.spec.version}"
        return pb.WorkResponse(game=shown, rules=rules_digest(game))

    def _step(self, game: BatchedGame, request: pb.WorkRequest) -> pb.WorkResponse:
        rows_R = _records(request.rows, step_type(game.spec), game)
        game.bots_N2[:], game.idle_N[:] = rows_R["bots"], rows_R["idle"]
        game.next_seeds_N[:] = rows_R["next_seed"]
        game.step(np.ascontiguousarray(rows_R["actions"]), request.number)
        failures = [
            pb.WorkFailure(row=row, reason=plain(reason)[:LONGEST_REASON])
            for row, reason in game.failures.items()
        ]
        return pb.WorkResponse(
            rows=rows_of(game).tobytes(), ended=ends_of(game).tobytes(), failures=failures
        )


def _records(content: bytes, kind: np.dtype[np.void], game: BatchedGame) -> NDArray[np.void]:
    """Reads the records of a request, one for each match."""
    if len(content) != kind.itemsize * game.num_matches:
        raise InvalidInput(
            f"{len(content)} bytes for {game.num_matches} matches of {kind.itemsize} bytes: use "
            "the same version of Kumite on both machines"
        )
    return np.frombuffer(content, kind)


class WorkerServicer:
    """Plays each stream in a separate session."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._threads = ThreadPoolExecutor(MOST_STREAMS, "game-worker")

    async def Play(
        self, requests: AsyncIterator[pb.WorkRequest], context: Any
    ) -> AsyncIterator[pb.WorkResponse]:
        session, loop = Session(self._make), asyncio.get_running_loop()
        try:
            async for request in requests:
                yield await loop.run_in_executor(self._threads, session.respond, request)
        finally:
            self._threads.submit(session.close)


class WorkerServer:
    """Serves matches while the context is open.

    Args:
        make: makes matches of the game.
        port: the port, or 0 for any free port.
        security: the address to listen on, and who may call.
        folder: the folder of the tokens, if the settings ask for tokens.

    Raises:
        ConfigError: the certificates can't be used, or other machines can reach the server and
            every caller would be accepted.
        Refused: the port is taken.
    """

    def __init__(self, make: Make, port: int, *, security: SecuritySettings, folder: Path) -> None:
        from league.service.server import GrpcServer
        from league.v1.workers_pb2_grpc import add_WorkerServiceServicer_to_server

        name = pb.DESCRIPTOR.services_by_name["WorkerService"].full_name
        self._server = GrpcServer(
            "the game worker", (name,), threads=1, most_bytes=MOST_BYTES, security=security,
            run_dir=folder,
        )  # fmt: skip
        self._server.add(add_WorkerServiceServicer_to_server, WorkerServicer(make))
        self.port = self._server.listen(port)
        self.address = joined(security.host, self.port)

    def __enter__(self) -> WorkerServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()


def serve(make: Make, requests: Connection) -> None:
    """Answers a learner's requests until it closes the connection, or until an error."""
    session = Session(make)
    try:
        while True:
            response = session.respond(pb.WorkRequest.FromString(requests.recv_bytes()))
            requests.send_bytes(response.SerializeToString())
            if response.error:
                return
    except (EOFError, OSError):
        return
    finally:
        session.close()


def main(parent: str, game: str, connection: str) -> None:
    """Runs a worker process. It ignores SIGINT and SIGTERM, because the learner handles them.

    Args:
        parent: process id of the learner.
        game: JSON of the arguments of `make_batched`.
        connection: file descriptor of the connection.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tie_to(int(parent))
    options = json.loads(game)
    serve(partial(_made, options), Connection(int(connection)))


def _made(options: dict[str, Any], matches: int) -> BatchedGame:
    return make_batched(num_matches=matches, **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
