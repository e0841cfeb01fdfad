"""Keeps a league's processes alive: starts them, restarts what dies, stops them in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from league.cluster.backend import Backend, ProcessSpec, RunningProcess
from league.cluster.local import last_sentence
from league.cluster.settings import SupervisorSettings
from league.errors import ConfigError, DataCorrupt, LeagueError, StorageFull, Unavailable

_INCURABLE: dict[int, tuple[type[LeagueError], str]] = {
    ConfigError.exit_code: (ConfigError, "its settings can't be used"),
    # so full, maybe, that the log lacks the words
    StorageFull.exit_code: (StorageFull, "the disk is full"),
    DataCorrupt.exit_code: (DataCorrupt, "its data are damaged"),
}
"""Exit codes that would come again after a restart: the error to raise, and words when the log
has none.
"""


class State(Enum):
    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    DONE = "done"
    STOPPED = "stopped"
    KILLED = "killed"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ProcessFacts:
    """What a reader may know of a process. Times are Unix seconds."""

    name: str
    state: State
    pid: int
    started_at: float
    restarts: int
    restart_at: float = 0.0


class RestartPolicy:
    """Waits twice as long each time, and gives up after too many restarts within the window."""

    def __init__(self, settings: SupervisorSettings) -> None:
        self._settings = settings
        self._times: deque[float] = deque()

    def delay(self, now: float) -> float | None:
        """Seconds to wait before the restart that is due at `now`; None when it is one too many."""
        while self._times and now - self._times[0] > self._settings.restart_window_seconds:
            self._times.popleft()
        if len(self._times) >= self._settings.restart_limit:
            return None
        seconds = self._settings.restart_first_seconds * 2 ** len(self._times)
        self._times.append(now)
        return float(min(seconds, self._settings.restart_longest_seconds))


class Member:
    """One process of the crew over all its lives."""

    def __init__(
        self, spec: ProcessSpec, settings: SupervisorSettings, *, may_finish: bool
    ) -> None:
        self.spec = spec
        self.may_finish = may_finish
        self.policy = RestartPolicy(settings)
        self.process: RunningProcess | None = None
        self.state = State.WAITING
        self.started_at = 0.0
        self.restart_at = 0.0
        self.restarts = 0

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


class Crew:
    """All processes. `say` takes what a person may like to hear of, `complain` what went wrong.

    `started` is called with a process's name and id after each of its starts; `has_finished` says
    of one that may finish, and has ended by exit code 0, whether its work is done (or somebody told
    it to stop).
    """

    def __init__(
        self,
        backend: Backend,
        specs: Sequence[ProcessSpec],
        settings: SupervisorSettings,
        *,
        say: Callable[[str], None],
        complain: Callable[[str], None] | None = None,
        started: Callable[[str, int], None] = lambda name, pid: None,
        may_finish: frozenset[str] = frozenset(),
        has_finished: Callable[[str], bool] = lambda name: True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._say = say
        self._complain = complain or say
        self._started = started
        self._has_finished = has_finished
        self._clock = clock
        self.members = {
            spec.name: Member(spec, settings, may_finish=spec.name in may_finish) for spec in specs
        }

    def facts(self) -> tuple[ProcessFacts, ...]:
        return tuple(member.facts() for member in self.members.values())

    def start(self) -> None:
        """Starts all, in the order given; each waits by itself for what it needs."""
        for member in self.members.values():
            self._launch(member)

    def tend(self) -> None:
        """Looks after every process once. Raises when one can't be kept running.

        `ConfigError`, `StorageFull` or `DataCorrupt` for a process that ended by what a restart
        can't cure, `Unavailable` for one that dies too often.
        """
        for member in self.members.values():
            if member.state is State.RUNNING:
                self._inspect(member)
            elif member.state is State.WAITING and self._clock() >= member.restart_at:
                member.restarts += 1
                self._launch(member)
                self._say(f"{member.spec.name} runs again (process {member.facts().pid}).")
        self._backend.tidy()

    def is_done(self, name: str) -> bool:
        """The process has finished its work."""
        return self.members[name].state is State.DONE

    def stop(
        self,
        names: Sequence[str],
        seconds: float,
        *,
        hurried: Callable[[], bool] = lambda: False,
        tick: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Asks `names` to stop, in that order, waits for all, and kills those that don't in time.

        `hurried` turning true ends the wait; `tick` is called while waiting. Returns who was
        killed.
        """
        members = [self.members[name] for name in names if name in self.members]
        for member in members:
            self._ask(member)
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
        return [member.spec.name for member in waiting if self._conclude(member, after)]

    def _launch(self, member: Member) -> None:
        member.process = self._backend.start(member.spec)
        member.state = State.RUNNING
        member.started_at = self._clock()
        self._started(member.spec.name, member.process.pid)

    def _inspect(self, member: Member) -> None:
        assert member.process is not None
        code = member.process.poll()
        if code is None:
            return
        name, log = member.spec.name, member.spec.log
        if code == 0 and member.may_finish and self._has_finished(name):
            member.state = State.DONE
            return
        member.state = State.FAILED
        if code in _INCURABLE:
            error, otherwise = _INCURABLE[code]
            raise error(f"{name} can't run: {last_sentence(log) or f'{otherwise}, read {log}'}")
        delay = member.policy.delay(self._clock())
        if delay is None:
            raise Unavailable(self._given_up(member, code))
        member.state = State.WAITING
        member.restart_at = self._clock() + delay
        words = last_sentence(log) if code > 0 else ""  # a signal's cause is not in the log
        how = f"{describe_exit(code)}: {words}" if words else describe_exit(code)
        self._complain(f"{name} ended ({how}): it restarts in {delay:g} s.")

    def _given_up(self, member: Member, code: int) -> str:
        name, log = member.spec.name, member.spec.log
        minutes = self._settings.restart_window_seconds / 60
        return (
            f"{name} ended {self._settings.restart_limit + 1} times within {minutes:g} minutes, the last by "
            f"{describe_exit(code)}, saying {last_sentence(log)!r}: read {log}, then start the run again"
        )

    def _ask(self, member: Member) -> None:
        if member.is_alive and member.process is not None:
            member.state = State.STOPPING
            member.process.terminate()
        elif member.state in (State.RUNNING, State.WAITING):
            member.state = State.STOPPED

    def _conclude(self, member: Member, after: str) -> bool:
        """Settles how a stop went; true when it took a kill."""
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


def describe_exit(code: int) -> str:
    """«exit code 1» or «signal 9»."""
    if code == 0:
        return "exit code 0, as if told to stop"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
