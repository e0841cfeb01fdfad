"""A league on the nodes of a Ray cluster, in a namespace of the tests' own.

python -m pytest -m "long or slow" -s tests/system/test_ray.py     # 20 kills, or KUMITE_KILLS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from killing import Bystander
from ports import EVERYWHERE, give_ports, listening
from ray_nodes import RayNodes, can_enter, is_inside, run_inside
from test_kills import CARRIED_TWICE
from waiting import wait_for

from league.errors import LeagueError
from league.rpc.client import MatchmakerClient
from league.runs.finding import DATABASE
from league.security.credentials import of_run
from league.security.issuing import make_folder
from league.status import LeagueStatus, WorkerStatus
from matchmaker.tools.fsck import fsck

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
inside = pytest.mark.skipif(not is_inside(), reason="runs in a namespace")
KILLS = int(os.environ.get("KUMITE_KILLS", "20"))
KINDS = ("learner", "matchmaker", "evaluator", "actor")
RESUMED_SECONDS = float(os.environ.get("KUMITE_RESUMED_SECONDS", "30"))
"""Longest time from a kill until training goes on, on a machine with a free core."""
PATIENT = """
import functools, sys
from league.cluster import main, supervisor
patient = {"limit": 1000, "longest_seconds": 0.5}
supervisor.RestartPolicy = functools.partial(supervisor.RestartPolicy, **patient)
sys.exit(main.main(sys.argv[1:]))
"""
"""Starts a league that restarts a process as often as a test kills it. The waits between restarts
do not grow, as if the kills were hours apart.
"""
SETTINGS = """
[game]
name = "matrix:rps"

[learner]
matches = 16
n_steps = 16
batch_size = 128
snapshot_interval = 2_000
steps = {steps}

[evaluator]
matches_per_snapshot = 90
milestone_matches = 8

[matchmaker.mixes]  # self-play would count in no payoff
league = {{ snapshots = 6.0, random = 1.0, always-rock = 1.0 }}

[security]
host = "0.0.0.0"
tokens = true
"""
FAR = "cluster.learners=far=yes"


@pytest.mark.skipif(is_inside() or not can_enter(), reason="needs namespaces of its own")
def test_in_a_namespace() -> None:
    run_inside(__file__, "-m", "long and not slow")


@pytest.mark.slow
@pytest.mark.skipif(is_inside() or not can_enter(), reason="needs namespaces of its own")
def test_kills_in_a_namespace() -> None:
    run_inside(__file__, "-m", "slow")


class RayLeague:
    """A supervisor on a Ray cluster, and a client of its matchmaker."""

    def __init__(
        self, folder: Path, nodes: RayNodes, *flags: str, steps: int, program: Sequence[str] = ()
    ) -> None:
        self.folder, self.output = folder, folder.with_suffix(".out")
        give_ports(folder)
        config = folder.with_suffix(".toml")
        config.write_text(SETTINGS.format(steps=steps))
        words = [*(program or ("-m", "league.cluster.main")), "--engine", "ray", "--headless"]
        words += ["--preset", "board", "--config", str(config), "--run-dir", str(folder)]
        words += [word for flag in flags for word in ("--set", flag)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *words],
                stdout=output,
                stderr=output,
                env=nodes.environment,
            )

    @property
    def address(self) -> str:
        return json.loads((self.folder / "matchmaker.json").read_text())["address"]

    def status(self) -> LeagueStatus | None:
        """The league's state, None while the matchmaker does not answer."""
        try:
            shown = of_run(self.folder, "read")
            with MatchmakerClient(self.address, wait_seconds=1, credentials=shown) as client:
                return client.status()
        except (LeagueError, OSError, ValueError):
            assert self.process.poll() is None, self.said()
            return None

    def worker(self, name: str) -> WorkerStatus | None:
        status = self.status()
        workers = status.workers if status is not None else ()
        return next((one for one in workers if one.worker == name), None)

    def node(self, name: str) -> str:
        """The name of a worker's node, "" before its first heartbeat."""
        worker = self.worker(name)
        return worker.node if worker is not None else ""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(f"file:{self.folder / DATABASE}?mode=ro", uri=True) as log:
            return log.execute(sql).fetchall()

    def said(self) -> str:
        logs = [self.output, *sorted((self.folder / "logs").glob("*.log"))]
        return "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in logs)

    def wait(self) -> int:
        return self.process.wait()


