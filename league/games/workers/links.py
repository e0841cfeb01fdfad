"""Connects a learner to its game workers: child processes, and servers on other machines."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import time
from abc import ABC, abstractmethod
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from league.errors import ConfigError, LeagueError, Unavailable, plain
from league.games.hosted import START_SECONDS, Process, inherited
from league.games.registry import users_path
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.status import error_of
from league.security.credentials import Credentials
from league.v1 import workers_pb2 as pb
from league.v1.workers_pb2_grpc import WorkerServiceStub

ANSWER_SECONDS = 120.0
"""Longest time for a worker to answer a request. After this time the learner gives it up."""
OPEN_SECONDS = 120.0
"""Longest time for a worker on another machine to start a process and make its matches."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a lost worker is started or called again. The pause doubles each time, until the
worker answers a request.
"""
SILENT_SECONDS = 5.0
"""After this many seconds without a request, an empty request keeps a stream open."""
LONGEST_TEXT = 500


def worker_process(game: str) -> Process:
    """Starts a process that plays matches. It dies with this process.

    Args:
        game: the arguments of `make_batched`, as JSON.
    """
    return Process(
        [sys.executable, "-P", "-m", "league.games.workers.serving", str(os.getpid()), game],
        range(0),
        env=inherited(users_path()),
        stdout=2,  # games may print, so keep them off our standard output
    )


class Link(ABC):
    """Connects to a worker, again after a pause whenever the connection is lost.

    Args:
        name: the worker's name in messages.
        matches: number of matches that the worker plays.
        rules: digest of the game that the worker must play.

    Attributes:
        problem: the reason why the worker can't be used now, "" if no fault is known.
        is_other_game: whether the reason is that the worker plays another game.
    """

    def __init__(self, name: str, matches: int, rules: str) -> None:
        self.name, self.problem, self.is_other_game = name, "", False
        self.matches, self._rules = matches, rules
        self._is_open = False
        self._pause, self._retry_at = FIRST_PAUSE, 0.0

    @property
    def pid(self) -> int | None:
        """The process id of a worker on this machine, while it runs."""
        return None

    def poll(self) -> bool:
        """Connects, without waiting. Returns whether the worker has made its matches."""
        if not self._is_open and time.monotonic() >= self._retry_at:
            try:
                response = self._opened()
                if response is not None:
                    self._check(response)
                    self._is_open, self.problem, self.is_other_game = True, "", False
            except LeagueError as error:
                self.drop(str(error))
        return self._is_open

    def _check(self, response: pb.WorkResponse) -> None:
        if response.error:
            raise Unavailable(f"{self.name} can't play: {plain(response.error)[:LONGEST_TEXT]}")
        self.is_other_game = response.rules != self._rules
        if self.is_other_game:
            raise ConfigError(
                f"{self.name} plays {plain(response.game)[:LONGEST_TEXT]}, but not with the rules, "
                "options, time limit and version of Kumite of this league: start it with the same "
                "[game] settings"
            )

    def drop(self, problem: str) -> None:
        """Ends the connection, and with it the worker's matches. `poll` connects again."""
        self.close()
        self.problem = problem
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def send(self, request: pb.WorkRequest) -> None:
        """Sends a request to a worker that is open."""
        with contextlib.suppress(OSError):  # a lost worker is noticed when it should answer
            self._send(request)

    def receive(self) -> pb.WorkResponse:
        """Returns the response to the last request.

        Raises:
            Unavailable: the worker has died, takes too long, or can't continue its matches. The
                connection is dropped.
        """
        try:
            response = self._received()
            if response.error:
                raise Unavailable(f"{self.name}: {plain(response.error)[:LONGEST_TEXT]}")
        except Unavailable as error:
            self.drop(str(error))
            raise
        self._pause = FIRST_PAUSE
        return response

    @abstractmethod
    def _opened(self) -> pb.WorkResponse | None:
        """Connects, without waiting, and returns the response to the request to open. Returns None
        as long as there is no response. Raises `LeagueError` if no response will come.
        """

    @abstractmethod
    def _send(self, request: pb.WorkRequest) -> None:
        """Sends a request."""

    @abstractmethod
    def _received(self) -> pb.WorkResponse:
        """Waits for the response. Raises `Unavailable` if no response comes."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection. It is safe to call again, and `poll` connects again."""
        self._is_open = False


