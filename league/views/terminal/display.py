"""Where the supervisor shows its state: a live screen, or plain lines."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.live import Live

from league.players import WorkerStatus
from league.runs.alarms import of_metrics as alarms_of
from league.views.terminal import marks
from league.views.terminal.facts import Note, Screen, State
from league.views.terminal.panels import view


class LiveDisplay:
    """The whole terminal as one picture, drawn every `seconds`; silent once it has closed."""

    def __init__(self, console: Console, seconds: float = 1.0) -> None:
        self._console = console
        self._seconds = seconds
        self._drawn_at = 0.0
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._is_open = True
        self._live.start()

    def show(self, screen: Screen) -> None:
        if not self._is_open or time.monotonic() - self._drawn_at < self._seconds:
            return
        self._drawn_at = time.monotonic()
        width, height = self._console.size
        try:
            self._live.update(view(screen, width, height), refresh=True)
        except OSError:  # the terminal was closed
            self._is_open = False

    def add_note(self, note: Note) -> None:
        self._drawn_at = 0.0  # the next picture, which shows it, is due at once

    def close(self) -> None:
        self._is_open = False
        with contextlib.suppress(OSError):
            self._live.stop()


class LineDisplay:
    """Plain lines: each event as it comes, and the state every `seconds` if it has changed."""

    def __init__(self, stream: TextIO, seconds: float = 10.0) -> None:
        self._stream: TextIO | None = stream
        self._seconds = seconds
        self._said_at = time.monotonic()
        self._last: list[str] = []
        self._lock = threading.Lock()

    def show(self, screen: Screen) -> None:
        if time.monotonic() - self._said_at < self._seconds:
            return
        self._said_at = time.monotonic()
        lines = list(progress_lines(screen))
        for line in lines:
            if line not in self._last:
                self._write(screen.now, line)
        self._last = lines

    def add_note(self, note: Note) -> None:
        self._write(note.at, note.text)

    def close(self) -> None:
        """There is nothing to restore."""

    def _write(self, at: float, text: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        with self._lock:
            if self._stream is None:
                return
            try:
                print(clock, text, file=self._stream, flush=True)
            except OSError:  # the reader of a pipe has ended; training continues
                self._stream = None


Display = LiveDisplay | LineDisplay


def progress_lines(screen: Screen) -> Iterator[str]:
    """Lines on training, on clean matches, and on troubles, as far as there are any."""
    league = screen.league
    yield evaluation_line(screen) if screen.phase == "evaluating" else _training_line(screen)
    for worker in league.workers:
        if worker.worker in screen.learners[1:]:
            yield _learner_line(worker)
    if met := league.evaluations:
        wins = [
            f"{one.opponent} {one.cell.wins / one.cell.games * 100:.0f} % of {one.cell.games}"
            for one in met
        ]
        yield f"clean matches of {met[0].player}: wins {', '.join(wins)}"
    if troubles := alarms_of(league.metrics):
        yield "alarms: " + ", ".join(alarm.title for alarm in troubles)
    if league.trouble:
        yield league.trouble
    waiting = [facts.name for facts in screen.processes if facts.state is State.WAITING]
    if waiting:
        yield f"waiting to restart: {', '.join(waiting)}"


def _training_line(screen: Screen) -> str:
    """Steps, speed, stage, win rates, time left."""
    league = screen.league
    worker, metrics = league.learner, league.metrics
    if worker is None:
        return "waiting for the learner's first report"
    if not metrics:
        return f"the learner starts ({league.steps:,} steps so far)"
    target = f" of {league.target_steps:,} steps ({screen.done_share * 100:.1f} %)"
    parts = [f"{league.steps:,}{target if league.target_steps else ' steps'}"]
    if "rate/steps_per_second" in metrics:
        parts.append(f"{metrics['rate/steps_per_second']:,.0f} steps/s")
    parts.append(f"stage {worker.mix or '–'}")
    if rates := [f"{name} {share * 100:.0f} %" for name, share in league.win_rates.items()]:
        parts.append("wins " + ", ".join(rates))
    if "policy/entropy" in metrics:
        parts.append(f"entropy {metrics['policy/entropy']:.2f}")
    if screen.seconds_left is not None:
        parts.append(f"{marks.duration(screen.seconds_left)} left")
    return " · ".join(parts)


def _learner_line(worker: WorkerStatus) -> str:
    """A further learner: its activity and steps, and an exploiter's chances."""
    name, metrics = worker.worker.removeprefix("learner-"), worker.metrics
    parts = [f"{name}: {worker.activity}", f"{worker.step:,} steps"]
    if "rate/steps_per_second" in metrics:
        parts.append(f"{metrics['rate/steps_per_second']:,.0f} steps/s")
    if "exploiter/generation" in metrics:
        generation, chance = metrics["exploiter/generation"], metrics["exploiter/least_chance"]
        parts.append(f"generation {generation:.0f}, beats its victims {chance * 100:.0f} %")
    return " · ".join(parts)


def evaluation_line(screen: Screen) -> str:
    """The evaluator's remaining work."""
    evaluator = screen.league.evaluator
    if evaluator is None:
        return "waiting for the evaluator to answer"
    queued = len(evaluator.queue)
    if not evaluator.current:
        return f"waiting for the evaluator: {marks.counted(queued, 'snapshot')} in its queue"
    total = evaluator.matches_total
    return (
        f"waiting for the evaluator: {evaluator.current} has played {evaluator.matches_done} "
        f"{f'of {total} matches' if total else 'matches of its gate'}, "
        f"{marks.counted(queued, 'more snapshot')} to come"
    )