def pids_of(league: RayLeague, program: str) -> list[int]:
    """The processes of a league that run a program."""
    marks, found = (f"-m\0{program}\0".encode(), league.address.encode()), []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if all(mark in line for mark in marks):
                found.append(int(entry.name))
    return found


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def pid_of(league: RayLeague, kind: str) -> int:
    """A process of a league, or the actor of its learner."""
    if kind == "matchmaker":
        return int(json.loads((league.folder / "matchmaker.json").read_text())["pid"])
    (pid,) = wait_for(lambda: pids_of(league, "learner" if kind == "actor" else kind))
    return parent_of(pid) if kind == "actor" else pid


class Progress:
    """Says whether a league trains: whether steps rose in an incarnation of its learner."""

    def __init__(self, league: RayLeague) -> None:
        self._league, self._first = league, dict[int, int]()

    def of_learner(self, after: int = 0) -> WorkerStatus | None:
        """The learner, if it has made steps in an incarnation above `after`."""
        learner = self._league.worker("learner-main")
        if learner is None or learner.incarnation <= after or not learner.step:
            return None
        first = self._first.setdefault(learner.incarnation, learner.step)
        return learner if learner.step > first else None

    def forget(self) -> None:
        self._first.clear()


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with RayNodes() as nodes:
        nodes.start("head", cpus=2)
        nodes.start("far-1", cpus=2, label="far=yes")
        nodes.wait()
        yield nodes


@inside
def test_a_league_trains_to_its_end_on_two_nodes(nodes: RayNodes, tmp_path: Path) -> None:
    league = RayLeague(tmp_path / "run", nodes, FAR, "cluster.most_evaluators=2", steps=8_000)
    learner = wait_for(lambda: league.node("learner-main"))
    assert learner != wait_for(lambda: league.node("evaluator-0"))
    assert league.wait() == 0, league.said()
    assert fsck(league.folder / DATABASE)[0] == []
    (steps,) = league.rows("SELECT max(step) FROM players WHERE kind = 'snapshot'")
    assert steps[0] >= 8_000
    assert "published" in (league.folder / "logs" / "learner-main.log").read_text()


@inside
def test_the_ranks_of_a_learner_train_together_on_two_nodes(
    nodes: RayNodes, tmp_path: Path
) -> None:
    """Each node has cores for a single rank."""
    ranks = "cluster.ranks=2", "cluster.cpus=2", "supervisor.evaluators=0"
    league = RayLeague(tmp_path / "run", nodes, *ranks, steps=3_000)
    wait_for(lambda: league.node("learner-main"))
    actors = [parent_of(pid) for pid in pids_of(league, "learner")]
    assert {nodes.of(actor) for actor in actors} == {"head", "far-1"}
    for pid in pids_of(league, "learner"):
        assert EVERYWHERE.isdisjoint(listening(pid))
    assert league.wait() == 0, league.said()
    (steps,) = league.rows("SELECT max(step) FROM players WHERE kind = 'snapshot'")
    assert steps[0] >= 3_000


