"""The contract of engines: they start processes, hand over their logs, and end them with all that
they started.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from league.cluster.engine import Child, Engine, Place, ProcessSpec

SLEEPS = "import time; print('here', flush=True); time.sleep(600)"
OBEYS = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7));" + SLEEPS
PARENT = (
    "import subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print('child', child.pid, flush=True); time.sleep(600)"
)
LINES = "for number in range(20000): print('line', number)"


def spec_of(code: str, folder: Path) -> ProcessSpec:
    command = (sys.executable, "-c", code)
    return ProcessSpec(
        name="worker", command=command, log=folder / "worker.log", place=Place(command=command)
    )


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class EngineContract:
    """Subclasses give the fixture `engine`, and `engine_name` for `engine_parent.py`."""

    engine_name = ""

    @pytest.fixture
    def start(self, engine: Engine, tmp_path: Path) -> Iterator[object]:
        started: list[Child] = []

        def start(code: str) -> Child:
            started.append(engine(spec_of(code, tmp_path)))
            return started[-1]

        yield start
        for child in started:
            child.kill()
            wait_for(lambda child=child: child.poll() is not None)

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        (tmp_path / "worker.log").touch()
        return tmp_path / "worker.log"

    @pytest.mark.parametrize("code", [0, 3])
    def test_the_exit_code_is_the_process_s(self, start, code: int) -> None:
        child = start(f"import sys; sys.exit({code})")
        assert wait_for(lambda: [] if child.poll() is None else [child.poll()]) == [code]

    def test_variables_that_change_settings_stay_here(
        self, start, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The run's config.toml has them already, unless a flag has replaced them there."""
        monkeypatch.setenv("KUMITE_LEARNER__STEPS", "7")
        monkeypatch.setenv("KUMITE_NO_DASHBOARD", "1")
        child = start("import os; print(*(name for name in os.environ if 'KUMITE' in name))")
        wait_for(lambda: child.poll() is not None)
        assert "KUMITE_LEARNER__STEPS" not in log.read_text()

    def test_a_signal_reads_as_its_negative_number(self, start, log: Path) -> None:
        child = start(SLEEPS)
        wait_for(lambda: "here" in log.read_text().split())
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
        wait_for(lambda: child.poll() is not None)
        assert child.poll() == -signal.SIGKILL

    def test_a_process_that_is_asked_to_stop_chooses_its_exit_code(self, start, log: Path) -> None:
        child = start(OBEYS)
        wait_for(lambda: "here" in log.read_text().split())
        child.terminate()
        wait_for(lambda: child.poll() is not None)
        assert child.poll() == 7
        child.terminate()  # twice is fine

    def test_a_kill_ends_all_that_the_process_started(self, start, log: Path) -> None:
        child = start(PARENT)
        wait_for(lambda: "child" in log.read_text().split())
        grandchild = int(log.read_text().split()[-1])
        assert is_alive(grandchild)
        child.kill()
        wait_for(lambda: child.poll() is not None and not is_alive(grandchild))
        assert child.poll() == -signal.SIGKILL

    def test_the_log_is_whole_when_the_exit_code_is_there(self, start, log: Path) -> None:
        child = start(LINES)
        wait_for(lambda: child.poll() is not None)
        lines = log.read_text().splitlines()
        assert lines[0].startswith("--- ")
        assert lines[1:] == [f"line {number}" for number in range(20_000)]

    def test_a_process_ends_with_the_supervisor(self, engine: Engine, log: Path) -> None:
        parent = Path(__file__).with_name("engine_parent.py")
        command = [sys.executable, str(parent), self.engine_name, str(log.parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as supervisor:
            assert supervisor.stdout is not None
            pid = int(supervisor.stdout.readline())
            assert is_alive(pid)
            supervisor.kill()
        wait_for(lambda: not is_alive(pid))
