"""Measures the decisions per second of games that run as servers, and of Pig in this process.

    .venv/bin/python tests/bench/remote.py [HOST:PORT ...]

Random players play Pig of docs/examples/pig_server.py by direct calls in this process, then the
same Pig on a server, and then the games at the given addresses. The best of three measurements
counts.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from game_servers import PIG, started
from pig_server import Server

from league.games import remote
from league.games.registry import make_batched

MATCHES = 1, 16, 128, 512
SECONDS = 1.0


class Here:
    """Replaces `remote._Stream`, and calls Pig in this process."""

    def __init__(self, stub: Any) -> None:
        self._requests: deque[Any] = deque()
        self._responses = Server().Play(iter(self._requests.popleft, None), None)

    def ask(self, request: Any, seconds: float) -> Any:
        self._requests.append(request)
        return next(self._responses)

    def close(self) -> None:
        """Does nothing."""


def decisions_a_second(address: str, matches: int) -> float:
    game = make_batched(f"grpc:{address}", matches)
    game.bots_N2[:] = 0
    game.reset(np.arange(matches, dtype=np.uint64))
    idle, rates = game.idle_actions(), []
    for _ in range(3):
        decisions, began = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < SECONDS:
            decisions += int(game.observations_N2O[:, :, 2].sum())
            game.step(idle)
        rates.append(decisions / elapsed)
    game.close()
    return max(rates)


def main(addresses: list[str]) -> None:
    print("matches", *(f"{matches:>10}" for matches in MATCHES), sep="\t")
    with ExitStack() as stack:
        _, port = stack.enter_context(started(PIG))
        there, own = remote._Stream, f"127.0.0.1:{port}"
        for name, address in (("here", own), ("Python", own), *((a, a) for a in addresses)):
            remote._Stream = Here if name == "here" else there
            rates = [decisions_a_second(address, matches) for matches in MATCHES]
            print(name, *(f"{rate:>10,.0f}" for rate in rates), sep="\t", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
