"""Draws a run's training curves while it runs, in a process of low priority."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

from league.errors import LeagueError
from league.runs.folder import CURVES
from league.views.curves import draw_curves

_NICENESS = 15  # the learner needs the processor more


class CurveDrawer:
    """Draws `run_dir`'s curves every `minutes`, and at the end; 0 never does."""

    def __init__(self, run_dir: Path, minutes: float) -> None:
        self._run_dir, self._seconds = run_dir, minutes * 60
        self._due = time.monotonic() + self._seconds
        self._process: BaseProcess | None = None

    def tick(self) -> None:
        """Starts a drawing when one is due and none is under way."""
        is_busy = self._process is not None and self._process.is_alive()
        if self._seconds and not is_busy and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._seconds
            self._start()

    def start_last(self) -> None:
        """Starts the drawing of the finished run, instead of one that is under way."""
        self._end()
        if self._seconds:
            self._start()

    def wait(self, seconds: float) -> list[Path]:
        """Waits up to `seconds` for the drawing under way; returns the file, if there is one."""
        if self._process is None:
            return []
        self._process.join(max(0.0, seconds))
        is_drawn = self._process.exitcode == 0
        self._end()
        return [self._run_dir / CURVES] if is_drawn else []

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")  # forking with gRPC's threads is not safe
        self._process = spawn.Process(target=_draw, args=(self._run_dir,), daemon=True)
        self._process.start()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _draw(run_dir: Path) -> None:
    os.nice(_NICENESS)
    os.setsid()  # the terminal's Ctrl-C is for the supervisor
    try:
        draw_curves(run_dir)
    except LeagueError:  # before the first update there is nothing to draw
        sys.exit(1)