@inside
def test_tries_of_an_exploiter_are_spread(nodes: RayNodes, tmp_path: Path) -> None:
    words = ["exploit", "always-rock", "--game", "matrix:rps", "--steps", "2k", "--tries", "2"]
    words += ["--matches", "40", "--out", str(tmp_path), "--engine", "ray", "--json"]
    for value in ("matches=16", "n_steps=16", "batch_size=128"):
        words += ["--set", f"learner.{value}"]
    made = subprocess.run(
        [sys.executable, "-m", "league", *words],
        env=nodes.environment,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert made.returncode == 0
    (found,) = json.loads(made.stdout)
    assert len(found["tries"]) == 2
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


@inside
def test_a_node_without_the_run_s_folder_trains_over_grpc(nodes: RayNodes, tmp_path: Path) -> None:
    """The certificates are in the hidden folder too."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    make_folder(hidden / "certs", ["127.0.0.1"])
    tls = "security.tokens=false", f"security.tls={hidden / 'certs'}"
    nodes.start("blind", label="blind=yes", hidden=hidden)
    nodes.wait()
    try:
        refused = RayLeague(hidden / "refused", nodes, *tls, steps=3_000)
        assert refused.wait() == 2
        assert str(hidden / "refused") in refused.output.read_text()
        league = RayLeague(hidden / "run", nodes, *tls, "cluster.learners=blind=yes", steps=3_000)
        assert league.wait() == 0, league.said()
        store = f"cluster.store=file://{tmp_path / 'store'}"  # then a learner may move
        stored = RayLeague(hidden / "stored", nodes, *tls, store, steps=3_000)
        assert stored.wait() == 0, stored.said()
    finally:
        nodes.kill("blind")
    (steps,) = league.rows("SELECT max(step) FROM players WHERE kind = 'snapshot'")
    assert steps[0] >= 3_000
    assert not (league.folder / "learner-main").exists()
    assert list((tmp_path / "store" / "learner-main" / "checkpoints").iterdir())
    assert "published" in (league.folder / "logs" / "learner-main.log").read_text()


@inside
@pytest.mark.slow
def test_kills_of_processes_and_nodes_lose_nothing(nodes: RayNodes, tmp_path: Path) -> None:
    """Training resumes within 30 s after each kill."""
    nodes.start("far-2", cpus=2, label="far=yes")
    nodes.wait()
    began = time.monotonic()
    league = RayLeague(tmp_path / "run", nodes, FAR, steps=10**9, program=["-c", PATIENT])
    drawn, waits, far = random.Random(0), dict[str, list[float]](), 2
    progress = Progress(league)
    wait_for(progress.of_learner)
    shown, bots = of_run(league.folder, "worker"), ("random", "always-rock")
    bystander = Bystander(league.address, "matrix:rps", bots, "payoff", shown)
    bystander.begin()
    try:
        for kill in range(KILLS):
            kind = "node" if kill % 10 == 5 else drawn.choice(KINDS)
            learner = wait_for(progress.of_learner)
            time.sleep(drawn.uniform(0.0, 3.0))
            if kind == "node":
                nodes.kill(nodes.of(pid_of(league, "actor")))
                far += 1
                nodes.start(f"far-{far}", cpus=2, label="far=yes")
            else:
                os.kill(pid_of(league, kind), signal.SIGKILL)
            at, is_again = time.monotonic(), kind in ("node", "actor", "learner")
            progress.forget()
            after = learner.incarnation if is_again else 0
            wait_for(lambda after=after: progress.of_learner(after))
            waits.setdefault(kind, []).append(time.monotonic() - at)
            print(kill, kind, f"{waits[kind][-1]:.1f} s", flush=True)
        bystander.stop()
        league.process.send_signal(signal.SIGINT)
        assert league.wait() == 0, league.said()
    finally:
        bystander.stopping.set()
        league.process.kill()
    stored = dict(
        league.rows(
            "SELECT a.match_id, r.position FROM results r JOIN assignments a USING (ordinal)"
        )
    )
    assert bystander.acknowledged.items() <= stored.items()
    assert not league.rows(CARRIED_TWICE)
    assert fsck(league.folder / DATABASE)[0] == []
    told = {kind: f"{max(times):.1f} s" for kind, times in waits.items()}
    acknowledged = len(bystander.acknowledged)
    print(f"{KILLS} kills in {time.monotonic() - began:.0f} s, longest until training: {told}")
    print(f"{acknowledged} results acknowledged, {len(stored)} in all")
    assert max(max(times) for times in waits.values()) < RESUMED_SECONDS
