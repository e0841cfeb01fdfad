"""Runs a matchmaker process for measurements, and fills it with players."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from league.games.brawl.spec import STATS
from league.players import Assignment, MatchResult, Player, PlayerKind, Role, SeatResult
from league.rpc.client import MatchmakerClient

CONFIG = """
[matchmaker]
max_saved = 100_000
[matchmaker.mixes]
league = {snapshots = 7.0, constant = 0.5, based = 1.5, random = 1.0}
"""
BOTS = ("constant", "based", "random")


class Served:
    """Runs a real matchmaker process on a league's file. If the process is still running at the end
    of the block, it is killed.
    """

    def __init__(self, folder: Path) -> None:
        self._config = folder / "config.toml"
        self._config.write_text(CONFIG)
        self.db = folder / "league.db"

    def __enter__(self) -> Served:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> float:
        """Starts the process. Returns the seconds until it is ready."""
        began = time.perf_counter()
        command = [
            "-m",
            "matchmaker",
            "--port",
            "0",
            "--db",
            str(self.db),
            "--config",
            str(self._config),
        ]
        self._process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        word, _, port = self._process.stdout.readline().strip().partition(" ")
        assert word == "ready", "the matchmaker did not start"
        self.address = f"127.0.0.1:{port}"
        return time.perf_counter() - began

    def kill(self) -> None:
        """Kills the process with SIGKILL, like a machine that fails."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate()

    def cpu_seconds(self) -> float:
        """Returns the process's CPU time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def mebibytes(self) -> float:
        """Returns the process's resident memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def live(name: str) -> Player:
    return Player(name=name, game="brawl", kind=PlayerKind.LIVE, role=Role.MAIN)


def snapshot(lineage: str, step: int) -> Player:
    name = f"{lineage}@{step}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Player(
        name=name,
        game="brawl",
        kind=PlayerKind.SNAPSHOT,
        role=Role.MAIN,
        parent=lineage,
        digest=digest,
        step=step,
        creator=f"learner-{lineage}",
    )


def fill(client: MatchmakerClient, players: int, learners: int = 1) -> list[str]:
    """Registers `players` players: bots, learners and the learners' snapshots. Returns the
    learners' names.
    """
    names = [f"main{number}" for number in range(learners)]
    bots = [Player(name=name, game="brawl", kind=PlayerKind.BOT) for name in BOTS]
    client.register_players([*bots, *map(live, names)])
    wanted = players - len(bots) - learners
    snapshots = [snapshot(names[n % learners], 50_000 * (n // learners + 1)) for n in range(wanted)]
    for begin in range(0, wanted, 500):
        client.register_players(snapshots[begin : begin + 500])
    return names


def played(assignment: Assignment, outcome: float) -> MatchResult:
    """Returns a result as a learner of the built-in game reports it."""
    first, second = (
        SeatResult(
            player=player.name,
            digest=player.digest,
            step_start=player.step,
            step_end=player.step,
            stats={name: 1.5 * number for number, name in enumerate(STATS)},
        )
        for player in assignment.seats
    )
    return MatchResult(
        match_id=assignment.match_id,
        lease_token=assignment.lease_token,
        outcome=outcome,
        frames=3000,
        seats=(first, second),
        finished_at=time.time(),
    )
