"""Runs a league: starts its processes, shows them, keeps them running, and stops them."""

from __future__ import annotations

import math
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from league.cluster.engine import Engine, LocalChild
from league.cluster.processes import Process, ProcessGroup, RestartPolicy
from league.cluster.topology import DASHBOARD, EVALUATOR, MATCHMAKER, Topology
from league.cluster.usage import Usage
from league.errors import LeagueError, StorageFull, Unavailable
from league.rpc.client import MatchmakerClient
from league.runs.finding import CURVES, WAITING
from league.runs.folder import RunFolder
from league.security.credentials import Credentials
from league.status import ENDED, GAME_SERVER, SILENT_SECONDS, STALLED
from league.views.facts import Note, Screen, State
from league.views.leaderboard import export_all
from league.views.reader import LeagueReader
from league.views.terminal.display import Display, evaluation_line

_TICK_SECONDS = 0.05
_STOP_MATCHMAKER_SECONDS = 1.0  # enough, because each of its replies is on disk already
_LAST_LOOK_SECONDS = 0.5  # short, so that stopping takes less than 10 s in all
_UNHURRIED_SECONDS = 60.0  # for each task that is left when a run's steps are done
_STOPPED_BY_SECONDS = 7.0  # from Ctrl-C until the curves must be done, because a summary follows
STOP_WORKER_SECONDS = 7.0
"""Time for the learners and evaluators to stop. A learner takes up to 6 s to save."""
DRAIN_SECONDS = 1800.0
"""Time for the evaluator to play the matches in its queue after the last training step."""
SPEND_SECONDS = 90.0
"""Time for the evaluator, once its queue is empty, to play the matches that are left of its budget
(`evaluator.matches_per_snapshot`).
"""
HANG_SECONDS = 300.0
"""A worker counts as hanging after this time without a heartbeat or without progress. Its leases
have expired by then, and the worker is restarted. A separate thread of the worker sends the
heartbeats, even during a long update. This thread judges progress by the worker's usual pace.
"""
IDLE_SECONDS = 60.0
"""Time without work for the evaluators after which the spare evaluators stop."""
_LOOK_SECONDS = 5.0  # largest counted time between two checks, because the machine may have slept
_NOTES_KEPT = 200
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SERVICES = {MATCHMAKER: "matchmaker", EVALUATOR: "evaluator"}


