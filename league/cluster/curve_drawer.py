"""Draws a run's training curves while it runs, in a process of low priority."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from league.runs.folder import CURVES

CURVES_MINUTES = 10.0
"""Between the drawings of a run: often enough to look at, and a drawing takes seconds."""


class CurveDrawer:
    """Draws `run_dir`'s curves every `minutes`, and at the end; 0 never does."""

    def __init__(self, run_dir: Path, minutes: float) -> None:
        self._run_dir, self._seconds = run_dir, minutes * 60
        self._due = time.monotonic() + self._seconds
        self._process: subprocess.Popen[bytes] | None = None

    def tick(self) -> None:
        """Starts a drawing when one is due and none is under way."""
        is_busy = self._process is not None and self._process.poll() is None
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
        try:
            is_drawn = self._process.wait(max(0.0, seconds)) == 0
        except subprocess.TimeoutExpired:
            is_drawn = False
        self._end()
        return [self._run_dir / CURVES] if is_drawn else []

    def _start(self) -> None:
        command = ["nice", "-n", "15", sys.executable, "-m", "league.cli.main", "curves"]
        self._process = subprocess.Popen(
            [*command, "--run-dir", str(self._run_dir)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # before the first update there is nothing to draw
            start_new_session=True,  # the terminal's Ctrl-C is for the supervisor
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
