"""Restarts a league's processes when they end, and stops them in order.

Each process leads its own session, which keeps the terminal's Ctrl-C away from it. Only the
supervisor receives Ctrl-C. On Linux the kernel ends the processes when the supervisor ends, even
after kill -9.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from league.cluster.engine import Child, Engine, LocalChild, ProcessSpec
from league.errors import (
    ConfigError,
    DataCorrupt,
    LeagueError,
    StorageFull,
    StorageReadOnly,
    Unavailable,
)
from league.views.facts import ProcessFacts, State

LOG_BYTES = 16_000_000
_PERMANENT: dict[int, tuple[type[LeagueError], str]] = {
    ConfigError.exit_code: (ConfigError, "its settings can't be used"),
    DataCorrupt.exit_code: (DataCorrupt, "its data are damaged"),
    StorageReadOnly.exit_code: (StorageReadOnly, "its disk takes no writes"),
}
"""Exit codes of faults that a restart would repeat. For each code, the error to raise, and a text
for the case that the log is empty.
"""


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """Decides how often and how fast a process restarts. Each wait is twice the wait before."""

    limit: int = 5
    """Largest number of restarts within the window. A fault that needs more restarts is no
    accident: a vital process then ends the league, and any other process waits for the length of
    the window.
    """
    window_seconds: float = 300.0
    first_seconds: float = 0.5
    longest_seconds: float = 30.0
    """The longest wait before a restart. If a process ended because of a full disk, the wait always
    has this length, and the restart does not count toward `limit`.
    """

    def delay(self, times: deque[float], now: float) -> float | None:
        """Counts a restart and returns how long to wait before it.

        Args:
            times: the counted restarts within the window, in seconds. The new restart is added.
            now: the current time in seconds.

        Returns:
            The wait in seconds, or None if the limit is reached.
        """
        while times and now - times[0] > self.window_seconds:
            times.popleft()
        if len(times) >= self.limit:
            return None
        seconds = self.first_seconds * 2 ** len(times)
        times.append(now)
        return float(min(seconds, self.longest_seconds))


class Process:
    """Runs a process with all its restarts. Start it from the main thread, because the kernel ends
    the process when the thread that started it ends.

    Args:
        spec: the process.
        engine: starts the process.
    """

    def __init__(self, spec: ProcessSpec, engine: Engine = LocalChild) -> None:
        self.spec = spec
        self.state = State.WAITING
        self.started_at = self.restart_at = 0.0
        self.restarts = 0
        self.restart_times: deque[float] = deque()
        self._engine = engine
        self._child: Child | None = None

    def start(self) -> None:
        """Starts the process and returns at once. Raises `ConfigError` if its program can't run."""
        self._child = self._engine(self.spec)
        self.state, self.started_at = State.RUNNING, time.time()

    @property
    def pid(self) -> int:
        """The id of the process on its machine, 0 before the first start."""
        return 0 if self._child is None else self._child.pid

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def poll(self) -> int | None:
        """Returns the exit code, or None while the process runs. If a signal ended the process, the
        code is the negative number of the signal.
        """
        assert self._child is not None
        return self._child.poll()

    def terminate(self) -> None:
        """Asks the process to stop (SIGTERM)."""
        if self._child is not None:
            self._child.terminate()

    def kill(self) -> None:
        """Ends the process and all processes that it started, at once."""
        if self._child is not None:
            self._child.kill()

    def facts(self) -> ProcessFacts:
        return ProcessFacts(
            name=self.spec.name,
            state=self.state,
            pid=self.pid,
            started_at=self.started_at,
            restarts=self.restarts,
        )

    def last_sentence(self) -> str:
        """Returns the last line logged since the last start. If an error ended the process, it is
        that error.
        """
        try:
            with self.spec.log.open("rb") as file:
                file.seek(max(0, self.spec.log.stat().st_size - 8192))
                lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
        except OSError:
            return ""
        line = next((line for line in reversed(lines) if line), "")
        return "" if line.startswith("--- ") else line

    def rotate_log(self, log_bytes: int = LOG_BYTES) -> None:
        """Copies a long log to `log`.1 and empties it. The processes append to the file, so they
        need not open it again.
        """
        log = self.spec.log
        with contextlib.suppress(OSError):  # a full disk must not end the league
            if log.stat().st_size > log_bytes:
                shutil.copyfile(log, log.with_name(f"{log.name}.1"))
                os.truncate(log, 0)


