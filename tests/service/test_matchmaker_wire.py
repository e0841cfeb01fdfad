"""The face to the network: the client's waiting, error classes, watching, health, reflection."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import grpc
import pytest
from small_league import played, report, small_league, snapshot
from waiting import wait_for

from league.errors import InvalidInput, LeagueError, Unavailable
from league.rpc.client import MatchmakerClient
from league.v1 import evaluator_pb2 as e
from league.v1 import exploiters_pb2 as x
from league.v1 import matchmaker_pb2 as m
from league.v1 import matchmaker_pb2_grpc
from league.v1 import types_pb2 as t
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings


def test_the_client_gives_up_in_a_sentence(tmp_path):
    with MatchmakerServer(tmp_path / "league.db") as server:
        address = server.address
    with MatchmakerClient(address, wait_seconds=0.3) as client:
        with pytest.raises(Unavailable, match=address):
            client.status()
        with pytest.raises(Unavailable, match=address):
            next(client.watch())


def test_a_handshake_may_take_seconds(league):
    with late(league.server.address, 1.5) as address, MatchmakerClient(address) as client:
        assert client.status().game == "brawl"


@contextmanager
def late(address: str, seconds: float) -> Iterator[str]:
    """A relay to a service whose first bytes come after a while, as from a busy machine."""
    host, port = address.split(":")

    def carry(source: socket.socket, sink: socket.socket, pause: float) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(pause)
                pause = 0.0
                sink.sendall(data)

    def relay() -> None:
        with suppress(OSError):
            while True:
                near, far = front.accept()[0], socket.create_connection((host, int(port)))
                for ends in ((near, far, 0.0), (far, near, seconds)):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as front:
        thread = threading.Thread(target=relay, daemon=True)
        thread.start()
        yield f"127.0.0.1:{front.getsockname()[1]}"
        front.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "address",
    [
        *("localhost", "127.0.0.1:", ":80", "127.0.0.1:http"),
        *("http://127.0.0.1:50051", "https://[::1]:50051"),
    ],
)
def test_an_address_is_host_and_port(address):
    with pytest.raises(InvalidInput, match=f"{re.escape(address)}.*HOST:PORT"):
        MatchmakerClient(address)


def test_a_closed_client_says_so(league):
    client = MatchmakerClient(league.server.address)
    client.status()
    client.close()
    client.close()
    with pytest.raises(Unavailable, match="closed"):
        client.status()


CALLS = {
    f"/{service.full_name}/{method.name}": (module, method)
    for module in (m, x, e)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if "request_id" in method.input_type.fields_by_name or method.name == "Heartbeat"
}
"""The calls that change the league, from the protos."""


@pytest.mark.parametrize("path", CALLS)
def test_a_calls_act_takes_the_fields_of_its_request(league, path):
    module, method = CALLS[path]
    request = getattr(module, method.input_type.name)()
    if "request_id" in method.input_type.fields_by_name:
        request.request_id = "request-1"
    if path.endswith("/OpenGate"):
        request.player.kind = t.PLAYER_KIND_SNAPSHOT
    with grpc.insecure_channel(league.server.address) as channel:
        call = channel.unary_unary(path, request.SerializeToString, bytes)
        with pytest.raises(grpc.RpcError) as caught:
            call(request)
    assert caught.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)


def test_watching_from_the_start_and_as_it_happens(league):
    seen: list[str] = []
    enough = threading.Event()

    def follow():
        for event in league.client.watch(after=0):
            seen.append(f"{event.position} {event.kind}")
            if "main@9000" in event.text:
                enough.set()
                return

    thread = threading.Thread(target=follow)
    thread.start()
    wait_for(lambda: len(seen) >= league.server.league.view.event_position)
    time.sleep(0.2)
    league.client.register_players([snapshot(9000)])
    assert enough.wait()
    thread.join()
    assert seen[0] == "1 configuration"
    assert [int(text.split()[0]) for text in seen] == list(range(1, len(seen) + 1))


def test_watching_only_what_is_new(league):
    found = []
    thread = threading.Thread(target=lambda: found.append(next(league.client.watch(after=-1))))
    thread.start()
    for step in range(50_000, 50_100):
        league.client.register_players([snapshot(step)])
        thread.join(0.05)
        if not thread.is_alive():
            break
    assert "main@50" in found[0].text


def test_watch_streams_are_bounded_and_given_back(tmp_path, monkeypatch):
    monkeypatch.setattr("matchmaker.limits.MAX_WATCHERS", 2)
    with small_league(tmp_path) as league:
        clients = [MatchmakerClient(league.server.address, wait_seconds=0.2) for _ in range(3)]
        streams = [client.watch() for client in clients]
        for stream in streams[:2]:
            next(stream)
        with pytest.raises(Unavailable, match=r"\b2\b"):
            next(streams[2])
        assert league.client.status().game == "brawl"
        clients[0].close()
        wait_for(lambda: watches(clients[2]))  # the closed watcher's place is given back
        for client in clients:
            client.close()


def watches(client):
    """Whether there is a place for it."""
    with suppress(Unavailable):
        return next(client.watch())


def test_stopping_ends_the_streams_and_twice_is_fine(tmp_path):
    server = MatchmakerServer(tmp_path / "league.db", settings=MatchmakerSettings())
    server.start()
    client = MatchmakerClient(server.address, wait_seconds=0.2)
    stream = client.watch()
    next(stream)
    server.stop()
    server.stop()
    list(stream)  # until its end
    client.close()


def test_a_huge_request_is_refused_and_the_service_lives(league):
    request = m.RegisterPlayersRequest(request_id="r")
    request.players.add(name="big", card_json="x" * (40 << 20))
    with pytest.raises(LeagueError):
        league.client._call("RegisterPlayers", request)
    assert league.client.status().game == "brawl"


def test_a_client_of_the_protos_sees_whether_a_match_has_a_result(league):
    incarnation = league.open()
    done, running = league.client.acquire_matches(incarnation, 2, "league")
    report(league, incarnation, played(done))
    with grpc.insecure_channel(league.server.address) as channel:
        ask = matchmaker_pb2_grpc.MatchmakerServiceStub(channel).GetMatch
        for match, has_result in ((done, True), (running, False)):
            found = ask(m.GetMatchRequest(match_id=match.match_id))
            assert found.has_result is found.HasField("result") is has_result
