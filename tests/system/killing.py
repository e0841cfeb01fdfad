"""A whole league whose processes are killed at random moments and started again, under load."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ports import free_port

from league.errors import LeagueError
from league.players import Assignment, Book, MatchResult, Player, PlayerKind, Role, SeatResult
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials

MOST_SECONDS = {"matchmaker": 1.0, "learner": 5.0, "evaluator": 4.0}
"""A process that is ready lives at most so long: matches last 2 s, and checkpoints are a second
apart.
"""
STARTING_SECONDS = {"matchmaker": 1.0, "learner": 4.0, "evaluator": 3.0}
"""Without waiting until it is ready it lives at most so long: most such kills meet a start."""
UNAWAITED = 0.25
BOTS = ("constant", "random", "based")
SETTINGS = """
[game]
match_seconds = 2

[evaluator]
matches_per_snapshot = 90
milestone_matches = 8

[learner]
steps = 100_000_000

[matchmaker.mixes]  # self-play would count in no payoff
league = { snapshots = 6.0, constant = 2.0, based = 2.0, random = 1.0, weapon_seeker = 1.0 }
"""


class Killed:
    """A process of the league, killed `kills` times at random moments and started again, in its own
    thread.

    Afterwards it runs on until `stop`. `unawaited` counts the kills that did not wait until it was
    ready.
    """

    def __init__(
        self,
        name: str,
        command: list[str],
        kills: int,
        is_ready: Callable[[float], bool],
        folder: Path,
    ) -> None:
        self.name, self.kills, self.unawaited = name, 0, 0
        self._command, self._wanted, self._is_ready = (
            [sys.executable, "-m", *command],
            kills,
            is_ready,
        )
        self._log, self._random = folder / f"{name}.out", random.Random(name)
        self.error: BaseException | None = None
        self.process = self._start()
        self._thread = threading.Thread(target=self._run, name=f"kills {name}")

    def begin(self) -> None:
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"}
            )

    def _run(self) -> None:
        try:
            while self.kills < self._wanted:
                self._live()
                self.process.kill()
                self.process.wait()
                self.kills += 1
                self.process = self._start()
        except BaseException as error:
            self.error = error

    def _live(self) -> None:
        """Until the moment of the kill."""
        if self._random.random() < UNAWAITED:
            time.sleep(self._random.uniform(0.0, STARTING_SECONDS[self.name]))
            self.unawaited += 1
        else:
            self.wait_ready()
            time.sleep(self._random.uniform(0.0, MOST_SECONDS[self.name]))
        assert self.process.poll() is None, f"{self.name} ended by itself: {self.said()}"

    def wait_ready(self) -> None:
        begun = time.time()
        while not self._is_ready(begun):
            assert self.process.poll() is None, f"{self.name} ended by itself: {self.said()}"
            time.sleep(0.02)

    def join(self) -> None:
        self._thread.join()
        if self.error is not None:
            raise self.error

    def stop(self) -> int:
        """Asks it to end, and waits until it has."""
        self.process.terminate()
        return self.process.wait()

    def said(self) -> str:
        return self._log.read_text()[-2000:]


class KilledLeague:
    """Matchmaker, learner and evaluator of preset `smoke`, each killed `kills` times, next to a
    bystander.
    """

    def __init__(self, folder: Path, kills: int) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.db = folder / "league.db"
        config = folder / "config.toml"
        config.write_text(SETTINGS)
        settings = ["--preset", "smoke", "--config", str(config)]
        served = ["--matchmaker", self.address, "--run-dir", str(folder)]
        port = self.address.rpartition(":")[2]
        self._probe = MatchmakerClient(self.address, wait_seconds=0.2)
        self.matchmaker = Killed(
            "matchmaker",
            ["matchmaker", "--db", str(self.db), "--port", port, *settings],
            kills,
            lambda _: self._answers(),
            folder,
        )
        self.matchmaker.wait_ready()
        self.learner = Killed(
            "learner",
            ["learner", *served, "--cpu", *settings],
            kills,
            lambda begun: self._beats("learner-main", begun),
            folder,
        )
        self.evaluator = Killed(
            "evaluator",
            ["evaluator", *served, *settings],
            kills,
            lambda begun: self._beats("evaluator-0", begun),
            folder,
        )
        self.all = (self.matchmaker, self.learner, self.evaluator)
        self.bystander = Bystander(self.address)

    def run(self) -> None:
        """All the kills; then all processes are asked to stop, the matchmaker last."""
        self.bystander.begin()
        for one in self.all:
            one.begin()
        for one in self.all:
            one.join()
        for one in self.all:
            one.wait_ready()
        table = self.folder / "evaluator" / "evaluation_results.csv"
        while not (table.exists() and self._has_trained()):
            time.sleep(0.1)
        self.bystander.stop()
        self.codes = [one.stop() for one in (self.learner, self.evaluator)]

    def _has_trained(self) -> bool:
        with MatchmakerClient(self.address, wait_seconds=5) as client:
            return any(one.player.name == "main" for one in client.ratings(Book.TRAIN))

    def close(self) -> None:
        """Nothing is left running, whatever happened."""
        self.bystander.stopping.set()
        for one in self.all:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        self._probe.close()

    def _answers(self) -> bool:
        try:
            self._probe.status()
        except LeagueError:
            return False
        return True

    def _beats(self, worker: str, since: float) -> bool:
        """Whether the worker's newest incarnation was opened, or sent a heartbeat, since then."""
        try:
            workers = self._probe.status().workers
        except LeagueError:
            return False
        return any(one.worker == worker and one.last_beat_at >= since for one in workers)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{self.db}?mode=ro", uri=True) as log:
            return log.execute(sql).fetchall()


