"""The whole league as a user runs it, from start to summary, through kill -9 and Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from ports import free_port, give_ports
from waiting import wait_for

from league.errors import LeagueError, Unauthenticated
from league.rpc.client import MatchmakerClient
from league.runs.records import read_rows
from league.security.credentials import Credentials, of_run
from league.security.issuing import make_folder
from league.status import WorkerStatus
from matchmaker.tools.fsck import fsck

UNHURRIED = """
import functools, sys
from league.cluster import main
main.Supervisor = functools.partial(main.Supervisor, stop_worker_seconds=200.0)
sys.exit(main.main(sys.argv[1:]))
"""


class League:
    """A supervisor's process, and a client of its matchmaker."""

    def __init__(
        self, folder: Path, *flags: str, program: Sequence[str] = ("-m", "league.cluster.main")
    ) -> None:
        self.folder = folder
        give_ports(folder)
        self.started_at = time.time()
        command = [sys.executable, *program, "--headless", "--cpu"]
        command += ["--run-dir", str(folder), *flags]
        self.output = folder.with_suffix(".out")
        # NiceGUI takes these for its own tests
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        with self.output.open("a") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=own
            )

    def announced(self, service: str) -> dict[str, object]:
        file = self.folder / f"{service}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def learner(self) -> WorkerStatus | None:
        """What the learner has said since this start; None before, and while the league can't be
        asked.
        """
        address = self.announced("matchmaker").get("address")
        if not isinstance(address, str):
            return None
        try:
            with MatchmakerClient(address, wait_seconds=0.2, credentials=self.shown()) as client:
                workers = client.status().workers
        except LeagueError:
            return None
        return next(
            (w for w in workers if w.player and w.last_beat_at >= self.started_at and w.metrics),
            None,
        )

    def shown(self) -> Credentials:
        """The run's own, where it has any."""
        return of_run(self.folder, "read", environment={})

    def steps(self) -> int:
        learner = self.learner()
        return learner.step if learner is not None else 0

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self.process.poll() is None, f"it ended: {self.words}"
            time.sleep(0.3)  # a look opens a channel, which costs CPU time

    def pid(self, process: str) -> int:
        """Id of one of the league's processes, by the command line of its newest start."""
        for entry in Path("/proc").iterdir():
            try:
                words = (
                    (entry / "cmdline").read_bytes().decode().split("\0")
                    if entry.name.isdigit()
                    else []
                )
            except OSError:
                continue
            if words[1:3] == ["-m", process] and any(str(self.folder) in word for word in words):
                return int(entry.name)
        return 0

    def kill(self, *processes: str) -> None:
        """kill -9 of all at once, and waits until others run in their places."""
        pids = {process: self.pid(process) for process in processes}
        assert all(pids.values()), f"{pids}: {self.words}"
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        self.started_at = time.time()
        self.until(lambda: all(self.pid(name) not in (0, pid) for name, pid in pids.items()))

    @property
    def words(self) -> str:
        return self.output.read_text()

    def query(self, sql: str) -> list[tuple[object, ...]]:
        log = f"{(self.folder / 'league.db').as_uri()}?mode=ro"
        with sqlite3.connect(log, uri=True) as database:
            return database.execute(sql).fetchall()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., League]]:
    leagues: list[League] = []

    def start(*flags: str, **options: Sequence[str]) -> League:
        leagues.append(League(tmp_path / "rün [1] #%41", *flags, **options))
        return leagues[-1]

    yield start
    for league in leagues:
        league.process.kill()
        league.process.wait()


def dashboard(league: League) -> str:
    """The address that the league prints once it is served."""
    league.until(lambda: "In a browser: " in league.words)
    found = re.search(r"In a browser: (\S+)", league.words)
    assert found, league.words
    return found[1]


def answered(address: str, headers: Mapping[str, str] | None = None) -> int:
    """The status with which a page answers, 0 while nobody does."""
    try:
        request = urllib.request.Request(address, headers=dict(headers or {}))
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def assert_whole(league: League) -> None:
    """The database is sound, no lease is open, and the log passes every check."""
    assert league.query("PRAGMA integrity_check") == [("ok",)]
    findings, _ = fsck(league.folder / "league.db")
    assert findings == []


