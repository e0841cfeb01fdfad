"""Games that run as servers: the examples of docs/examples, and a game of keys whose server can do
wrong.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from league.v1 import games_pb2 as pb
from league.v1 import games_pb2_grpc as rpc

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
PIG = (sys.executable, str(EXAMPLES / "pig_server.py"), "PORT")


@contextmanager
def started(command: Sequence[str], port: int = 0) -> Iterator[tuple[Any, int]]:
    """The process of a server, and its port. `PORT` in the command stands for it."""
    words = [str(port) if word == "PORT" else word for word in command]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready, _, number = process.stdout.readline().partition(" ")
        assert ready == "ready"
        try:
            yield process, int(number)
        finally:
            process.kill()


class PushMatch:
    """Keys: a seat's keys push its number. Whose pushes were greater at the time limit has won."""

    FORCES = np.array([0.5, -0.25, 0.125])

    def __init__(self, seed: int, limit: int) -> None:
        self._luck, self._limit, self._frame = np.random.default_rng(seed), limit, 0
        self._places, self._pushed = self._luck.uniform(-1, 1, 2), np.zeros(2)
        self.rewards, self.outcome = np.zeros(2), 0

    def step(self, keys: Sequence[int]) -> None:
        held = np.array([[number >> key & 1 for key in range(3)] for number in keys])
        self.rewards = held @ self.FORCES
        self._pushed += self.rewards
        if held.any():
            moved = self._places + self.rewards * self._luck.random() / 4
            self._places = np.clip(moved, -1, 1)
        self._frame += 1
        if self._frame == self._limit:
            lead = float(self._pushed[0] - self._pushed[1])
            self.outcome = {0: 0, 1: 1, -1: 2}[int(np.sign(lead))]

    def seen(self) -> list[list[float]]:
        time = self._frame / self._limit
        return [[*places, time] for places in (self._places, self._places[::-1])]


class Push(rpc.GameServiceServicer):
    """Serves `PushMatch`.

    Attributes:
        game: the description.
        spoil: changes a response to a step, or does something else in its place.
    """

    def __init__(self, **changes: Any) -> None:
        described: dict[str, Any] = {
            "contract": 1,
            "name": "push",
            "version": "1",
            "seats": 2,
            "observation_size": 3,
            "action_kind": pb.ACTION_KIND_KEYS,
            "action_names": ["up", "down", "little"],
            "reward_terms": ["pushed"],
            "frames_per_second": 20,
            "max_frames": 1200,
        }
        self.game = pb.DescribeGameResponse(**described | changes)
        self.spoil: Callable[[pb.PlayResponse, Any], object] = lambda response, context: None

    def DescribeGame(self, request: Any, context: Any) -> pb.DescribeGameResponse:
        return self.game

    def Play(self, requests: Any, context: Any) -> Iterator[pb.PlayResponse]:
        matches: dict[int, PushMatch] = {}
        for request in requests:
            begin, step = request.begin, request.step
            rows = begin.rows or step.rows
            for place, row in enumerate(rows):
                if request.HasField("begin"):
                    matches[row] = PushMatch(begin.seeds[place], begin.max_frames)
                else:
                    matches[row].step(step.actions[2 * place : 2 * place + 2])
            asked = [matches[row] for row in rows]
            response = pb.PlayResponse(
                observations=np.array([match.seen() for match in asked], "<f4").tobytes(),
                rewards=np.array([match.rewards for match in asked], "<f4").tobytes(),
                outcomes=bytes(match.outcome for match in asked),
            )
            if request.HasField("step"):
                self.spoil(response, context)
            yield response


@contextmanager
def served(servicer: rpc.GameServiceServicer, port: int = 0) -> Iterator[int]:
    """The port of a server in a thread of this process."""
    server = grpc.server(ThreadPoolExecutor(8))
    rpc.add_GameServiceServicer_to_server(servicer, server)
    number = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield number
    finally:
        server.stop(None).wait()
