"""Processes on this machine, each in a session of its own, with its output in a log file.

Their own session keeps the terminal's Ctrl-C from them: only the supervisor hears it and stops them
in order. On Linux the kernel ends them when the supervisor is gone, even by kill -9.
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

# One thread for each process unless somebody chose otherwise: two on two busy cores made a learner
# fifty times slower.
_DEFAULTS = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


class LocalProcess(RunningProcess):
    """A child that leads its own process group."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    @property
    def pid(self) -> int:
        return self._child.pid

    def poll(self) -> int | None:
        if self._child.returncode is None and self._has_ended():
            self.kill()  # what it started ends with it, while its id can't belong to another yet
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
    """Subprocesses. Start them from the main thread: the kernel ties them to the thread that
    did.
    """

    def __init__(self, *, log_bytes: int = 16_000_000, log_files: int = 3) -> None:
        self._log_bytes = log_bytes
        self._log_files = log_files
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
                env={**_DEFAULTS, **os.environ, **spec.environment},
                start_new_session=True,
            )
        return LocalProcess(child)

    def tidy(self) -> None:
        for log in self._logs:
            # a full disk must not end the league for a log's sake
            with contextlib.suppress(OSError):
                if log.stat().st_size > self._log_bytes:
                    self._set_aside(log)

    def _set_aside(self, log: Path) -> None:
        """Copies `log` to `log`.1, and so on, and empties it: its writers append, so they go on
        in it.
        """
        for number in range(self._log_files - 1, 0, -1):
            older = _aside(log, number)
            if older.exists():
                older.replace(_aside(log, number + 1))
        shutil.copyfile(log, _aside(log, 1))
        os.truncate(log, 0)


def _aside(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def last_sentence(log: Path) -> str:
    """The last line of a process's newest life, that is its error's sentence when it ended by
    one.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    line = next((line for line in reversed(lines) if line), "")
    return "" if line.startswith("--- ") else line