@pytest.mark.long
def test_the_address_of_the_dashboard_is_told_when_no_other_program_listens_there(
    start: Callable[..., League], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUMITE_NO_DASHBOARD", raising=False)
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        flags = ("--preset", "smoke", "--no-learners", "--set", "supervisor.evaluators=0")
        flags += ("--dashboard", f"127.0.0.1:{port}", "--dashboard-name", "kumite.example.org")
        league = start(*flags)
        league.until(lambda: "dashboard ended (exit code 1" in league.words)
        assert "In a browser" not in league.words
    assert dashboard(league) == f"http://127.0.0.1:{port}"
    league.until(lambda: answered(dashboard(league)) == 401)
    token = league.folder / "tokens" / "worker.token"
    league.until(lambda: str(token) in league.words)
    assert token.is_file()


@pytest.mark.long
def test_a_run_that_is_done_stays_open_in_a_terminal_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUMITE_NO_DASHBOARD", raising=False)
    for name in [name for name in os.environ if name.startswith("PYTEST")]:
        monkeypatch.delenv(name)  # NiceGUI takes these for its own tests
    folder = tmp_path / "my run"
    give_ports(folder)
    words = ["--preset", "smoke", "--steps", "256", "--set", "supervisor.evaluators=0", "--cpu"]
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        program = [sys.executable, "-m", "league.cluster.main", "--run-dir", str(folder)]
        os.execv(sys.executable, [*program, *words])
    try:
        seen = b""
        while b"--steps 512" not in seen:
            seen += os.read(terminal, 65536)
        said = seen.decode(errors="replace").rpartition("stays open until Ctrl-C")[2]
        address = re.search(r"look +(http://\S+)", said)
        assert address, said
        assert f"fight     {address[1]}/play" in said
        for command in ("exploit main", "report"):
            assert f"bin/league {command} --run-dir {shlex.quote(str(folder))}" in said
        assert f"bin/start-league --run-dir {shlex.quote(str(folder))} --steps 512 --cpu" in said
        assert answered(f"{address[1]}/play") == 200
        found = json.loads((folder / "matchmaker.json").read_text())
        with MatchmakerClient(found["address"]) as client:
            assert client.status().vitals.now > 0
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):  # what Linux raises when the other end is closed
            while os.read(terminal, 65536):
                pass
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert answered(f"{address[1]}/play") == 0
    finally:
        os.close(terminal)  # which also stops a run that is still open


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_run_survives_kills_and_ctrl_c_and_continues(
    start: Callable[..., League], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it with tokens and TLS, which every process finds in the run's folder and settings,
    at first with a dashboard.

    The first Ctrl-C comes while it trains, to a learner that takes its time: leaderboard and curves
    do not wait. The second comes while the evaluator finishes: what it has played counts.
    """
    monkeypatch.delenv("KUMITE_NO_DASHBOARD")
    make_folder(tmp_path / "certs")
    settings = (
        "learner.snapshot_interval=2_048",
        "evaluator.milestone_matches=4000",  # of the last snapshot
        "security.tokens=true",
        f"security.tls={tmp_path / 'certs'}",
    )
    flags = ("--preset", "smoke", *(word for one in settings for word in ("--set", one)))
    league = start(*flags, "--steps", "1_000_000", program=("-c", UNHURRIED))
    league.until(lambda: league.steps() >= 512)
    league.until(lambda: answered(dashboard(league)) == 401)
    league.kill("evaluator", "learner", "matchmaker", "league.views.dashboard.main")
    league.until(lambda: answered(dashboard(league)) == 401)
    token = (league.folder / "tokens" / "read.token").read_text().strip()
    assert answered(dashboard(league), {"cookie": f"kumite_token={token}"}) == 200
    league.until(lambda: "clean matches of" in league.words)
    league.until(lambda: league.steps() > 0)
    learner = league.pid("learner")
    os.kill(learner, signal.SIGSTOP)
    league.process.send_signal(signal.SIGINT)
    for name in ("leaderboard.html", "training_curves.png"):
        league.until((league.folder / name).exists)
    os.kill(learner, signal.SIGCONT)
    assert league.process.wait() == 0, league.words
    for name in ("learner-main", "evaluator-0", "matchmaker", "dashboard"):
        assert f"{name} ended (signal 9)" in league.words
    assert "its steps" not in league.words
    words = f"bin/start-league --run-dir {shlex.quote(str(league.folder))} --steps 1000000"
    assert f"Continue with: {words}" in league.words
    assert_whole(league)
    kept = [row[0] for row in league.query("SELECT name FROM players WHERE name LIKE 'main@%'")]
    assert kept, "the learner left no snapshot"
    reached = max(int(str(name).partition("@")[2]) for name in kept)

    monkeypatch.setenv("KUMITE_NO_DASHBOARD", "1")
    end = reached + 1_024
    league = start(*flags, "--steps", str(end))
    league.until(lambda: "its steps" in league.words)
    assert league.steps() >= reached
    address = str(league.announced("matchmaker")["address"])
    with (
        pytest.raises(Unauthenticated),
        MatchmakerClient(address, credentials=Credentials(tls=tmp_path / "certs")) as stranger,
    ):
        stranger.status()
    played = (
        "SELECT count(*) FROM results JOIN assignments USING (ordinal) WHERE category = 'gauntlet' "
        f"AND 'main@{end}' IN (seat0, seat1)"
    )
    league.until(lambda: league.query(played) != [(0,)])
    league.process.send_signal(signal.SIGINT)
    assert league.process.wait() == 0, league.words
    assert_whole(league)
    report = league.folder / "evaluator" / "evaluation_results.csv"
    rows = [row for row in read_rows(report) if row["player"] == f"main@{end}"]
    assert 0 < sum(int(row["matches"]) for row in rows) < 4000
    curves = league.folder / "training_curves.png"  # the process that draws them may live on
    wait_for(lambda: curves.stat().st_mtime >= report.stat().st_mtime)
    assert f"main@{end}" in (league.folder / "leaderboard.csv").read_text()
    assert not league.announced("matchmaker")
