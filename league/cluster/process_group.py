"""Keeps a league's processes running: starts them, restarts them, stops them in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from league.cluster.backend import Backend, ProcessSpec, RunningProcess
from league.cluster.local import last_sentence
from league.errors import ConfigError, DataCorrupt, LeagueError, StorageFull, Unavailable
from league.views.terminal.facts import ProcessFacts, State

_PERMANENT: dict[int, tuple[type[LeagueError], str]] = {
    ConfigError.exit_code: (ConfigError, "its settings can't be used"),
    StorageFull.exit_code: (StorageFull, "the disk is full"),
    DataCorrupt.exit_code: (DataCorrupt, "its data are damaged"),
}
"""Exit codes that a restart would repeat: the error to raise, and a text for an empty log."""


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """How often and how fast a process restarts.

    Attributes:
        limit: restarts within the window; a fault that needs more is no accident.
        window_seconds: the time over which restarts count.
        first_seconds: the wait before the first restart; each further one doubles it.
        longest_seconds: the longest wait.
    """

    limit: int = 5
    window_seconds: float = 300.0
    first_seconds: float = 0.5
    longest_seconds: float = 30.0

    def delay(self, times: deque[float], now: float) -> float | None:
        """Seconds to wait before a restart at `now`, which joins `times`; None if it is too many."""
        while times and now - times[0] > self.window_seconds:
            times.popleft()
        if len(times) >= self.limit:
            return None
        seconds = self.first_seconds * 2 ** len(times)
        times.append(now)
        return float(min(seconds, self.longest_seconds))


@dataclass
class ManagedProcess:
    """One process of the group with all its restarts."""

    spec: ProcessSpec
    may_finish: bool
    process: RunningProcess | None = None
    state: State = State.WAITING
    started_at: float = 0.0
    restart_at: float = 0.0
    restarts: int = 0
    restart_times: deque[float] = field(default_factory=deque)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def facts(self) -> ProcessFacts:
        return ProcessFacts(
            name=self.spec.name,
            state=self.state,
            pid=self.process.pid if self.process is not None else 0,
            started_at=self.started_at,
            restarts=self.restarts,
            restart_at=self.restart_at,
        )


class ProcessGroup:
    """All processes of a league.

    Args:
        backend: where they run.
        specs: what to run, in the order of starting.
        policy: restarts.
        say: receives news for the person.
        complain: receives troubles.
        started: is called with a process's name and id after each start.
        may_finish: names of processes that may end with exit code 0.
        has_finished: whether such a process has done its work (or was stopped from outside).
        clock: Unix seconds.
    """

    def __init__(
        self,
        backend: Backend,
        specs: Sequence[ProcessSpec],
        policy: RestartPolicy,
        *,
        say: Callable[[str], None],
        complain: Callable[[str], None] | None = None,
        started: Callable[[str, int], None] = lambda name, pid: None,
        may_finish: frozenset[str] = frozenset(),
        has_finished: Callable[[str], bool] = lambda name: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._backend = backend
        self._policy = policy
        self._say = say
        self._complain = complain or say
        self._started = started
        self._has_finished = has_finished
        self._clock = clock
        self.members = {spec.name: ManagedProcess(spec, spec.name in may_finish) for spec in specs}

    def facts(self) -> tuple[ProcessFacts, ...]:
        return tuple(member.facts() for member in self.members.values())

    def start(self) -> None:
        """Starts all, in the order given; each waits for what it needs."""
        for member in self.members.values():
            self._launch(member)

    def check(self) -> None:
        """Looks at every process once, and restarts those that have died.

        Raises:
            ConfigError, StorageFull, DataCorrupt: a process ended for a permanent reason.
            Unavailable: a process dies too often.
        """
        for member in self.members.values():
            if member.state is State.RUNNING:
                self._inspect(member)
            elif member.state is State.WAITING and self._clock() >= member.restart_at:
                member.restarts += 1
                self._launch(member)
                self._say(f"{member.spec.name} runs again (process {member.facts().pid}).")
        self._backend.rotate_logs()

    def is_done(self, name: str) -> bool:
        """Whether the process has finished its work."""
        return self.members[name].state is State.DONE

    def stop(
        self,
        names: Sequence[str],
        seconds: float,
        *,
        hurried: Callable[[], bool] = lambda: False,
        tick: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Asks processes to stop, in this order, waits for all, and kills those that are late.

        Args:
            names: unknown ones are ignored.
            seconds: the longest wait.
            hurried: ends the wait when it returns True.
            tick: is called while waiting.

        Returns:
            The names of the processes that were killed.
        """
        members = [self.members[name] for name in names if name in self.members]
        for member in members:
            self._ask_to_stop(member)
        deadline = self._clock() + seconds
        waiting = [member for member in members if member.state is State.STOPPING]
        after = f"within {seconds:g} s"
        while any(member.is_alive for member in waiting):
            if hurried():
                after = "when hurried"
                break
            if self._clock() >= deadline:
                break
            tick()
            time.sleep(0.02)
        return [member.spec.name for member in waiting if self._kill_if_alive(member, after)]

    def _launch(self, member: ManagedProcess) -> None:
        member.process = self._backend.start(member.spec)
        member.state = State.RUNNING
        member.started_at = self._clock()
        self._started(member.spec.name, member.process.pid)

    def _inspect(self, member: ManagedProcess) -> None:
        assert member.process is not None
        code = member.process.poll()
        if code is None:
            return
        name, log = member.spec.name, member.spec.log
        if code == 0 and member.may_finish and self._has_finished(name):
            member.state = State.DONE
            return
        member.state = State.FAILED
        if code in _PERMANENT:
            error, reason = _PERMANENT[code]
            raise error(f"{name} can't run: {last_sentence(log) or f'{reason}, read {log}'}")
        delay = self._policy.delay(member.restart_times, self._clock())
        if delay is None:
            minutes = self._policy.window_seconds / 60
            raise Unavailable(
                f"{name} ended {self._policy.limit + 1} times within {minutes:g} minutes, the last "
                f"time with {_exit_text(code)} and {last_sentence(log)!r}: read {log}, then start "
                "the run again"
            )
        member.state = State.WAITING
        member.restart_at = self._clock() + delay
        sentence = last_sentence(log) if code > 0 else ""  # a log does not explain a signal
        how = f"{_exit_text(code)}: {sentence}" if sentence else _exit_text(code)
        self._complain(f"{name} ended ({how}): it restarts in {delay:g} s.")

    def _ask_to_stop(self, member: ManagedProcess) -> None:
        if member.is_alive and member.process is not None:
            member.state = State.STOPPING
            member.process.terminate()
        elif member.state in (State.RUNNING, State.WAITING):
            member.state = State.STOPPED

    def _kill_if_alive(self, member: ManagedProcess, after: str) -> bool:
        """Settles how a stop went; True when the process had to be killed."""
        assert member.process is not None
        if member.process.poll() is not None:
            member.state = State.STOPPED
            return False
        member.process.kill()
        while member.process.poll() is None:
            time.sleep(0.01)
        member.state = State.KILLED
        self._complain(f"{member.spec.name} had not stopped {after} and was killed.")
        return True


def _exit_text(code: int) -> str:
    if code == 0:
        return "exit code 0, as if asked to stop"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
