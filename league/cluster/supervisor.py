"""One run of a league: starts its processes, shows them, keeps them alive, stops them."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from league.cluster.artist import CurveArtist
from league.cluster.backend import Backend
from league.cluster.crew import Crew
from league.cluster.settings import SupervisorSettings
from league.cluster.topology import EVALUATOR, MATCHMAKER, Topology
from league.errors import LeagueError
from league.rpc.client import MatchmakerClient
from league.runs.folder import RunFolder
from league.security.credentials import Credentials
from league.views.leaderboard import export_all
from league.views.terminal.display import Display
from league.views.terminal.facts import Note, Screen
from league.views.terminal.lines import evaluation_line
from league.views.terminal.reader import LeagueReader

_TICK_SECONDS = 0.05
# with the workers' and the matchmaker's time it must stay below 10 s in all
_LAST_LOOK_SECONDS = 0.5
_DRAWING_SECONDS = 60.0  # for the last picture, of a run that has ended by itself
_STOPPED_BY_SECONDS = 9.0  # and after Ctrl-C, the picture or not
_NOTES_KEPT = 200
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """One run from its start to its end. `run` may be called once."""

    def __init__(
        self,
        folder: RunFolder,
        topology: Topology,
        backend: Backend,
        settings: SupervisorSettings,
        display: Display,
        device: str,
        credentials: Credentials | None = None,
    ) -> None:
        self._folder, self._credentials = folder, credentials
        self._addresses, self._mains, self._learners = (
            topology.addresses,
            topology.mains,
            topology.learners,
        )
        self._settings = settings
        self._display = display
        self._notes: deque[Note] = deque(maxlen=_NOTES_KEPT)
        self._started_at = time.time()
        self._phase = "starting"
        self._device = device
        self._stop_requests = 0
        self.files: list[Path] = []
        self._artist = CurveArtist(folder.path, settings.curves_minutes)
        self._crew = Crew(
            backend,
            topology.specs,
            settings,
            say=self.say,
            complain=lambda text: self.say(text, is_trouble=True),
            started=self._announce,
            may_finish=frozenset(topology.learners),
            has_finished=self._has_trained,
        )
        evaluator = topology.addresses.get(EVALUATOR)
        self._reader = LeagueReader(
            topology.addresses[MATCHMAKER],
            evaluator,
            settings,
            self.say,
            complain=lambda text: self.say(text, is_trouble=True),
            credentials=credentials,
            leading=self._mains[0],
        )

    def say(self, text: str, *, is_trouble: bool = False) -> None:
        """Tells the person who watches. Any thread may call it."""
        note = Note(at=time.time(), text=text, is_trouble=is_trouble)
        self._notes.append(note)
        self._display.tell(note)

    @property
    def screen(self) -> Screen:
        """The state as it is now."""
        return Screen(
            run_dir=str(self._folder.path),
            preset=self._folder.preset,
            device=self._device,
            started_at=self._started_at,
            now=time.time(),
            phase=self._phase,
            league=self._reader.facts,
            processes=self._crew.facts(),
            notes=tuple(self._notes),
            logs_dir=str(self._folder.path / "logs"),
            learners=self._learners,
        )

    def run(self) -> int:
        """Trains until the steps are done or a signal comes. Returns the exit code.

        Raises what ends a run early (see `Crew.tend`) after everything has been stopped.
        """
        killed: list[str] = []
        with self._signals():
            try:
                self._crew.start()
                self._reader.start()
                self._train()
                self._drain()
            finally:
                killed = self._stop()
        hurried = self._stop_requests > 1
        return 1 if killed and not hurried else 0

    def _train(self) -> None:
        while not self._have_trained() and not self._stop_requests:
            if self._phase == "starting" and self._reader.facts.learner is not None:
                self._phase = "training"
            self._crew.tend()
            self._artist.tick()
            self._tick()
        if self._have_trained():
            who = "The learner" if len(self._learners) == 1 else ", ".join(self._mains)
            self.say(
                f"{who} {'has done its' if len(self._mains) == 1 else 'have done their'} steps."
            )

    def _have_trained(self) -> bool:
        """Whether all mains are done: exploiters have nobody to work for then."""
        return all(self._crew.is_done(name) for name in self._mains)

    def _has_trained(self, name: str) -> bool:
        """Whether a learner's last word was that its steps are done, as far as the league knows."""
        self._reader.look_again(1.0)
        status = self._reader.facts.status
        workers = status.workers if status is not None else ()
        words = [worker.activity for worker in workers if worker.worker == name]
        return not words or words[0] == "done"

    def _drain(self) -> None:
        """Waits, within bounds, until the evaluator has played every snapshot."""
        if self._stop_requests or EVALUATOR not in self._addresses:
            return
        self._phase = "evaluating"
        running = [name for name in self._learners if not self._crew.is_done(name)]
        self._crew.stop(running, self._settings.stop_worker_seconds, tick=self._tick)
        seconds = self._settings.drain_seconds
        self.say(
            f"Waiting for the evaluator to play the last snapshots, up to {seconds:g} s. Ctrl-C ends the run "
            "now: what they have played counts, and the same --run-dir plays the rest."
        )
        certain = self._reader.looks + 2
        deadline = time.monotonic() + seconds
        while not self._stop_requests:
            evaluator = self._reader.facts.evaluator
            if evaluator is not None and evaluator.drained and self._reader.looks >= certain:
                return
            if time.monotonic() >= deadline:
                rest = evaluation_line(self.screen)
                self.say(
                    f"The evaluator was not done after {seconds:g} s ({rest}).", is_trouble=True
                )
                return
            self._crew.tend()
            self._tick()

    def _stop(self) -> list[str]:
        """Learner and evaluator first, the matchmaker last. Returns who had to be killed."""
        self._phase = "stopping"
        settings = self._settings
        asked, began = self._stop_requests, time.monotonic()
        if asked:
            self.say(
                "Stopping: the learner saves its snapshot and checkpoint. Ctrl-C again hurries."
            )
        killed = self._crew.stop(
            [*self._learners, EVALUATOR],
            settings.stop_worker_seconds,
            hurried=lambda: self._stop_requests >= max(2, asked + 1),
            tick=self._tick,
        )
        if self._stop_requests < 2:
            self._reader.look_again(_LAST_LOOK_SECONDS)
            self._export()
            self._reader.stop()
            self._artist.begin_last()
        killed += self._crew.stop(
            [MATCHMAKER],
            settings.stop_matchmaker_seconds,
            hurried=lambda: self._stop_requests >= 3,
            tick=self._tick,
        )
        for service in _SERVICES.values():
            self._folder.withdraw(service)
        patience = _DRAWING_SECONDS if not asked else began + _STOPPED_BY_SECONDS - time.monotonic()
        self.files += self._artist.wait(0.0 if self._stop_requests > max(1, asked) else patience)
        return killed

    def _export(self) -> None:
        """Writes the leaderboard's files while the matchmaker still answers, within bounds."""
        if self._reader.facts.ratings:
            # A thread, for a matchmaker that hangs must not keep the run from stopping.
            worker = threading.Thread(target=self._write_leaderboard, daemon=True)
            worker.start()
            worker.join(_LAST_LOOK_SECONDS)

    def _write_leaderboard(self) -> None:
        path, address = self._folder.path, self._addresses[MATCHMAKER]
        try:
            with MatchmakerClient(
                address, wait_seconds=_LAST_LOOK_SECONDS, credentials=self._credentials
            ) as client:
                self.files += export_all(client, path, title=path.name, now=time.time())
        except LeagueError as error:
            self.say(f"The leaderboard was not written: {error}.", is_trouble=True)

    def _tick(self) -> None:
        self._display.show(self.screen)
        time.sleep(_TICK_SECONDS)

    def _announce(self, name: str, pid: int) -> None:
        if name in self._addresses:
            self._folder.announce(_SERVICES[name], self._addresses[name], pid)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Counts Ctrl-C and its like instead of dying of them; under nohup a closed terminal is
        none.
        """

        def count(number: int, frame: FrameType | None) -> None:
            self._stop_requests += 1

        outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        counted = [number for number in _SIGNALS if not (outlives and number == signal.SIGHUP)]
        before = {number: signal.signal(number, count) for number in counted}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


_SERVICES = {MATCHMAKER: "matchmaker", EVALUATOR: "evaluator"}
