"""The supervisor as a process, over made-up workers: signals, order of stopping, exit codes,
orphans.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ports import give_ports
from waiting import wait_for

from league.cluster import main as cluster
from league.runs.finding import waiting_workers
from league.runs.folder import Request, open_run

LEAGUE = Path(__file__).with_name("fake_league.py")
LOOKS = """
import sys
from league.cluster import main
main.has_no_gpu = lambda: False  # otherwise it need not look
sys.exit(main.main(sys.argv[1:]))
"""
WORKERS = ("matchmaker", "learner-main", "evaluator-0")


class Run:
    """A supervisor's process and its folder."""

    def __init__(self, folder: Path, learner: str, *before: str) -> None:
        self.folder = folder
        give_ports(folder)
        command = [*before, sys.executable, str(LEAGUE), str(folder), learner]
        # handed down, also where the tests themselves run under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def log(self, worker: str) -> str:
        log = self.folder / "logs" / f"{worker}.log"
        return log.read_text() if log.exists() else ""

    def announced(self) -> dict[str, Any]:
        """Where the matchmaker runs."""
        return json.loads((self.folder / "matchmaker.json").read_text())

    def await_workers(self) -> None:
        wait_for(lambda: all("\nhere" in self.log(worker) for worker in WORKERS))

    def end(self) -> str:
        """What it printed, once it has ended."""
        return self.process.communicate()[0]

    @property
    def stopped(self) -> list[str]:
        trace = self.folder / "stopped"
        return trace.read_text().split() if trace.exists() else []

    def pids(self) -> list[int]:
        """Processes whose command line names this run's folder, but the supervisor's."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) not in (self.process.pid, os.getpid()):
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.folder).encode() in line:
                    found.append(int(entry.name))
        return found


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(learner: str, *before: str) -> Run:
        runs.append(Run(tmp_path / "run", learner, *before))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.wait()


def test_a_killed_worker_is_replaced_and_ctrl_c_stops_the_matchmaker_last(
    start: Callable[[str], Run],
) -> None:
    """In between, a changed settings file is reported."""
    run = start("obeys")
    run.await_workers()
    assert waiting_workers(run.folder).keys() == {"learner-main", "evaluator-0"}, "none was heard"
    before = run.announced()
    assert before["pid"] in run.pids()
    os.kill(before["pid"], signal.SIGKILL)
    wait_for(lambda: run.announced()["pid"] != before["pid"])
    assert run.announced()["address"] == before["address"]
    wait_for(lambda: run.log("matchmaker").count("\nhere") == 2)
    with (run.folder / "config.toml").open("a") as config:
        config.write("# more\n")
    lines = list[str]()
    assert run.process.stdout is not None
    while not (lines and "config.toml" in lines[-1]):
        lines.append(next(run.process.stdout))
    run.process.send_signal(signal.SIGINT)
    words = "".join(lines) + run.end()
    assert run.process.returncode == 0
    assert re.search(r"matchmaker .*signal 9.* 0\.5 s", words)
    assert set(run.stopped[:2]) == {"learner-main", "evaluator-0"}
    assert run.stopped[2:] == ["matchmaker"]
    assert "Ctrl-C again hurries" in words
    assert not (run.folder / "matchmaker.json").exists()
    assert not waiting_workers(run.folder)


def test_under_nohup_a_closed_terminal_stops_nothing(start: Callable[..., Run]) -> None:
    run = start("obeys", "nohup")
    run.await_workers()
    run.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # in which it would have begun to stop
    assert run.process.poll() is None
    assert run.stopped == []
    run.process.terminate()
    run.end()
    assert run.process.returncode == 0
    assert len(run.stopped) == 3


def test_a_closed_terminal_stops_a_run_and_ctrl_c_hurries(start: Callable[[str], Run]) -> None:
    run = start("ignores")
    run.await_workers()
    run.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "evaluator-0" in run.stopped)  # the supervisor waits for the learner now
    run.process.send_signal(signal.SIGINT)
    words = run.end()
    assert re.search("learner-main .*killed", words)
    assert run.process.returncode == 0


def test_processes_that_hang_are_ended_within_10_seconds(start: Callable[[str], Run]) -> None:
    """As the settings are: a learner in a step that does not end, and a matchmaker that hangs
    too.
    """
    run = start("hangs")
    run.await_workers()
    for pid in run.pids():
        os.kill(pid, signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    words = run.end()
    assert run.process.returncode == 1
    assert re.search("learner-main .* 7 s .*killed", words)
    assert re.search("matchmaker .* 1 s .*killed", words)
    assert run.pids() == []


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux can tie a child to its parent's life"
)
def test_a_killed_supervisor_leaves_no_orphans_and_the_next_one_waits_for_the_evaluator(
    start: Callable[[str], Run],
) -> None:
    run = start("ignores")
    run.await_workers()
    assert len(run.pids()) == 3
    run.process.kill()
    run.process.wait()
    wait_for(lambda: not run.pids())
    again = start("finishes")
    words = again.end()
    assert again.process.returncode == 0
    assert "its steps" in words
    assert re.search("evaluator .* 0.3 s", words)
    assert again.stopped[-1] == "matchmaker"


@pytest.mark.long
def test_a_run_that_is_done_waits_until_the_evaluator_has_spent_its_budget(
    start: Callable[[str], Run],
) -> None:
    run = start("saves")
    assert run.process.stdout is not None
    assert any("Waiting for the evaluator" in line for line in run.process.stdout)
    enough = run.log("evaluator-0").count("asked") + 4  # the second answer is certain
    wait_for(lambda: run.stopped or run.log("evaluator-0").count("asked") >= enough)
    assert run.stopped == []
    (run.folder / "spent").touch()
    run.end()
    assert run.process.returncode == 0
    assert run.stopped[-1] == "matchmaker"


def test_a_run_that_is_done_stays_open_until_ctrl_c_and_restarts_what_dies(
    start: Callable[[str], Run],
) -> None:
    run = start("stays")
    assert run.process.stdout is not None
    assert any(line == "the end\n" for line in run.process.stdout)
    assert run.stopped == []
    before = run.announced()
    os.kill(before["pid"], signal.SIGKILL)
    wait_for(lambda: run.announced()["pid"] != before["pid"])
    wait_for(lambda: run.log("matchmaker").count("\nhere") == 2)
    run.process.send_signal(signal.SIGINT)
    words = run.end()
    assert run.process.returncode == 0
    assert "Stopping" in words
    assert "save a snapshot" not in words
    assert run.stopped == ["evaluator-0", "matchmaker"]


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux can tie a child to its parent's life"
)
def test_a_start_killed_while_it_looks_for_its_device_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOOKS, "--preset", "smoke", "--headless"]
    start = subprocess.Popen([*command, "--run-dir", str(tmp_path / "run")])
    try:
        task = Path(f"/proc/{start.pid}/task/{start.pid}/children")
        looking = wait_for(
            lambda: [pid for pid in map(int, task.read_text().split()) if spawned(pid)]
        )
    finally:
        start.kill()
        start.wait()
    wait_for(lambda: not any(map(spawned, looking)))


def spawned(pid: int) -> bool:
    """Whether the process is one of a pool."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def start_league(*flags: str) -> int:
    return cluster.main(["--preset", "smoke", "--cpu", "--headless", "--run-dir", "run", *flags])


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_that_has_steps_takes_no_other_start(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_run(Request(preset="smoke", run_dir=Path("run"))):
        pass
    (empty / "run" / "learner-main" / "checkpoints").mkdir(parents=True)
    (empty / "run" / "learner-main" / "checkpoints" / "step_000000000100.pt").touch()
    assert start_league("--from", "main@5") == 2
    assert str(Path("run")) in capsys.readouterr().err


@pytest.mark.long
def test_a_start_that_its_learner_refuses_leaves_no_run_behind(
    empty: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A later start would otherwise take the folder up and train from nothing."""
    (empty / "agent.pt").write_bytes(b"no checkpoint at all")
    flags = ("--from", "agent.pt", "--set", "supervisor.evaluators=0")
    assert start_league(*flags) == 4
    said = capfd.readouterr()
    assert re.search(r"learner-main .*agent\.pt", said.err)
    assert "Continue with" not in said.out
    assert not (empty / "run").exists()