class Bystander:
    """A worker that is never killed, and remembers its opponents, and at which position each of its
    results was acknowledged. It wins every match."""

    def __init__(
        self,
        address: str,
        game: str = "brawl",
        bots: Sequence[str] = BOTS,
        stat: str = "falls",
        credentials: Credentials | None = None,
    ) -> None:
        self._credentials = credentials
        self._game, self._bots, self._stat = game, bots, stat
        self.acknowledged: dict[str, int] = {}
        self.opponents: dict[str, str] = {}
        self.stopping = threading.Event()
        self.error: BaseException | None = None
        self._address = address
        self._thread = threading.Thread(target=self._run, name="bystander")

    def begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            shown = self._credentials
            with MatchmakerClient(self._address, wait_seconds=120, credentials=shown) as client:
                self._play(client)
        except BaseException as error:
            self.error = error

    def _play(self, client: MatchmakerClient) -> None:
        bots = [Player(name=name, game=self._game, kind=PlayerKind.BOT) for name in self._bots]
        mine = Player(name="bystander", game=self._game, kind=PlayerKind.LIVE, role=Role.MAIN)
        client.register_players([*bots, mine])
        incarnation = client.open_incarnation("bystander", mine.name).number
        while not self.stopping.wait(0.01):
            matches = client.acquire_matches(incarnation, 8, "league")
            self.opponents |= {match.match_id: match.opponent.name for match in matches}
            verdicts, _ = client.report_results(
                incarnation, [won(match, self._stat) for match in matches]
            )
            client.heartbeat(incarnation, len(self.acknowledged) + 8, 1, "league")
            for verdict in verdicts:
                assert verdict.accepted, verdict
                assert verdict.match_id not in self.acknowledged
                self.acknowledged[verdict.match_id] = verdict.log_position


def won(match: Assignment, stat: str) -> MatchResult:
    first, second = (
        SeatResult(
            player=p.name,
            digest=p.digest,
            stats={stat: 1.0 if seat == match.learner_seat else -1.0},
        )
        for seat, p in enumerate(match.seats)
    )
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome=1.0 - match.learner_seat,
        frames=300,
        seats=(first, second),
        finished_at=1.0,
    )