class ProcessGroup:
    """Starts, watches and stops all processes of a league.

    Args:
        specs: the processes, in the order of starting.
        policy: how processes restart.
        engine: starts the processes.
        say: shows a sentence to the user. `is_trouble` marks problems.
        started: receives the name and the id of a process after each start.
        has_finished: says whether a process that ended with exit code 0 has done all its work.
            Otherwise somebody stopped it.
    """

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        policy: RestartPolicy,
        *,
        engine: Engine = LocalChild,
        say: Callable[..., None],
        started: Callable[[str, int], None] = lambda name, pid: None,
        has_finished: Callable[[str], bool] = lambda name: False,
    ) -> None:
        self._policy, self._say = policy, say
        self._started, self._has_finished = started, has_finished
        self.members = {spec.name: Process(spec, engine) for spec in specs}

    def facts(self) -> tuple[ProcessFacts, ...]:
        return tuple(member.facts() for member in self.members.values())

    def start(self) -> None:
        """Starts all processes but spares, in order. Each process waits for the services that it
        needs.
        """
        for member in self.members.values():
            if member.spec.is_spare:
                member.state = State.STOPPED
            else:
                self._launch(member)

    def want(self, name: str, is_wanted: bool) -> None:
        """Starts or stops a spare process, unless it runs or has stopped already. Does not wait."""
        member = self.members[name]
        if is_wanted and member.state is State.STOPPED:
            self._launch(member)
        elif not is_wanted and member.state is State.RUNNING:
            member.state = State.STOPPING
            member.terminate()
        elif not is_wanted and member.state is State.WAITING:
            member.state = State.STOPPED

    def check(self) -> None:
        """Looks at every process once, and restarts dead processes.

        Raises:
            ConfigError, DataCorrupt, StorageReadOnly: a process ended for a permanent reason.
            Unavailable: a process dies too often.
        """
        for member in self.members.values():
            if member.state is State.RUNNING and (code := member.poll()) is not None:
                self._settle(member, code)
            elif member.state is State.WAITING and time.time() >= member.restart_at:
                member.restarts += 1
                self._launch(member)
                how = "starts again on a node of the cluster"
                if member.pid:
                    how = f"runs again (process {member.pid})"
                self._say(f"{member.spec.name} {how}.")
            elif member.state is State.STOPPING and not member.is_alive:
                member.state = State.STOPPED
            member.rotate_log()

    def is_done(self, name: str) -> bool:
        """Returns whether the process has finished its work."""
        return self.members[name].state is State.DONE

    def stop(
        self,
        names: Sequence[str],
        seconds: float,
        *,
        hurried: Callable[[], bool] = lambda: False,
        tick: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Asks processes to stop, and kills those that have not ended when the wait is over.

        Args:
            names: the processes, in the order in which they are asked. Unknown names are ignored.
            seconds: the longest wait, for all processes together.
            hurried: ends the wait when it returns True.
            tick: called again and again during the wait.

        Returns:
            The names of the killed processes.
        """
        waiting = []
        for member in [self.members[name] for name in names if name in self.members]:
            if member.is_alive:
                member.state = State.STOPPING
                member.terminate()
                waiting.append(member)
            elif member.state in (State.RUNNING, State.WAITING):
                member.state = State.STOPPED
        deadline, is_hurried = time.time() + seconds, False
        while any(member.is_alive for member in waiting) and time.time() < deadline:
            is_hurried = hurried()
            if is_hurried:
                break
            tick()
            time.sleep(0.02)
        late = [member for member in waiting if member.is_alive]
        for member in waiting:
            member.state = State.KILLED if member in late else State.STOPPED
        for member in late:
            member.kill()
            while member.is_alive:
                time.sleep(0.01)
            after = "when hurried" if is_hurried else f"within {seconds:g} s"
            self._say(
                f"{member.spec.name} had not stopped {after} and was killed.", is_trouble=True
            )
        return [member.spec.name for member in late]

    def _launch(self, member: Process) -> None:
        member.start()
        self._started(member.spec.name, member.pid)

    def _settle(self, member: Process, code: int) -> None:
        """Restarts a process that has ended, or raises the error that ends the league."""
        name, log = member.spec.name, member.spec.log
        if code == 0 and self._has_finished(name):
            member.state = State.DONE
            return
        member.state = State.FAILED
        sentence = member.last_sentence()
        if code in _PERMANENT and member.spec.needed:
            error, reason = _PERMANENT[code]
            raise error(f"{name} can't run: {sentence or f'{reason}, read {log}'}")
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        how += ", as if asked to stop" if code == 0 else ""
        if code in _PERMANENT:
            self._say(f"{name} can't run ({sentence or how}): read {log}.", is_trouble=True)
            return
        policy = self._policy
        delay: float | None = policy.longest_seconds
        if code != StorageFull.exit_code:
            delay = policy.delay(member.restart_times, time.time())
        if delay is None:
            often = f"{name} ended {policy.limit + 1} times within {policy.window_seconds / 60:g}"
            often += f" minutes, the last time with {how} and {sentence!r}: read {log}"
            if member.spec.vital:
                raise Unavailable(f"{often}, then start the run again")
            self._say(f"{often}. The league goes on without it meanwhile.", is_trouble=True)
            delay = policy.window_seconds
        member.state, member.restart_at = State.WAITING, time.time() + delay
        if code > 0 and sentence:  # a log does not explain a signal
            how += f": {sentence}"
        self._say(f"{name} ended ({how}): it restarts in {delay:g} s.", is_trouble=True)
