"""Plays a learner's matches: answers the requests of `workers.proto` in a worker process, which
`python -m league.games.workers.serving PARENT_PID GAME CONNECTION` runs.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
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
from league.service.die_with_parent import tie_to
from league.v1 import workers_pb2 as pb

MOST_MATCHES = 4096
"""Largest number of matches of a stream."""
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

    def respond(self, request: pb.WorkRequest) -> pb.WorkResponse:
        """Returns the response to a request."""
        try:
            return self._response(request)
        except LeagueError as error:
            return pb.WorkResponse(error=str(error))
        except Exception as error:  # whatever a game may raise
            text = plain(f"the game raised {type(error).__name__}: {error}")
            return pb.WorkResponse(error=text[:LONGEST_REASON])

    def close(self) -> None:
        """Ends all matches."""
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


def serve(make: Make, requests: Connection) -> None:
    """Answers requests until the connection is closed, or until an error."""
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
    """Runs a worker process. It ignores SIGINT and SIGTERM, because its parent handles them.

    Args:
        parent: process id of the learner, or of the server that plays for it.
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
