"""Plays a file for UTMIST's AI² tournament as the tournament does, but in this project's own game.

In each match, the file's agent runs in its own process (`ai2_seat.py`). The process is confined
like the process of a rival, another person's agent (`rival_worker.py`). The agent sees the same
observations as in the original game (the tournament's), and can import only the tournament's
packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from league.agent.rival_bundles import (
    LOOK_SECONDS,
    TOO_MUCH,
    holds_too_much,
    packed,
    remove,
    unpack,
)
from league.errors import InvalidInput
from league.games.ai2.game import PYTHONS as CHECKOUT_PYTHONS
from league.games.ai2.observation import SCALES
from league.games.registry import make_batched

BEGIN = """
import sys
sys.path.insert(0, sys.argv[1])
from league.agent.rival_worker import check
del sys.path[0]
check(*sys.argv[2:])
"""
"""Code that plays an agent under any Python, even if this project is not installed there."""
PYTHONS = ("python3.10", "python3.12")
"""Pythons of the tournament. Validations run under the first, and battles under the second."""
PROBE = "import sys, numpy; print(sys.version.split()[0], numpy.__version__)"
MATCHES = (("validation", "constant", 90), ("battle", "based", 300))
"""Name, opponent and length in seconds of each match."""
MOST_SECONDS = 300.0
"""Longest wall-clock time of a match, in seconds."""
MOST_BYTES = 100_000_000
"""Size of the largest file that GitHub accepts, in bytes."""
MOST_ANSWER = 1 << 16
"""Length of the longest answer that is read, in characters."""
MOST_REASON = 300
MEASURED_FRAMES = 600


@dataclass(frozen=True, kw_only=True)
class Played:
    """Describes a match that the file's agent played in seat 0.

    Attributes:
        match: name of the match, from `MATCHES`.
        opponent: the opponent, from `MATCHES`.
        outcome: 1 if the agent won, 0.5 for a draw, 0 if it lost.
        stocks: stocks that the agent took from its opponent, and stocks that it lost.
        ms: the agent's milliseconds per frame: the mean and the 99th percentile.
        frames: number of frames that were played.
        start_seconds: time that loading the file took.
    """

    python: str
    numpy: str
    match: str
    opponent: str
    outcome: float
    stocks: tuple[int, int]
    frames: int
    ms: tuple[float, float]
    start_seconds: float


class Seat:
    """Talks to a file's agent in its process. Every call raises `InvalidInput` if the agent fails.

    `ms` has the milliseconds that the agent took in each frame. If the function `seated` had to end
    the process, `stopped` is the reason. Otherwise it is "".
    """

    def __init__(
        self, file: Path, python: str, process: subprocess.Popen[str], errors: IO[str]
    ) -> None:
        self.file, self.python, self.ms, self.stopped = file, python, list[float](), ""
        self._process, self._errors = process, errors
        self.start_seconds = 0.0

    def start(self) -> None:
        """Waits until the file is loaded."""
        self.start_seconds = self._answer(lambda said: float(said["start_seconds"]))

    def predict(self, raw_O: NDArray[np.float64]) -> list[float]:
        """Returns the ten keys for an observation of the original game."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # an ended process gives no answer either
            print(json.dumps(raw_O.tolist()), file=self._process.stdin, flush=True)
        action, ms = self._answer(
            lambda said: (np.array(said["action"], np.float64), float(said["ms"]))
        )
        self.ms.append(ms)
        if action.shape != (10,):
            raise InvalidInput(
                f"{self.file} answers with shape {action.shape} in frame {len(self.ms)}: ten "
                "numbers are wanted, one a key"
            )
        return action.tolist()

    def _answer(self, read: Callable[[Any], Any]) -> Any:
        """Returns the value that `read` extracts from the next answer. An answer may contain
        anything, because the agent's own code can write answers too.
        """
        assert self._process.stdout is not None
        if answer := self._process.stdout.readline(MOST_ANSWER):
            try:
                said = json.loads(answer)
                if "failed" not in said:
                    return read(said)
                reason = str(said["failed"])
            except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
                reason = "its process sent no keys"
        elif (status := self._process.wait()) < 0:
            reason = self.stopped or f"signal {-status} ended its process"
        else:
            self._errors.seek(0)
            reason = (self._errors.read().strip().splitlines() or ["no message"])[-1]
        raise InvalidInput(
            f"{self.file} fails under {self.python} after {len(self.ms)} frames: "
            f"{reason[:MOST_REASON]}"
        )


