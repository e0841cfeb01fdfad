"""Trains exploiters on request, one at a time, with `bin/league exploit`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from league.errors import NotFound, Refused
from league.service import die_with_parent

LINES = 14
"""Number of lines of the training's output to show."""
TRIES = 1


class ExploitJob:
    """Runs the training of an exploiter in a child process. The child ends when this process ends.

    Attributes:
        what: a description of the last job, or "" before the first job.
    """

    def __init__(self, run_dir: Path | None) -> None:
        self._run_dir = run_dir
        self._process: subprocess.Popen[bytes] | None = None
        self.what = ""
        self._lock = threading.Lock()

    @property
    def log(self) -> Path | None:
        """The file with the training's output, or None without the run's folder."""
        return None if self._run_dir is None else self._run_dir / "logs" / "exploit.log"

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, player: str, steps: int) -> None:
        """Begins to train an exploiter.

        Args:
            player: the exploiter's victim.
            steps: number of training steps.

        Raises:
            NotFound: the run's folder is not on this machine.
            Refused: another exploiter is being trained.
        """
        if self.log is None:
            raise NotFound("The weights are not here: open the dashboard with --run-dir.")
        command = [sys.executable, die_with_parent.__file__, str(os.getpid()), sys.executable]
        command += ["-m", "league", "exploit", "--run-dir", str(self._run_dir)]
        command += ["--steps", str(steps), "--tries", str(TRIES), "--", player]
        with self._lock:
            if self.is_running():
                raise Refused("An exploiter is being trained already: wait for its end.")
            self.log.parent.mkdir(exist_ok=True)
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                )
            self.what = f"An exploiter of {player} with {steps:,} steps"

    def last_lines(self) -> list[str]:
        """Returns the last lines of the training's output."""
        if self.log is None or not self.log.is_file():
            return []
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]

    def close(self) -> None:
        """Ends the training."""
        if self._process is not None and self.is_running():
            self._process.terminate()
