"""A matchmaker, and learners as processes against it, for the tests of both."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

from league.players import PlayerKind
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

MIXES = {
    "past": {"reference": 1.0},
    "constant": {"constant": 1.0},
    "league": {"snapshots": 7.0, "constant": 1.0, "random": 2.0},
}


def matchmaker(folder):
    """One that serves in this process, as a context."""
    settings = MatchmakerSettings(mixes=MIXES, within_snapshots="uniform")
    return MatchmakerServer(db=folder / "league.db", port=0, settings=settings)


@contextmanager
def learners(folder, program=("-m", "learner")):
    """Yields a function that starts a learner of preset `smoke` with more flags.

    Learners that a failed test left are killed.
    """
    started = []

    def begin(address, *flags):
        command = [
            sys.executable,
            *program,
            "--matchmaker",
            address,
            "--run-dir",
            str(folder),
        ]
        with open(folder / "learner.log", "a") as log:
            started.append(
                subprocess.Popen(
                    [*command, "--preset", "smoke", "--cpu", *flags],
                    stderr=log,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
            )
        return started[-1]

    try:
        yield begin
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def wait_for(condition, seconds=120):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("waited too long")


def snapshots(client):
    return client.players(kinds=[PlayerKind.SNAPSHOT])