@contextmanager
def seated(
    file: Path, python: str = sys.executable, checkout: Path | None = None
) -> Iterator[Seat]:
    """Starts the agent's process. The process ends with the block, after `MOST_SECONDS`, or when
    the agent has written too much to its folder.

    Args:
        file: the tournament file, or a folder or zip file with `my_agent.py` and its data.
        python: the Python that runs the file.
        checkout: the tournament's repository, whose code the file can then use.
    """
    command = [python, "-I", "-B", "-c", BEGIN, str(Path(__file__).parents[3]), str(os.getpid())]
    command += [str(checkout or "")]
    pipe = subprocess.PIPE
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as own:
        unpack(packed(file, MOST_BYTES), Path(own), MOST_BYTES)
        process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, errors="replace", cwd=own,
            env={"HOME": own, "TMPDIR": own, "PATH": os.environ.get("PATH", os.defpath)},
        )  # fmt: skip
        seat, left = Seat(file, python, process, errors), threading.Event()
        ends_at = time.monotonic() + MOST_SECONDS

        def watch() -> None:
            while not left.wait(min(LOOK_SECONDS, max(0.0, ends_at - time.monotonic()))):
                if time.monotonic() >= ends_at:
                    seat.stopped = f"a match takes more than {MOST_SECONDS:.0f} s"
                elif holds_too_much(own):
                    seat.stopped = TOO_MUCH
                if seat.stopped:
                    process.kill()
                    break

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            seat.start()
            yield seat
        finally:
            left.set()
            watcher.join()
            process.kill()
            process.communicate()
            remove(own)


def ms_a_frame(file: Path) -> float:
    """Measures how many milliseconds the file's agent needs per frame under this Python."""
    with seated(file) as seat:
        for _ in range(MEASURED_FRAMES):
            seat.predict(original(np.full(64, 0.5)))
        return float(np.mean(seat.ms))


def pythons(checkout: Path | None = None) -> dict[str, tuple[str, str]]:
    """Returns the Python programs under which `check` plays the file, with their versions of Python
    and numpy.

    The checkout's own Python is used if there is one. Otherwise the tournament's Pythons are used
    if this machine has them, or else this Python.
    """
    in_checkout = [str(checkout / name) for name in CHECKOUT_PYTHONS] if checkout else []
    for names in (in_checkout, PYTHONS, (sys.executable,)):
        if working := {name: versions for name in names if (versions := _versions(name))}:
            break
    return working


def _versions(program: str) -> tuple[str, str] | None:
    """Returns a program's versions of Python and numpy, or None if either is missing."""
    with suppress(OSError):
        done = subprocess.run([program, "-I", "-c", PROBE], capture_output=True, text=True)
        if done.returncode == 0:
            python, numpy = done.stdout.split()
            return python, numpy
    return None


def check(file: Path, checkout: Path | None = None) -> Iterator[Played]:
    """Plays the matches in `MATCHES` under each Python that `pythons` returns.

    Args:
        file: as for `seated`.
        checkout: the tournament's repository, if there is a copy.

    Raises:
        InvalidInput: the file fails.
    """
    for program, (python, numpy) in pythons(checkout).items():
        for match, opponent, seconds in MATCHES:
            game = make_batched("brawl", 1, max_frames=seconds * 30)
            game.bots_N2[0, 1] = game.spec.bot_index(opponent)
            game.reset(np.zeros(1, np.uint64))
            keys_N2A = game.idle_actions()
            with seated(file, program, checkout) as seat:
                while not game.ended_N[0]:
                    action = seat.predict(original(game.observations_N2O[0, 0]))
                    keys_N2A[0, 0] = np.array(action) > 0.5
                    game.step(keys_N2A)
            lost, taken = game.final_stats_N2S[0, :, game.spec.stats.index("falls")].astype(int)
            yield Played(
                python=python,
                numpy=numpy,
                match=match,
                opponent=opponent,
                outcome=float(game.outcomes_N[0]),
                stocks=(int(taken), int(lost)),
                frames=len(seat.ms),
                ms=(float(np.mean(seat.ms)), float(np.percentile(seat.ms, 99))),
                start_seconds=seat.start_seconds,
            )


def original(seen_O: NDArray[Any]) -> NDArray[np.float64]:
    """Converts this project's observations `[..., O]` to the original game's, `[..., 64]`. The
    original game clips heights at ±7 units and speeds at ±10 units/s.
    """
    seen, half = np.array(seen_O[..., : 2 * len(SCALES)], np.float64), len(SCALES)
    raw = seen.reshape(*seen.shape[:-1], 2, half)
    raw[..., 4] += 1.0
    raw[..., 2:4] = np.arctanh(raw[..., 2:4])
    raw *= SCALES
    raw[..., 1] = np.clip(raw[..., 1], -7.0, 7.0)
    raw[..., 2:4] = np.clip(raw[..., 2:4], -10.0, 10.0)
    return raw.reshape(seen.shape).round(5)  # removes float32's rounding errors