class Supervisor:
    """Supervises a run from its start to its end. `run` may be called once."""

    def __init__(
        self,
        folder: RunFolder,
        topology: Topology,
        display: Display,
        device: str,
        credentials: Credentials | None = None,
        *,
        usage: Usage | None = None,
        engine: Engine = LocalChild,
        stop_worker_seconds: float = STOP_WORKER_SECONDS,
        drain_seconds: float = DRAIN_SECONDS,
        silent_seconds: float = SILENT_SECONDS,
        hang_seconds: float = HANG_SECONDS,
    ) -> None:
        self._folder, self._topology, self._credentials = folder, topology, credentials
        self._shown = shlex.quote(str(folder.path))  # in commands
        self._stop_worker_seconds, self._drain_seconds = stop_worker_seconds, drain_seconds
        self._silent_seconds, self._hang_seconds = silent_seconds, hang_seconds
        self._heard: dict[str, tuple[float, float]] = {}  # by worker: last heartbeat, silence since
        self._config_before = self._config()
        self._in_trouble, self._waited_at = False, 0.0
        self._waiting: dict[str, tuple[str, float]] = {}  # as told to the matchmaker
        self._stalled: dict[str, float] = {}  # seconds without progress, by worker
        self._without_game = set[str]()  # workers that can't play because of their game's server
        self._looks, self._looked_at = 0, time.monotonic()
        self._display, self._device, self._usage = display, device, usage
        self._notes: deque[Note] = deque(maxlen=_NOTES_KEPT)
        self._started_at = time.time()
        self._phase = "starting"
        self._stop_requests = 0
        self.stopping_since = math.inf
        self.files: dict[Path, None] = {}  # without repetition, in order
        self._leaderboard: list[Path] = []
        self._no_leaderboard = ""  # why it could not be written
        self._writer: threading.Thread | None = None
        self._drawing: subprocess.Popen[bytes] | None = None
        self._group = ProcessGroup(
            topology.specs,
            RestartPolicy(),
            engine=engine,
            say=self.say,
            started=self._announce,
            has_finished=self._has_trained,
        )
        leading = topology.mains[0] if topology.mains else ""
        learner = folder.path / (leading or "none")  # a league may wait for its first learner
        saved = (learner / "checkpoints").glob(f"step_{'[0-9]' * 12}.pt")
        self._reader = LeagueReader(
            topology.addresses[MATCHMAKER],
            topology.addresses.get(EVALUATOR),
            self.say,
            credentials=credentials,
            leading=leading,
            steps=max((int(file.stem.removeprefix("step_")) for file in saved), default=0),
        )

    def say(self, text: str, *, is_trouble: bool = False) -> None:
        """Shows a sentence to the user. Any thread may call it.

        Args:
            text: the sentence.
            is_trouble: whether it reports a problem.
        """
        note = Note(at=time.time(), text=text, is_trouble=is_trouble)
        self._notes.append(note)
        self._display.add_note(note)

    @property
    def screen(self) -> Screen:
        """The current state."""
        return Screen(
            run_dir=str(self._folder.path),
            preset=self._folder.preset,
            device=self._device,
            started_at=self._started_at,
            now=time.time(),
            phase=self._phase,
            league=self._reader.facts,
            processes=self._group.facts(),
            notes=tuple(self._notes),
            logs_dir=str(self._folder.path / "logs"),
            learners=self._topology.learners,
            dashboard=self._topology.dashboard,
            usage=self._usage.words if self._usage is not None else "",
        )

    def run(self, show_end: Callable[[], Display] | None = None) -> int:
        """Trains until the steps are done or a signal comes. Returns the exit code.

        If an error of `ProcessGroup.check` ends the run early, this method first stops everything
        and then raises the error.

        Args:
            show_end: shows a summary once the steps are done, and returns a display for later
                notes. The services then stay up until a signal comes. With None, they stop at once.
        """
        killed: list[str] = []
        with self._signals():
            try:
                self._group.start()
                self._reader.start()
                self._train()
                self._drain()
                if show_end is not None and self._is_trained() and not self._stop_requests:
                    self._stay_open(show_end)
            finally:
                killed = self._stop()
        return 1 if killed and self._stop_requests < 2 else 0

    def _train(self) -> None:
        mains = self._topology.mains
        if not mains:
            self.say(f"This run has no learner: `bin/learner --run-dir {self._shown}` joins.")
        while not self._is_trained() and not self._stop_requests:
            if self._phase == "starting" and self._reader.facts.learner is not None:
                self._phase = "training"
            self._check()
            self._tick()
        if self._is_trained():
            names = "The learner" if len(self._topology.learners) == 1 else ", ".join(mains)
            have = "has done its" if len(mains) == 1 else "have done their"
            self.say(f"{names} {have} steps.")

    def _check(self) -> None:
        """Restarts dead processes, and ends processes that hang, which the next check restarts.

        It also reports changed settings.
        """
        self._group.check()
        self._tell_waiting()
        if self._looks == self._reader.looks:
            return
        if (config := self._config()) != self._config_before:
            self._config_before = config
            self.say(
                "config.toml has changed: a process uses it when it starts, those that run keep "
                "their settings. Stop the run and start it again, so that all have the same.",
                is_trouble=True,
            )
        self._scale()
        self._looks, before = self._reader.looks, self._looked_at
        self._looked_at = time.monotonic()
        passed, facts = min(self._looked_at - before, _LOOK_SECONDS), self._reader.facts
        trouble = facts.status.vitals.trouble if facts.status is not None else ""
        if bool(trouble) != self._in_trouble:
            self._in_trouble = bool(trouble)
            state = f"is in trouble: {trouble}." if trouble else "is well again."
            self.say(f"The matchmaker {state}", is_trouble=bool(trouble))
        for worker in facts.workers:
            name, at = worker.worker, worker.last_beat_at
            process = self._group.members.get(name)
            if process is None or process.state is not State.RUNNING or name in self._waiting:
                continue
            if (GAME_SERVER in worker.activity) != (name in self._without_game):
                self._without_game ^= {name}
                is_without = name in self._without_game
                how = worker.activity.rstrip(".") if is_without else "its game goes on"
                self.say(f"{name}: {how}.", is_trouble=is_without)
            heard, silence = self._heard.get(name, (at, 0.0))
            idle = name == DASHBOARD and worker.activity in ENDED  # then it sends no heartbeats
            # a heartbeat from before this start came from the earlier process
            speaks = idle or at != heard or at < process.started_at
            # while the disk is full the matchmaker can't take heartbeats
            now = 0.0 if speaks or facts.trouble or trouble else silence + passed
            self._heard[name] = at, now
            self._judge(process, "sent no heartbeat", silence, now)
            stalled = 0.0 if at < process.started_at else worker.metrics.get(STALLED, 0.0)
            self._judge(process, "made no progress", self._stalled.get(name, 0.0), stalled)
            self._stalled[name] = stalled

    def _tell_waiting(self) -> None:
        """Writes down which workers have not been heard of since their start, and why."""
        workers = [worker for worker in self._reader.facts.workers if worker.incarnation]
        heard, waiting = {worker.worker: worker.last_beat_at for worker in workers}, {}
        for name in (*self._topology.learners, *self._topology.evaluators):
            process = self._group.members.get(name)
            if process is None or process.state not in (State.RUNNING, State.WAITING):
                continue
            if process.state is State.WAITING:
                text = "waiting to start again"
            elif heard.get(name, 0.0) < process.started_at:
                text = "starting" if process.pid else "waiting for a node"
            else:
                continue
            waiting[name] = text, self._waiting.get(name, (text, time.time()))[1]
        if waiting != self._waiting:
            self._waiting = waiting
            with suppress(LeagueError, OSError):  # a disk that takes no writes
                self._folder.tell_waiting(waiting)

    def _scale(self) -> None:
        """Lets the number of evaluators follow the number of players that wait for clean matches.

        A spare evaluator starts when a player waits for it, and stops after `IDLE_SECONDS` without
        waiting players.
        """
        evaluator, now = self._reader.facts.evaluator, time.monotonic()
        if evaluator is None:
            return
        waiting = len(evaluator.queue)
        if waiting or evaluator.current:
            self._waited_at = now
        for number, name in enumerate(self._topology.spares, 1):
            if waiting > number:
                self._group.want(name, True)
            elif now - self._waited_at > IDLE_SECONDS:
                self._group.want(name, False)

    def _config(self) -> bytes:
        with suppress(OSError):
            return self._folder.config.read_bytes()
        return b""

    def _judge(self, process: Process, fault: str, before: float, now: float) -> None:
        """Reports a worker that hangs, and ends a worker that has hung for too long.

        Args:
            process: the worker.
            fault: the worker's fault, such as "made no progress".
            before: seconds for which the worker had hung at the previous check.
            now: seconds for which the worker has hung now.
        """
        name, silent, hang = process.spec.name, self._silent_seconds, self._hang_seconds
        if before < silent <= now:
            self.say(
                f"{name} has {fault} for {silent:g} s: it is started again after {hang:g} s.",
                is_trouble=True,
            )
        if now >= hang and process.is_alive:
            self.say(f"{name} has {fault} for {hang:g} s: it hangs.", is_trouble=True)
            process.kill()

    def _is_trained(self) -> bool:
        """Returns whether all mains are done. Exploiters then stop too, because they have no
        victims left to learn against.
        """
        mains = self._topology.mains
        return bool(mains) and all(self._group.is_done(name) for name in mains)

    def _has_trained(self, name: str) -> bool:
        """Returns whether the learner's last report says that its steps are done."""
        if name not in self._topology.learners:
            return False
        self._reader.look_again(5.0)  # on a busy machine a look takes seconds
        workers = self._reader.facts.workers
        activities = [worker.activity for worker in workers if worker.worker == name]
        return not activities or activities[0] == "done"

    def _drain(self) -> None:
        """Waits until the evaluator has played every snapshot, or until its time is over."""
        if self._stop_requests or EVALUATOR not in self._topology.addresses:
            return
        self._phase = "evaluating"
        running = [name for name in self._topology.learners if not self._group.is_done(name)]
        self._group.stop(running, self._stop_worker_seconds, tick=self._tick)
        seconds = self._drain_seconds
        self.say(
            f"Waiting for the evaluator to play the last snapshots, up to {seconds:g} s. Ctrl-C "
            "ends the run now: what they have played counts, and the same --run-dir plays the rest."
        )
        certain = self._reader.looks + 2
        deadline, spent_by = time.monotonic() + seconds, 0.0
        while not self._stop_requests:
            evaluator = self._reader.facts.evaluator
            if evaluator is not None and evaluator.drained and self._reader.looks >= certain:
                spent_by = spent_by or time.monotonic() + SPEND_SECONDS
                if not evaluator.unspent or time.monotonic() >= spent_by:
                    return
            if time.monotonic() >= deadline:
                remaining = evaluation_line(self.screen)
                self.say(
                    f"The evaluator was not done after {seconds:g} s ({remaining}).",
                    is_trouble=True,
                )
                return
            self._check()
            self._tick()

    def _stay_open(self, show_end: Callable[[], Display]) -> None:
        """Keeps the services up after the last step, until a signal comes."""
        self._phase = "done"
        if self._reader.facts.ratings:
            self._write_leaderboard(_UNHURRIED_SECONDS)
        self.files |= dict.fromkeys(self._leaderboard)
        self._draw()
        self._await_drawing(_UNHURRIED_SECONDS)
        if not self._stop_requests:
            self._display = show_end()
        while not self._stop_requests:
            self._check()
            time.sleep(_TICK_SECONDS)

    def _stop(self) -> list[str]:
        """Stops learners and evaluator first, then the matchmaker. Returns the killed processes."""
        has_work = self._phase != "done"
        self._phase, self.stopping_since = "stopping", time.time()
        asked, began = self._stop_requests, time.monotonic()
        is_done = self._is_trained() and not asked
        if asked:
            saving = "learners save a snapshot and a checkpoint. " if has_work else ""
            self.say(f"Stopping: {saving}Ctrl-C again hurries.")
            # Leaderboard and curves are begun now, because a busy machine may leave no time for
            # them once the workers have stopped.
            if self._reader.facts.ratings:
                self._begin_leaderboard(self._stop_worker_seconds)
            self._draw()
        killed = self._group.stop(
            [*self._topology.learners, *self._topology.evaluators, DASHBOARD],
            # on a busy machine an evaluator stops slowly, because it lets all others go first
            _UNHURRIED_SECONDS if is_done else self._stop_worker_seconds,
            hurried=lambda: self._stop_requests >= max(2, asked + 1),
            tick=self._tick,
        )
        if self._stop_requests < 2:

            def unused() -> float:  # the rest of the workers' time
                remaining = began + self._stop_worker_seconds - time.monotonic()
                return max(_LAST_LOOK_SECONDS, remaining)

            matchmaker = self._group.members[MATCHMAKER]  # a look waits while it starts
            self._reader.look_again(
                unused(), hurried=lambda: self._stop_requests >= 2 or not matchmaker.is_alive
            )
            if self._reader.facts.ratings:
                # If the run stops before it is done, the matchmaker may be dead.
                self._write_leaderboard(_UNHURRIED_SECONDS if is_done else unused())
            self._reader.stop()
            self._draw()
        unspent = max(0.0, began + self._stop_worker_seconds - time.monotonic())
        killed += self._group.stop(
            [MATCHMAKER],
            _STOP_MATCHMAKER_SECONDS + round(unspent),  # the workers' unused time is added
            hurried=lambda: self._stop_requests >= 3,
            tick=self._tick,
        )
        self.files |= dict.fromkeys(self._leaderboard)
        for told in (*_SERVICES.values(), WAITING):
            self._folder.withdraw(told)
        left = _UNHURRIED_SECONDS if not asked else began + _STOPPED_BY_SECONDS - time.monotonic()
        if has_work:
            self._await_drawing(left, is_hurried=self._stop_requests > max(1, asked))
        return killed

    def _draw(self) -> None:
        """Starts to draw the curves of a run that has a learner, in a process of low priority."""
        if self._drawing is not None or self._reader.facts.learner is None:
            return
        command = ["nice", "-n", "5", sys.executable, "-m", "league", "curves"]
        self._drawing = subprocess.Popen(
            [*command, "--run-dir", str(self._folder.path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl-C is for the supervisor
        )

    def _await_drawing(self, seconds: float, *, is_hurried: bool = False) -> None:
        """Waits up to `seconds` for the process that draws the curves. If the process takes longer,
        or Ctrl-C comes, it keeps running. With `is_hurried`, it is killed at once.
        """
        if self._drawing is None:
            return
        if is_hurried:
            self._drawing.kill()
        asked, deadline = self._stop_requests, time.monotonic() + seconds
        while (code := self._drawing.poll()) is None:
            if time.monotonic() >= deadline or self._stop_requests > asked:
                self.say(f"The curves will be in {self._folder.path / CURVES} in a moment.")
                return
            self._tick()
        if code == 0:
            self.files[self._folder.path / CURVES] = None
            return
        command = f"bin/league curves --run-dir {self._shown}"
        self.say(f"The curves were not drawn: `{command}` draws them.", is_trouble=True)

    def _write_leaderboard(self, seconds: float) -> None:
        """Writes the leaderboard's files within `seconds`.

        A matchmaker that hangs must not delay the end. Ctrl-C skips the files. If a thread has been
        writing them since an earlier Ctrl-C, the supervisor waits for it.
        """
        asked, deadline = self._stop_requests, time.monotonic() + seconds
        if self._writer is None or not self._writer.is_alive():
            self._begin_leaderboard(seconds)
        writer = self._writer
        assert writer is not None
        while writer.is_alive() and time.monotonic() < deadline and self._stop_requests == asked:
            self._tick()
        if not self._leaderboard:
            reason = self._no_leaderboard or f"no answer of the matchmaker within {seconds:.1f} s"
            self.say(
                f"The leaderboard was not written ({reason}): `bin/league leaderboard export "
                f"--format html --out FILE --run-dir {self._shown}` writes it.",
                is_trouble=True,
            )

    def _begin_leaderboard(self, seconds: float) -> None:
        """Writes the leaderboard's files in a thread, if the matchmaker answers in `seconds`."""

        def write() -> None:
            path, address = self._folder.path, self._topology.addresses[MATCHMAKER]
            try:
                with MatchmakerClient(
                    address, wait_seconds=seconds, credentials=self._credentials
                ) as client:
                    files = export_all(client, path, title=path.name, now=time.time())
                self._leaderboard = files
            except Unavailable:
                pass
            except LeagueError as error:
                self._no_leaderboard = str(error)

        self._writer = threading.Thread(target=write, daemon=True)
        self._writer.start()

    def _tick(self) -> None:
        self._display.show(self.screen)
        time.sleep(_TICK_SECONDS)

    def _announce(self, name: str, pid: int) -> None:
        if name in self._topology.addresses:
            with suppress(StorageFull):  # the file still has this address, from the last start
                self._folder.announce(_SERVICES[name], self._topology.addresses[name], pid)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Counts Ctrl-C and similar signals. Under nohup, a closed terminal does not count."""

        def count(number: int, frame: FrameType | None) -> None:
            self._stop_requests += 1

        is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        counted = [number for number in _SIGNALS if not (is_nohup and number == signal.SIGHUP)]
        before = {number: signal.signal(number, count) for number in counted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
