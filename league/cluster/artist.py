"""Draws a run's training curves beside it, in a process of low priority, now and then and at the
end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from league.runs.folder import CURVES as FILE
from league.service import die_with_parent

_NICENESS = 15  # the learner needs the processor more


class CurveArtist:
    """Runs ``league curves`` on `run_dir` every `minutes`; 0 never does, at the end neither."""

    def __init__(self, run_dir: Path, minutes: float) -> None:
        self._run_dir, self._seconds = run_dir, minutes * 60
        self._due = time.monotonic() + self._seconds
        self._child: subprocess.Popen[bytes] | None = None

    def tick(self) -> None:
        """Begins a drawing when one is due and none is being made."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        if self._seconds and self._child is None and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._seconds
            self._child = self._begin()

    def begin_last(self) -> None:
        """Begins the drawing of the finished run; one under way knows less and is given up."""
        self._end()
        if self._seconds:
            self._child = self._begin()

    def wait(self, seconds: float) -> list[Path]:
        """Waits for the drawing under way, and gives it up after `seconds`; returns what was
        drawn.
        """
        if self._child is None:
            return []
        try:
            drawn = self._child.wait(max(0.0, seconds)) == 0
        except subprocess.TimeoutExpired:
            drawn = False
        self._end()
        return [self._run_dir / FILE] if drawn else []

    def _begin(self) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "league.cli.main",
            "curves",
            "--run-dir",
            str(self._run_dir),
        ]
        return subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                die_with_parent.__file__,
                str(os.getpid()),
                "nice",
                "-n",
                str(_NICENESS),
                *command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # before the first update there is nothing to draw
            env={"OMP_NUM_THREADS": "1", **os.environ},
        )

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
