"""Puts load on a matchmaker: processes that call as fast as they can, or a thousand clients that
call once a second.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

import grpc
import numpy as np
from matchmaker_served import Served, fill, played
from numpy.typing import NDArray

from league.ids import new_id
from league.players import Assignment, MatchResult
from league.rpc.channel import CHANNEL_OPTIONS
from league.rpc.client import MatchmakerClient
from league.rpc.convert import from_message, to_message
from league.rpc.status import retry_advice
from league.v1 import matchmaker_pb2 as m
from league.v1.matchmaker_pb2_grpc import MatchmakerServiceStub

ACQUIRED = 1024
"""Matches that a call acquires while clients collect leases. A call may not ask for more."""
Work = Callable[[MatchmakerClient, str, int, int, int], tuple[float, float]]
"""Reports or acquires a number of matches in batches. It returns the times at which it began and
ended, in seconds of the monotonic clock that all processes share.
"""


def rate(served: Served, work: Work, players: int, clients: int, batch: int, count: int) -> float:
    """Returns the number of matches per second that all clients together report or acquire. The
    time runs from the first client's begin to the last client's end.
    """
    with MatchmakerClient(served.address) as client:
        learners = fill(client, players, clients)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(clients)
    with context.Pool(clients, initializer=_share, initargs=(barrier,)) as pool:
        parts = [(work, served.address, name, batch, count // clients) for name in learners]
        times = pool.starmap(_client_of, parts, chunksize=1)
    seconds = max(ended for _, ended in times) - min(began for began, _ in times)
    return count // clients * clients / seconds


def _share(barrier: Barrier) -> None:
    global ready
    ready = barrier


def _client_of(
    work: Work, address: str, learner: str, batch: int, count: int
) -> tuple[float, float]:
    with MatchmakerClient(address) as client:
        incarnation = client.open_incarnation(f"learner-{learner}", learner).number
        return work(client, learner, incarnation, batch, count)


def report(
    client: MatchmakerClient, learner: str, incarnation: int, batch: int, count: int
) -> tuple[float, float]:
    """Reports results. The time includes making and encoding the results, the server's work until
    they are durable, and decoding the verdicts.
    """
    found: list[MatchResult] = []
    while len(found) < count:
        matches = client.acquire_matches(incarnation, min(ACQUIRED, count - len(found)), "league")
        found += [played(match, (0.0, 1.0, 1.0)[match.ordinal % 3]) for match in matches]
    ready.wait()
    began = time.monotonic()
    for begin in range(0, count, batch):
        verdicts, _ = client.report_results(
            incarnation, found[begin : begin + batch], request_id=new_id()
        )
        assert all(verdict.accepted and not verdict.duplicate for verdict in verdicts)
    return began, time.monotonic()


def acquire(
    client: MatchmakerClient, learner: str, incarnation: int, batch: int, count: int
) -> tuple[float, float]:
    """Acquires assignments. The time includes the server's work until they are durable, and
    decoding them.

    When a worker holds `ACQUIRED` leases, another worker continues.
    """
    client.acquire_matches(incarnation, 1, "league")  # the first call computes the weights
    ready.wait()
    began = time.monotonic()
    for begin in range(0, count, batch):
        if begin % ACQUIRED == 0:
            worker = client.open_incarnation(f"worker-{new_id()}", learner).number
        request = m.AcquireMatchesRequest(
            request_id=new_id(),
            incarnation=worker,
            count=min(batch, count - begin),
            mix="league",
        )
        reply = client._stub.AcquireMatches(request)
        assert all(len(match.seats) == 2 for match in reply.assignments)
    return began, time.monotonic()


LEARNERS = 12
"""Learners that the clients' workers train. AlphaStar had twelve."""


def latencies(
    served: Served, players: int, clients: int, seconds: int, reports: bool
) -> tuple[NDArray[np.float64], float]:
    """Measures the latency of AcquireMatches with many clients. Each learner's weights are computed
    before the measurement.

    Args:
        served: the matchmaker.
        players: number of players in the league.
        clients: number of clients. Each acquires four matches once a second.
        seconds: duration of the measurement.
        reports: whether each client also reports its four matches before it asks for the next ones.

    Returns:
        The milliseconds from the time at which each call was due to its answer, and the CPU time of
        the server in seconds.
    """
    with MatchmakerClient(served.address) as client:
        learners = fill(client, players, LEARNERS)
        workers = [
            client.open_incarnation(f"worker-{n}", learners[n % LEARNERS]).number
            for n in range(clients)
        ]
        for worker in workers[:LEARNERS]:
            client.acquire_matches(worker, 1, "league")
    before = served.cpu_seconds()
    found = np.array(asyncio.run(_crowd(served.address, workers, seconds, reports)))
    return found, served.cpu_seconds() - before


async def _crowd(address: str, workers: list[int], seconds: int, reports: bool) -> list[float]:
    channels = [grpc.aio.insecure_channel(address, CHANNEL_OPTIONS) for _ in workers]
    await asyncio.gather(*(channel.channel_ready() for channel in channels))
    start = time.monotonic() + 1.0
    calls = [
        _client(MatchmakerServiceStub(channel), worker, start + n / len(workers), seconds, reports)
        for n, (channel, worker) in enumerate(zip(channels, workers, strict=True))
    ]
    # in this process a garbage collection takes 50 ms, as long as a hundred answers
    gc.disable()
    try:
        found = await asyncio.gather(*calls)
    finally:
        gc.enable()
    await asyncio.gather(*(channel.close() for channel in channels))
    return [latency for one in found for latency in one]


async def _client(
    stub: MatchmakerServiceStub, worker: int, first: float, seconds: int, reports: bool
) -> list[float]:
    """Calls once a second from `first` on. A late answer does not delay the next call."""
    found: list[float] = []
    tasks = []
    for second in range(seconds):
        due = first + second
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        tasks.append(asyncio.create_task(_call(stub, worker, due, reports, found)))
    await asyncio.gather(*tasks)
    return found


async def _call(
    stub: MatchmakerServiceStub, worker: int, due: float, reports: bool, found: list[float]
) -> None:
    request = m.AcquireMatchesRequest(
        request_id=new_id(), incarnation=worker, count=4, mix="league"
    )
    reply = await _answered(stub.AcquireMatches, request)
    assert len(reply.assignments) == 4
    found.append(1000.0 * (time.monotonic() - due))
    if reports:
        results = [to_message(played(from_message(Assignment, a), 1.0)) for a in reply.assignments]
        report = m.ReportResultsRequest(request_id=new_id(), incarnation=worker, results=results)
        await _answered(stub.ReportResults, report)


async def _answered(call: Any, request: Any) -> Any:
    """Returns the reply to a call. If the service asks for a retry, the call is sent again."""
    while True:
        try:
            return await call(request)
        except grpc.aio.AioRpcError as failure:
            if (advice := retry_advice(failure)) is None:
                raise
            await asyncio.sleep(advice)
