"""Clients that ask as fast as they can: results reported, and matches acquired, a second."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

import grpc
from matchmaker_served import Served, fill, played

from league.ids import new_id
from league.players import MatchResult
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.client import MatchmakerClient
from league.v1 import matchmaker_pb2 as m
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceStub

ACQUIRED = 1024
"""Matches of one call while leases are gathered, and the most that a call may ask for."""


@dataclass(frozen=True)
class Load:
    """What one client did, in seconds of the monotonic clock that all processes share."""

    count: int
    began: float
    ended: float


def measured(clients: int, work: Callable[..., Load], *arguments: object) -> float:
    """Rate of all clients together, each in a process, from the first one's begin to the last
    one's end.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(clients)
    with context.Pool(clients, initializer=_share, initargs=(barrier,)) as pool:
        loads = pool.starmap(work, [(number, *arguments) for number in range(clients)], chunksize=1)
    seconds = max(load.ended for load in loads) - min(load.began for load in loads)
    return sum(load.count for load in loads) / seconds


def _share(barrier: Barrier) -> None:
    global ready
    ready = barrier


def results(served: Served, players: int, clients: int, batch: int, count: int) -> float:
    """Results a second: made, encoded, sent, rated, made durable, and their verdicts decoded."""
    with MatchmakerClient(served.address) as client:
        learners = fill(client, players, clients)
    return measured(clients, report, served.address, learners, batch, count // clients)


def report(number: int, address: str, learners: list[str], batch: int, count: int) -> Load:
    with MatchmakerClient(address) as client:
        incarnation = client.open_incarnation(
            f"learner-{learners[number]}", learners[number]
        ).number
        found: list[MatchResult] = []
        while len(found) < count:
            matches = client.acquire_matches(
                incarnation, min(ACQUIRED, count - len(found)), "league"
            )
            found += [played(match, (0.0, 1.0, 1.0)[match.ordinal % 3]) for match in matches]
        ready.wait()
        began = time.monotonic()
        for begin in range(0, count, batch):
            verdicts, _ = client.report_results(
                incarnation, found[begin : begin + batch], request_id=new_id()
            )
            assert all(verdict.accepted and not verdict.duplicate for verdict in verdicts)
        return Load(count, began, time.monotonic())


def assignments(served: Served, players: int, clients: int, batch: int, count: int) -> float:
    """Assignments a second: drawn, made durable, sent, and decoded from protobuf by who asked."""
    with MatchmakerClient(served.address) as client:
        learners = fill(client, players, clients)
    return measured(clients, acquire, served.address, learners, batch, count // clients)


def acquire(number: int, address: str, learners: list[str], batch: int, count: int) -> Load:
    with (
        MatchmakerClient(address) as client,
        grpc.insecure_channel(address, CHANNEL_OPTIONS) as channel,
    ):
        incarnation = client.open_incarnation(
            f"learner-{learners[number]}", learners[number]
        ).number
        client.acquire_matches(incarnation, 1, "league")  # the first one finds the weights
        stub = MatchmakerServiceStub(channel)
        ready.wait()
        began, got = time.monotonic(), 0
        while got < count:
            request = m.AcquireMatchesRequest(
                request_id=new_id(),
                incarnation=incarnation,
                count=min(batch, count - got),
                mix="league",
            )
            reply = stub.AcquireMatches(request)
            assert all(len(match.seats) == 2 for match in reply.assignments)
            got += len(reply.assignments)
        return Load(got, began, time.monotonic())
