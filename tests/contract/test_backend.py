"""What every `Backend` keeps to. An implementation is tested by one subclass with a `backend`
fixture.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from league.cluster.backend import Backend, ProcessSpec, RunningProcess
from league.cluster.local import LocalBackend
from league.errors import ConfigError

PATIENCE_SECONDS = 10.0
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(60)"
GRANDPARENT = (
    "import subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print('child', child.pid, flush=True); time.sleep(60)"
)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class BackendContract:
    @pytest.fixture
    def backend(self) -> Backend:
        raise NotImplementedError

    @pytest.fixture
    def log(self, tmp_path: Path) -> Path:
        return tmp_path / "logs" / "worker.log"

    def python(self, backend: Backend, log: Path, code: str, **environment: str) -> RunningProcess:
        command = (sys.executable, "-c", code)
        spec = ProcessSpec(name="worker", command=command, log=log, environment=environment)
        return backend.start(spec)

    def test_exit_code_is_told_once_it_ended(self, backend: Backend, log: Path) -> None:
        process = self.python(backend, log, "import sys; sys.exit(7)")
        until(lambda: process.poll() is not None)
        assert process.poll() == 7
        process.terminate()
        process.kill()
        assert process.poll() == 7

    def test_what_it_prints_is_logged(self, backend: Backend, log: Path) -> None:
        code = "import os, sys; print('to out'); print(os.environ['WORD'], file=sys.stderr)"
        process = self.python(backend, log, code, WORD="to err")
        until(lambda: process.poll() is not None)
        assert {"to out", "to err"} <= set(log.read_text().splitlines())

    def test_terminate_asks_and_kill_insists(self, backend: Backend, log: Path) -> None:
        process = self.python(backend, log, STUBBORN)
        until(lambda: log.exists() and "here" in log.read_text().splitlines())
        process.terminate()
        time.sleep(0.1)
        assert process.poll() is None
        process.kill()
        until(lambda: process.poll() is not None)
        assert process.poll() == -signal.SIGKILL

    def test_kill_takes_what_it_started_along(self, backend: Backend, log: Path) -> None:
        process = self.python(backend, log, GRANDPARENT)
        child = self._child(log)
        process.kill()
        until(lambda: process.poll() is not None and not is_alive(child))

    def test_what_it_started_ends_with_it(self, backend: Backend, log: Path) -> None:
        process = self.python(backend, log, GRANDPARENT)
        child = self._child(log)
        process.terminate()
        until(lambda: process.poll() is not None and not is_alive(child))

    def test_missing_program_is_a_clear_error(self, backend: Backend, log: Path) -> None:
        spec = ProcessSpec(name="worker", command=("no-such-program",), log=log)
        with pytest.raises(ConfigError, match=r"worker .* no-such-program"):
            backend.start(spec)

    def _child(self, log: Path) -> int:
        def lines() -> list[str]:
            return [line for line in log.read_text().splitlines() if line.startswith("child ")]

        until(lambda: log.exists() and bool(lines()))
        child = int(lines()[0].split()[1])
        assert is_alive(child)
        return child


class TestLocalBackend(BackendContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return LocalBackend()

    def test_ctrl_c_of_the_terminal_does_not_reach_it(self, backend: Backend, log: Path) -> None:
        process = self.python(
            backend, log, "import os; print('group', os.getpgrp(), os.getpid(), os.getsid(0))"
        )
        until(lambda: process.poll() is not None)
        words = log.read_text().splitlines()[-1].split()
        assert words[1] == words[2] == words[3] == str(process.pid)

    def test_one_thread_unless_somebody_chose(
        self, backend: Backend, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        code = "import os; print('threads', os.environ['OMP_NUM_THREADS'])"
        for chosen, expected in ((None, "threads 1"), ("3", "threads 3")):
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
            if chosen:
                monkeypatch.setenv("OMP_NUM_THREADS", chosen)
            process = self.python(backend, log, code)
            until(lambda process=process: process.poll() is not None)
            assert log.read_text().splitlines()[-1] == expected

    def test_long_logs_are_set_aside_and_go_on(self, log: Path) -> None:
        backend = LocalBackend(log_bytes=2000, old_logs=2)
        code = "import time\nfor n in range(2000): print('line', n, flush=True); time.sleep(.0005)"
        process = self.python(backend, log, code)
        while process.poll() is None:
            backend.rotate_logs()
            time.sleep(0.01)
        backend.rotate_logs()
        names = sorted(path.name for path in log.parent.iterdir())
        assert names == ["worker.log", "worker.log.1", "worker.log.2"]
        assert log.stat().st_size <= 2000
        assert log.with_name("worker.log.1").read_text().splitlines()[-1] == "line 1999" or (
            log.read_text().splitlines()[-1] == "line 1999"
        )
