"""What a matchmaker does on a disk that fills up, and after: run by `test_full_disk.py` on a disk
of 3 MB.

Prints a JSON object of what was seen.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from small_league import BOTS, bot, live, played, snapshot

from league.errors import StorageFull
from league.players import MatchResult
from league.rpc.client import MatchmakerClient
from matchmaker import limits
from matchmaker.api import monitor
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import fsck


def main(disk: Path) -> None:
    filler, db = disk / "filler", disk / "league.db"
    filler.write_bytes(b"x" * 1_000_000)
    waits: list[str] = []
    settings, limits.SWEEP_SECONDS = MatchmakerSettings(), 0.05
    monitor.LEAST_FREE_BYTES = 0.0
    with (
        MatchmakerServer(db, 0, settings) as server,
        MatchmakerClient(server.address, wait_seconds=0.1) as client,
        MatchmakerClient(server.address, wait_seconds=600.0, on_wait=waits.append) as patient,
        ThreadPoolExecutor(1) as other,
        grpc.insecure_channel(server.address) as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        client.register_players([*map(bot, BOTS), live(), snapshot(1000)])
        incarnation = client.open_incarnation("learner-main", "main").number
        acknowledged: list[str] = []
        request_id, pending = fill(client, incarnation, acknowledged)
        before = becomes(health, "NOT_SERVING")
        told = client.status().vitals.trouble
        asked = other.submit(patient.acquire_matches, incarnation, 200, "league")
        while not waits and not asked.done():
            time.sleep(0.02)
        filler.unlink()
        leased = len(asked.result())
        after = becomes(health, "SERVING")
        if pending:
            verdicts, _ = client.report_results(incarnation, pending, request_id=request_id)
            acknowledged += [verdict.match_id for verdict in verdicts if verdict.accepted]
        known = [client.match(match_id).result is not None for match_id in acknowledged[-50:]]
        position = client.status().log_position
    seen = {
        "acknowledged": len(acknowledged),
        "position": position,
        "before": before,
        "told": told,
        "leased": leased,
        "after": after,
        "known": all(known),
        "findings": fsck(db)[0],
    }
    print(json.dumps(seen))


def status_of(health: health_pb2_grpc.HealthStub) -> str:
    reply = health.Check(health_pb2.HealthCheckRequest())
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))


def becomes(health: health_pb2_grpc.HealthStub, wanted: str) -> str:
    """Waits for a status."""
    while status_of(health) != wanted:
        time.sleep(0.02)
    return wanted


def fill(
    client: MatchmakerClient, incarnation: int, acknowledged: list[str]
) -> tuple[str, list[MatchResult]]:
    """Plays until the disk is full. Returns the report that failed, with its request id; none if
    another call did.
    """
    for number in itertools.count():
        try:
            matches = client.acquire_matches(incarnation, 200, "league")
        except StorageFull:
            return "", []
        results = [played(match) for match in matches]
        try:
            verdicts, _ = client.report_results(incarnation, results, request_id=f"report-{number}")
        except StorageFull:
            return f"report-{number}", results
        acknowledged += [verdict.match_id for verdict in verdicts if verdict.accepted]
    raise AssertionError("unreachable")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
