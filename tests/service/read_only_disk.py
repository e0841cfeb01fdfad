"""What a matchmaker does on a disk that turns read-only, and when it is started on one: run by
`test_full_disk.py` on a disk of its own.

Prints a JSON object of what was seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from full_disk import becomes, status_of
from grpc_health.v1 import health_pb2_grpc
from refusing_disk import mount, read_only, sqlite_library
from small_league import BOTS, bot, live, played, snapshot

from league.errors import LeagueError
from league.rpc.client import MatchmakerClient
from matchmaker import limits
from matchmaker.api import monitor
from matchmaker.api.server import MatchmakerServer
from matchmaker.settings import MatchmakerSettings
from matchmaker.tools.fsck import fsck

SETTINGS = MatchmakerSettings()
limits.SWEEP_SECONDS = 0.05


def main(disk: Path) -> None:
    monitor.LEAST_FREE_BYTES = 0.0
    library = sqlite_library()
    if library is None:
        print(json.dumps({"skipped": "this Python has SQLite inside itself"}))
        return
    db = disk / "league.db"
    seen = while_it_runs(disk, db, library)
    mount("mount", "-o", "remount,ro", disk)
    before = content(disk)
    seen["started"] = refusal(lambda: MatchmakerServer(db, 0, SETTINGS))
    seen["asked"] = refusal(lambda: MatchmakerServer(db, 0, SETTINGS, read_only=True))
    seen["untouched"] = content(disk) == before
    mount("mount", "-o", "remount,rw", disk)
    with MatchmakerServer(db, 0, SETTINGS) as server, MatchmakerClient(server.address) as client:
        seen["again"] = client.status().log_position
        seen["known"] = all(
            client.match(name).result is not None for name in seen.pop("acknowledged")
        )
    seen["findings"] = fsck(db)[0]
    print(json.dumps(seen))


def while_it_runs(disk: Path, db: Path, library: Any) -> dict[str, Any]:
    with (
        MatchmakerServer(db, 0, SETTINGS) as server,
        MatchmakerClient(server.address, wait_seconds=0.1) as client,
        grpc.insecure_channel(server.address) as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        client.register_players([*map(bot, BOTS), live(), snapshot(1000)])
        incarnation = client.open_incarnation("learner-main", "main").number
        matches = client.acquire_matches(incarnation, 300, "league")
        first, second = (
            [played(match) for match in some] for some in (matches[:100], matches[100:])
        )
        told, _ = client.report_results(incarnation, first)
        with read_only(disk, library):
            shown = bool(os.statvfs(disk).f_flag & os.ST_RDONLY)
            refused = [
                refusal(lambda: client.report_results(incarnation, second, request_id="again")),
                refusal(lambda: client.acquire_matches(incarnation, 5, "league")),
            ]
            during, trouble = becomes(health, "NOT_SERVING"), client.status().vitals.trouble
            reads = (
                client.match(first[0].match_id).result is not None and client.status().log_position
            )
            time.sleep(3 * limits.SWEEP_SECONDS)
            still = status_of(health)
        after = becomes(health, "SERVING")
        verdicts, position = client.report_results(incarnation, second, request_id="again")
    return {
        "shown": shown,
        "refused": refused,
        "health": [during, still, after],
        "trouble": trouble,
        "reads": reads,
        "acknowledged": [verdict.match_id for verdict in (*told, *verdicts) if verdict.accepted],
        "twice": sum(verdict.duplicate for verdict in verdicts),
        "position": position,
    }


def refusal(call: Callable[[], object]) -> list[str]:
    """What kind of error a call raises, and its sentence; nothing when it is obeyed."""
    try:
        call()
    except LeagueError as error:
        return [type(error).__name__, str(error)]
    return []


def content(disk: Path) -> list[tuple[str, str]]:
    return [
        (file.name, hashlib.sha256(file.read_bytes()).hexdigest())
        for file in sorted(disk.iterdir())
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
