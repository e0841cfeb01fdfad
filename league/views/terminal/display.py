"""Shows the supervisor's state: a live screen or plain lines, and a summary at the end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.live import Live

from league.console.text import Words, plain
from league.errors import is_full
from league.runs.alarms import of_metrics as alarms_of
from league.status import CORE_WAIT, MOST_CORE_WAIT
from league.views.facts import Note, Screen, State
from league.views.terminal.panels import duration, leaderboard, learner_words, opponents, view

_LONGEST = 25
"""Number of rows in the printed leaderboard. The exported leaderboard has all rows."""


class LiveDisplay:
    """Draws the whole terminal every `seconds`, until it is closed.

    If drawing fails, plain lines replace the screen, because training must continue.
    """

    def __init__(self, console: Console, seconds: float = 1.0) -> None:
        self._console = console
        self._seconds = seconds
        self._drawn_at = 0.0
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._is_open = True
        self._lines: LineDisplay | None = None
        self._live.start()

    def show(self, screen: Screen) -> None:
        if self._lines is not None:
            self._lines.show(screen)
        if not self._is_open or time.monotonic() - self._drawn_at < self._seconds:
            return
        self._drawn_at = time.monotonic()
        width, height = self._console.size
        try:
            self._live.update(view(screen, width, height), refresh=True)
        except OSError:  # the terminal was closed
            self._is_open = False
        except Exception as error:
            self.close()
            self._lines = LineDisplay(self._console.file)
            self._lines.add_note(Note(at=screen.now, text=_undrawn("live view", error)))

    def add_note(self, note: Note) -> None:
        self._drawn_at = 0.0  # makes the next `show` draw at once
        if self._lines is not None:
            self._lines.add_note(note)

    def close(self) -> None:
        self._is_open = False
        with contextlib.suppress(OSError):
            self._live.stop()


class LineDisplay:
    """Prints each event when it occurs. Every `seconds`, it also prints the lines on the run's
    state that have changed.
    """

    def __init__(self, stream: IO[str], seconds: float = 10.0) -> None:
        self._stream: IO[str] | None = stream
        self._seconds = seconds
        self._said_at = time.monotonic()
        self._last: list[str] = []
        self._lock = threading.Lock()

    def show(self, screen: Screen) -> None:
        if time.monotonic() - self._said_at < self._seconds:
            return
        self._said_at = time.monotonic()
        try:
            lines = list(progress_lines(screen))
        except Exception as error:
            lines = [_undrawn("progress", error)]
        for line in lines:
            if line not in self._last:
                self._write(screen.now, line)
        self._last = lines

    def add_note(self, note: Note) -> None:
        self._write(note.at, note.text)

    def close(self) -> None:
        """Does nothing, because there is nothing to restore."""

    def _write(self, at: float, text: str) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        with self._lock:
            if self._stream is None:
                return
            try:
                print(clock, plain(text), file=self._stream, flush=True)
            except OSError as error:  # training continues
                if not is_full(error):  # the process that reads the pipe has ended
                    self._stream = None


def _undrawn(subject: str, error: Exception) -> str:
    return f"The {subject} can't be drawn ({type(error).__name__}: {error}): the run continues."


Display = LiveDisplay | LineDisplay


def progress_lines(screen: Screen) -> Iterator[str]:
    """Yields lines on training, clean matches, and problems, if there are any."""
    league = screen.league
    yield evaluation_line(screen) if screen.phase == "evaluating" else _training_line(screen)
    for worker in league.workers:
        if worker.worker in screen.learners[1:]:
            yield f"{worker.worker.removeprefix('learner-')}: {learner_words(worker)}"
    if met := league.evaluations:
        wins = [f"{bot.column} {bot.wins / bot.games * 100:.0f} % of {bot.games}" for bot in met]
        yield f"clean matches of the newest snapshots: wins {', '.join(wins)}"
    if troubles := alarms_of(league.metrics):
        yield "alarms: " + ", ".join(alarm.title for alarm in troubles)
    if league.trouble:
        yield league.trouble
    waiting = [facts.name for facts in screen.processes if facts.state is State.WAITING]
    if waiting:
        yield f"waiting to restart: {', '.join(waiting)}"


def _training_line(screen: Screen) -> str:
    """Returns a line with steps, speed, stage, win rates, entropy, and time left."""
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
        parts.append(f"{duration(screen.seconds_left)} left")
    return " · ".join(parts)


def evaluation_line(screen: Screen) -> str:
    """Returns a line on the evaluator's remaining work."""
    evaluator = screen.league.evaluator
    if evaluator is None:
        return "waiting for the evaluator to answer"
    count = len(evaluator.queue)
    queue = f"{count} player{'' if count == 1 else 's'} in its queue"
    if not evaluator.current and evaluator.unspent and not count:
        return f"waiting for the evaluator: {evaluator.unspent} matches of its budget are left"
    if not evaluator.current:
        return f"waiting for the evaluator: {queue}"
    done = f"has played {evaluator.matches_done}"
    if evaluator.matches_total:
        done += f" of {evaluator.matches_total} matches"
    else:  # before the first lease, or in a gate, whose number of matches isn't known
        done = f"{done} matches of its gate" if evaluator.matches_done else "begins to play"
    shares = (worker.metrics.get(CORE_WAIT, 0.0) for worker in screen.league.workers)
    waits = any(share > MOST_CORE_WAIT for share in shares)
    queue += ", waiting for a free core" if waits else ""
    return f"waiting for the evaluator: {evaluator.current} {done}, {queue}"


def print_summary(console: Console, screen: Screen, files: list[Path]) -> None:
    """Prints the leaderboard, the newest snapshots' clean matches, steps, time, and file paths."""
    league = screen.league
    if league.ratings:
        console.print(leaderboard(screen, _LONGEST + 3, marks_gaps=True))
    else:
        console.print("No snapshot has been evaluated yet, so there is no leaderboard.")
    if league.evaluations:
        console.print(opponents(screen))
        words = "Clean matches are those of the newest snapshots together: share of wins (a draw "
        console.print(Words(f"{words}is none) with its 95 % Wilson interval."))
    spent = duration(screen.now - screen.started_at)
    words = f"{league.steps:,} steps, {league.active}, {spent} of wall-clock"
    console.print(Words(f"{words} time."))
    for path in files:
        console.print(Words(f"  {path}"))
