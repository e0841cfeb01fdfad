"""Processes on this machine, each in its own session, with its output in a log file.

Their own session keeps the terminal's Ctrl-C away from them: only the supervisor receives it and
stops them in order. On Linux the kernel ends them with the supervisor, even after kill -9.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from league.cluster.backend import Backend, ProcessSpec, RunningProcess
from league.errors import ConfigError
from league.service import die_with_parent

# Two threads on two busy cores made a learner fifty times slower, so each process has one.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
LOG_BYTES = 16_000_000
OLD_LOGS = 3


class LocalProcess(RunningProcess):
    """A child that leads its own process group."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    @property
    def pid(self) -> int:
        return self._child.pid

    def poll(self) -> int | None:
        if self._child.returncode is None and self._has_ended():
            self.kill()  # ends its own children too, while its id can't belong to another process
        return self._child.poll()

    def terminate(self) -> None:
        if self._child.poll() is None:
            self._child.terminate()

    def kill(self) -> None:
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # macOS refuses for a group of zombies
                self._child.kill()

    def _has_ended(self) -> bool:
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._child.pid, options) is not None
        except ChildProcessError:
            return True


class LocalBackend(Backend):
    """Subprocesses. Start them from the main thread: the kernel ties them to that thread."""

    def __init__(self, *, log_bytes: int = LOG_BYTES, old_logs: int = OLD_LOGS) -> None:
        self._log_bytes = log_bytes
        self._old_logs = old_logs
        self._logs: set[Path] = set()

    def start(self, spec: ProcessSpec) -> LocalProcess:
        program = spec.command[0]
        if shutil.which(program) is None:
            raise ConfigError(f"{spec.name} can't start: there is no program {program}")
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        self._logs.add(spec.log)
        command = [
            sys.executable,
            "-I",
            "-S",
            die_with_parent.__file__,
            str(os.getpid()),
            *spec.command,
        ]
        with spec.log.open("ab") as log:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            log.write(f"--- {stamp} {spec.name}: {' '.join(spec.command)}\n".encode())
            log.flush()
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**_ENVIRONMENT, **os.environ, **spec.environment},
                start_new_session=True,
            )
        return LocalProcess(child)

    def rotate_logs(self) -> None:
        for log in self._logs:
            with contextlib.suppress(OSError):  # a full disk must not end the league
                if log.stat().st_size > self._log_bytes:
                    self._rotate(log)

    def _rotate(self, log: Path) -> None:
        """Copies `log` to `log`.1, and so on, and empties it: its writers append to it."""
        for number in range(self._old_logs - 1, 0, -1):
            older = _old_log(log, number)
            if older.exists():
                older.replace(_old_log(log, number + 1))
        shutil.copyfile(log, _old_log(log, 1))
        os.truncate(log, 0)


def _old_log(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def last_sentence(log: Path) -> str:
    """The last line since the process's last start, which is its error if one ended it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    line = next((line for line in reversed(lines) if line), "")
    return "" if line.startswith("--- ") else line
