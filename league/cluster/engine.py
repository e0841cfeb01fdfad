"""Describes the processes of a league, and starts them on this machine.

An engine is a function that starts a process. `LocalChild` is the engine of a single machine, and
`league/cluster/remote.py` has the engine of a Ray cluster.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from league.errors import ConfigError, suppress_full
from league.service import die_with_parent
from league.settings.base import variables_of_children

# Two threads on two busy cores made a learner fifty times slower, so each process computes with a
# single thread. MALLOC_ARENA_MAX avoids glibc's heaps for other threads, which took 18 MB in all.
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "PYTHONUNBUFFERED": "1"}
RENDEZVOUS = "KUMITE_RENDEZVOUS"
"""Environment variable with the URL where a learner's ranks meet. Default: `env://`, as in
torchrun. With tcp://ADDRESS:PORT, rank 0 listens at this address only.
"""


class EngineName(Enum):
    """Lists the values of `--engine`."""

    LOCAL = "local"
    RAY = "ray"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Says which nodes of a cluster may run a process.

    Attributes:
        command: the command on a node that can't see the run's folder.
        cpus, gpus: the cores and GPUs that the process takes, on each node if it has several ranks.
        labels: labels that the node must have.
        ranks: number of processes that train together. Each of them may be on another node.
        has_steps: whether the process continues from files that it has written before.
    """

    command: tuple[str, ...]
    cpus: float = 1.0
    gpus: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    ranks: int = 1
    has_steps: bool = False


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """Describes a process to run.

    Attributes:
        command: the program and its arguments.
        log: the file that receives the output.
        needed: whether the league ends if the process can't run. Otherwise the league continues
            without it.
        vital: whether the league ends if the process dies too often. Otherwise the process is
            started again later.
        place: where a cluster may run the process. None keeps it on this machine.
        is_spare: whether the process starts only when `ProcessGroup.want` asks for it.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    needed: bool = True
    vital: bool = True
    place: Place | None = None
    is_spare: bool = False


class Child(Protocol):
    """A process that was started once."""

    @property
    def pid(self) -> int:
        """The id of the process on its machine, 0 while it is not known."""
        ...

    @property
    def node(self) -> str:
        """The name of the process's node, "" on this machine or while it is not known."""
        ...

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs. If a signal ended the process, the
        code is the negative number of the signal.
        """
        ...

    def terminate(self) -> None:
        """Asks the process to stop (SIGTERM)."""
        ...

    def kill(self) -> None:
        """Ends the process and all processes that it started, at once."""
        ...


Engine = Callable[[ProcessSpec], Child]
"""Starts a process and returns at once. Raises `ConfigError` if its program can't run here."""


class LocalChild:
    """Starts a process on this machine. On Linux the process ends when the thread that started it
    ends, so start it from the main thread.

    Args:
        spec: the process.
        environment: variables that the process gets in addition to the variables of this process.
            Variables that change settings are left out.

    Raises:
        ConfigError: its program can't run.
    """

    node = ""

    def __init__(self, spec: ProcessSpec, environment: Mapping[str, str] | None = None) -> None:
        program = spec.command[0]
        if shutil.which(program) is None:
            raise ConfigError(f"{spec.name} can't start: there is no program {program}")
        tie = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
        spec.log.parent.mkdir(parents=True, exist_ok=True)
        with spec.log.open("ab", buffering=0) as log:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            with suppress_full():
                log.write(f"--- {stamp} {spec.name}: {' '.join(spec.command)}\n".encode())
            self._child = subprocess.Popen(
                [*tie, *spec.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**_ENVIRONMENT, **variables_of_children(), **(environment or {})},
                start_new_session=True,
            )
        self.pid = self._child.pid

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs."""
        if self._child.returncode is None and self._has_ended():
            self.kill()  # also ends its children, before the id can belong to another process
        return self._child.poll()

    def terminate(self) -> None:
        """Asks the process to stop (SIGTERM)."""
        if self._child.poll() is None:
            self._child.terminate()

    def kill(self) -> None:
        """Ends the process and all processes that it started, at once."""
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # macOS refuses for a group of zombies
                self._child.kill()

    def _has_ended(self) -> bool:
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True