class LocalLink(Link):
    """Runs a worker process on this machine. The process dies with this process.

    Args:
        game: the arguments of `make_batched`, as JSON.
    """

    def __init__(self, name: str, matches: int, rules: str, game: str) -> None:
        super().__init__(name, matches, rules)
        self._game = game
        self._process: Process | None = None
        self._give_up_at = 0.0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.popen.pid

    def _opened(self) -> pb.WorkResponse | None:
        if self._process is None:
            self._process = worker_process(self._game)
            self._give_up_at = time.monotonic() + START_SECONDS
            self.send(pb.WorkRequest(work=pb.WORK_OPEN, number=self.matches))
        if not self._process.connection.poll():
            if time.monotonic() > self._give_up_at:
                raise Unavailable(f"{self.name} took over {START_SECONDS:.0f} s to start")
            return None
        return self._read()

    def _send(self, request: pb.WorkRequest) -> None:
        assert self._process is not None
        self._process.connection.send_bytes(request.SerializeToString())

    def _received(self) -> pb.WorkResponse:
        assert self._process is not None
        if not self._process.connection.poll(ANSWER_SECONDS):
            raise Unavailable(f"{self.name} did not answer (it took over {ANSWER_SECONDS:.0f} s)")
        return self._read()

    def _read(self) -> pb.WorkResponse:
        assert self._process is not None
        try:
            return pb.WorkResponse.FromString(self._process.connection.recv_bytes())
        except (EOFError, OSError, DecodeError):
            status = self._process.end()
            self._process = None
            raise Unavailable(f"{self.name} has died (exit status {status})") from None

    def close(self) -> None:
        super().close()
        if self._process is not None:
            self._process.popen.kill()  # it holds nothing but matches
            self._process.end()
            self._process = None


class RemoteLink(Link):
    """Calls a worker on another machine. A thread sends the requests and reads the responses.

    Args:
        address: HOST:PORT of the worker.
        credentials: the token and the certificates of the league.
        most_bytes: size of the largest response.
    """

    def __init__(
        self, address: str, matches: int, rules: str, credentials: Credentials, most_bytes: int
    ) -> None:
        super().__init__(f"the game worker at {address}", matches, rules)
        self._address, self._credentials, self._most_bytes = address, credentials, most_bytes
        self._stream: _Stream | None = None
        self._give_up_at = 0.0

    def _opened(self) -> pb.WorkResponse | None:
        if self._stream is None:
            options = {**dict(CHANNEL_OPTIONS), "grpc.max_receive_message_length": self._most_bytes}
            channel = self._credentials.channel(self._address, list(options.items()))
            self._stream = _Stream(channel, self._credentials.metadata)
            self._give_up_at = time.monotonic() + OPEN_SECONDS
            self._send(pb.WorkRequest(work=pb.WORK_OPEN, number=self.matches))
        if not self._stream.has_answer():
            if time.monotonic() > self._give_up_at:
                raise Unavailable(f"{self.name} does not answer")
            return None
        return self._stream.answer(0.0, self.name)

    def _send(self, request: pb.WorkRequest) -> None:
        assert self._stream is not None
        self._stream.ask(request)

    def _received(self) -> pb.WorkResponse:
        assert self._stream is not None
        return self._stream.answer(ANSWER_SECONDS, self.name)

    def close(self) -> None:
        super().close()
        if self._stream is not None:
            self._stream.close()
            self._stream = None


class _Stream:
    """Calls `Play`. A thread waits for each response, and keeps the stream open meanwhile."""

    def __init__(self, channel: grpc.Channel, metadata: Any) -> None:
        self._channel = channel
        self._requests: queue.SimpleQueue[pb.WorkRequest | None] = queue.SimpleQueue()
        self._asked: queue.SimpleQueue[pb.WorkRequest | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[pb.WorkResponse | str] = queue.SimpleQueue()
        self._call = WorkerServiceStub(channel).Play(
            iter(self._requests.get, None), metadata=metadata
        )
        threading.Thread(target=self._run, name="game-worker", daemon=True).start()

    def _run(self) -> None:
        try:
            while True:
                try:
                    request = self._asked.get(timeout=SILENT_SECONDS)
                except queue.Empty:
                    self._exchanged(pb.WorkRequest())
                    continue
                if request is None:
                    return
                self._answers.put(self._exchanged(request))
        except StopIteration:
            self._answers.put("it has ended the stream")
        except (grpc.RpcError, ValueError) as failure:  # ValueError: the channel was closed
            is_call = isinstance(failure, grpc.RpcError)
            self._answers.put(str(error_of(failure)) if is_call else "the connection was closed")

    def _exchanged(self, request: pb.WorkRequest) -> pb.WorkResponse:
        self._requests.put(request)
        return next(self._call)

    def ask(self, request: pb.WorkRequest) -> None:
        self._asked.put(request)

    def has_answer(self) -> bool:
        return not self._answers.empty()

    def answer(self, seconds: float, name: str) -> pb.WorkResponse:
        """Returns the response to the last request. Raises `Unavailable` if it is late."""
        try:
            answer = self._answers.get(timeout=max(seconds, 0.001))
        except queue.Empty:
            raise Unavailable(f"{name} did not answer (it took over {seconds:.0f} s)") from None
        if isinstance(answer, str):
            raise Unavailable(f"{name} did not answer ({plain(answer)[:LONGEST_TEXT]})")
        return answer

    def close(self) -> None:
        """Ends the call and the threads."""
        self._asked.put(None)
        self._requests.put(None)
        self._call.cancel()
        self._channel.close()
