"""Lets a player that runs elsewhere play a rival's seats, over gRPC (`player.proto`).

    python -m league.agent.player_link PARENT_PID CONNECTION

This process replaces `rival_worker.py`, and answers the same requests. The file `LINK` in the
working directory holds the player's address. No code of the player runs here, and the keys that the
player sends are checked.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from league.agent.rival_bundles import LINK
from league.agent.rival_worker import Request, answer
from league.agent.rivals import KEYS
from league.errors import LeagueError
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.status import error_of
from league.security.credentials import of_run
from league.service.die_with_parent import tie_to
from league.v1.player_pb2 import DecideRequest, DecideResponse, PlayerBeginning, PlayerHello
from league.v1.player_pb2_grpc import PlayerServiceStub

CONTRACT = 1
SILENT_SECONDS = 5.0
"""After this many seconds without a request, an empty request keeps the stream open."""
MOST_BYTES = 1 << 20
"""Size of the largest response, in bytes."""


class Stream:
    """Sends requests to the player on a stream (a call of Decide)."""

    def __init__(self, link: dict[str, Any], observation_size: int) -> None:
        token, tls = (Path(link[name]) if link[name] else None for name in ("token_file", "tls"))
        shown = of_run(token_file=token, tls=tls, environment={})
        options = {**dict(CHANNEL_OPTIONS), "grpc.max_receive_message_length": MOST_BYTES}
        self._channel = shown.channel(link["address"], list(options.items()))
        self._requests: queue.SimpleQueue[DecideRequest] = queue.SimpleQueue()
        self._hello: PlayerHello | None = PlayerHello(
            contract=CONTRACT,
            game=link["game"],
            game_version=link["version"],
            observation_size=observation_size,
            action_size=KEYS,
        )
        self._responses = PlayerServiceStub(self._channel).Decide(
            iter(self._requests.get, None), metadata=shown.metadata
        )

    def ask(self, request: DecideRequest) -> DecideResponse:
        """Returns the player's response.

        Raises:
            LeagueError: the player refuses the game, or uses another version of the protocol.
            grpc.RpcError: the player can't be reached, or has ended the stream.
        """
        if self._hello is not None:
            request.hello.CopyFrom(self._hello)
        self._requests.put(request)
        response = next(self._responses, None)
        if response is None:
            raise LeagueError("it ended the stream")
        if self._hello is not None and response.hello.contract != CONTRACT:
            raise LeagueError(
                f"it speaks version {response.hello.contract} of the contract, this is {CONTRACT}"
            )
        self._hello = None
        if len(response.keys) != KEYS * len(request.seats):
            raise LeagueError(f"it sent {len(response.keys)} keys for {len(request.seats)} seats")
        if any(key > 1 for key in response.keys):
            raise LeagueError("it sent other keys than 0 and 1")
        return response

    def close(self) -> None:
        self._channel.close()


class Link:
    """Answers the league's requests with the player's responses. If a stream ends, the matches on
    it fail, and later matches use a new stream.
    """

    def __init__(self, link: dict[str, Any]) -> None:
        self._link = link
        self._stream: Stream | None = None
        self._why = ""  # the reason why the newest stream has ended

    def answers(self, request: Request) -> Iterator[bytes]:
        """Answers a request, seat by seat."""
        seen_SO = request.observations.astype("<f4")
        keys, failures = b"", dict[int, str]()
        try:
            if self._stream is None and request.begin:
                self._stream, self._why = Stream(self._link, seen_SO.shape[1]), ""
            if self._stream is not None:
                begin = [
                    PlayerBeginning(seat=seat, seed=secrets.randbits(63)) for seat in request.begin
                ]
                response = self._stream.ask(
                    DecideRequest(
                        end=request.end,
                        begin=begin,
                        seats=request.see,
                        observations=seen_SO.tobytes(),
                    )
                )
                keys = response.keys
                failures = {
                    one.seat: one.reason or "it gave no reason" for one in response.failures
                }
        except (LeagueError, grpc.RpcError) as error:
            why = error if isinstance(error, LeagueError) else error_of(error)
            self._why = f"the player at {self._link['address']} can't play: {why}"
            if self._stream is not None:
                self._stream.close()
                self._stream = None
        for seat in request.begin:
            yield answer(seat, reason=self._why or failures.get(seat, ""))
        for place, seat in enumerate(request.see):
            own = keys[KEYS * place : KEYS * (place + 1)]
            yield answer(seat, own, self._why or failures.get(seat, ""))

    def rest(self) -> None:
        """Sends an empty request, so that the stream stays open."""
        for _ in self.answers(Request([], [], [], np.zeros((0, 0)))):
            pass


def main(parent: str, connection: str, *_: str) -> None:
    """Answers requests until the connection ends."""
    tie_to(int(parent))
    link = Link(json.loads(Path(LINK).read_text()))
    with (
        os.fdopen(int(connection), "rb") as requests,
        open(os.dup(int(connection)), "wb", buffering=0) as answers,
    ):
        while True:
            while not select.select([requests], [], [], SILENT_SECONDS)[0]:
                link.rest()
            request = Request.read(requests)
            if request is None:
                return
            for one in link.answers(request):
                answers.write(one)


if __name__ == "__main__":
    main(*sys.argv[1:])
