"""The supervisor as a process, over made-up workers: signals, order of stopping, exit codes,
orphans.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from league.cluster import main as cluster
from league.runs.folder import Request, open_run

LEAGUE = Path(__file__).with_name("fake_league.py")
WORKERS = ("matchmaker", "learner-main", "evaluator-0")


def _hear_a_closed_terminal() -> None:
    """Also where the tests themselves run under nohup, which is handed down."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Run:
    """A supervisor's process and its folder."""

    def __init__(self, folder: Path, learner: str, *before: str) -> None:
        self.folder = folder
        command = [*before, sys.executable, str(LEAGUE), str(folder), learner]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=_hear_a_closed_terminal
        )

    def log(self, worker: str) -> str:
        log = self.folder / "logs" / f"{worker}.log"
        return log.read_text() if log.exists() else ""

    def await_workers(self) -> None:
        until(lambda: all("\nhere" in self.log(worker) for worker in WORKERS))

    def end(self, seconds: float = 90) -> str:
        """What it printed, once it has ended."""
        return self.process.communicate(timeout=seconds)[0]

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


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


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


def test_ctrl_c_stops_learner_and_evaluator_first_and_the_matchmaker_last(
    start: Callable[[str], Run],
) -> None:
    run = start("obeys")
    run.await_workers()
    announced = json.loads((run.folder / "matchmaker.json").read_text())
    assert announced["pid"] in run.pids()
    run.process.send_signal(signal.SIGINT)
    words = run.end()
    assert run.process.returncode == 0
    assert set(run.stopped[:2]) == {"learner-main", "evaluator-0"}
    assert run.stopped[2:] == ["matchmaker"]
    assert "Ctrl-C again hurries" in words
    assert not (run.folder / "matchmaker.json").exists()


@pytest.mark.parametrize("before", [(), ("nohup",)], ids=["plain", "nohup"])
def test_a_closed_terminal_stops_a_run_but_under_nohup(
    before: tuple[str, ...], start: Callable[..., Run]
) -> None:
    run = start("obeys", *before)
    run.await_workers()
    run.process.send_signal(signal.SIGHUP)
    if before:
        time.sleep(1.0)  # in which the plain one has stopped
        assert run.process.poll() is None
        assert run.stopped == []
        run.process.terminate()
    run.end()
    assert run.process.returncode == 0
    assert len(run.stopped) == 3


def test_done_learner_ends_the_run_after_a_bounded_wait_for_the_evaluator(
    start: Callable[[str], Run],
) -> None:
    run = start("finishes")
    words = run.end()
    assert run.process.returncode == 0
    assert "The learner has done its steps." in words
    assert "The evaluator was not done after 0.3 s" in words
    assert run.stopped[-1] == "matchmaker"


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
    assert "learner-main had not stopped within 7 s and was killed." in words
    assert "matchmaker had not stopped within 1 s and was killed." in words
    assert run.pids() == []


def test_second_ctrl_c_hurries(start: Callable[[str], Run]) -> None:
    run = start("ignores")
    run.await_workers()
    run.process.send_signal(signal.SIGINT)
    until(lambda: run.stopped == ["evaluator-0"])  # the supervisor waits for the learner now
    run.process.send_signal(signal.SIGINT)
    words = run.end()
    assert "learner-main had not stopped when hurried and was killed." in words
    assert run.process.returncode == 0


@pytest.mark.parametrize(
    ("learner", "code", "sentence"),
    [
        ("fills", 3, "learner-main can't run: learner: no space left to write x"),
        ("refuses", 2, "learner-main can't run: learner: no such setting"),
    ],
)
def test_what_a_restart_can_not_cure_stops_everything(
    start: Callable[[str], Run], learner: str, code: int, sentence: str
) -> None:
    run = start(learner)
    words = run.end()
    assert run.process.returncode == code
    assert sentence in words
    assert "restarts" not in words
    assert run.pids() == []


def test_killed_worker_is_replaced_at_the_same_address(start: Callable[[str], Run]) -> None:
    run = start("obeys")
    run.await_workers()
    before = json.loads((run.folder / "matchmaker.json").read_text())
    os.kill(before["pid"], signal.SIGKILL)
    until(lambda: json.loads((run.folder / "matchmaker.json").read_text())["pid"] != before["pid"])
    assert json.loads((run.folder / "matchmaker.json").read_text())["address"] == before["address"]
    run.process.send_signal(signal.SIGINT)
    assert "matchmaker ended (signal 9): it restarts in 0.5 s." in run.end()


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux can tie a child to its parent's life"
)
def test_killed_supervisor_leaves_no_orphans_and_no_lock(start: Callable[[str], Run]) -> None:
    run = start("ignores")
    run.await_workers()
    assert len(run.pids()) == 3
    run.process.kill()
    run.process.wait()
    until(lambda: not run.pids())
    again = start("finishes")
    again.end()
    assert again.process.returncode == 0


def test_one_run_folder_has_one_supervisor(start: Callable[[str], Run]) -> None:
    run = start("obeys")
    run.await_workers()
    command = [sys.executable, str(LEAGUE), str(run.folder), "obeys"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert second.returncode != 0
    assert f"in use by another start-league (process {run.process.pid})" in second.stderr
    assert run.process.poll() is None


def start_league(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The real command, in the folder's parent."""
    command = [
        sys.executable,
        "-m",
        "league.cluster.main",
        "--preset",
        "smoke",
        "--cpu",
        "--headless",
    ]
    return subprocess.run(
        [*command, "--run-dir", str(folder), *flags],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=folder.parent,
    )


def test_a_run_that_has_steps_takes_no_other_start(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with open_run(Request(preset="smoke", config=None, assignments=(), run_dir=folder)):
        pass
    (folder / "learner-main" / "checkpoints").mkdir(parents=True)
    (folder / "learner-main" / "checkpoints" / "step_000000000100.pt").touch()
    done = start_league(folder, "--from", "main@5")
    assert done.returncode == 2
    assert "has steps already" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("main@5", "main@5"),
        ("agnet.pt", "'agent.pt'"),
        ("notes.txt", ".safetensors"),
    ],
)
def test_a_start_from_nothing_makes_no_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    origin: str,
    words: str,
) -> None:
    for name in ("agent.pt", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    flags = ["--preset", "smoke", "--cpu", "--headless", "--run-dir", "run", "--from", origin]
    assert cluster.main(flags) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.timeout(120)
def test_a_start_that_its_learner_refuses_leaves_no_run_behind(tmp_path: Path) -> None:
    """A later start would otherwise take the folder up and train from nothing."""
    (tmp_path / "agent.pt").write_bytes(b"no checkpoint at all")
    done = start_league(tmp_path / "run", "--from", "agent.pt")
    assert done.returncode == 4
    assert "learner-main can't run: learner: checkpoint agent.pt is damaged" in done.stderr
    assert "Continue with" not in done.stdout
    assert not (tmp_path / "run").exists()
