"""A matchmaker, and learners as processes against it, for the tests of both."""

import multiprocessing
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from league.players import PlayerKind
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

MIXES = {
    "past": {"reference": 1.0},
    "constant": {"constant": 1.0},
    "league": {"snapshots": 7.0, "constant": 1.0, "random": 2.0},
}


def matchmaker(folder, port=0):
    """One that serves in this process, as a context."""
    settings = MatchmakerSettings(mixes=MIXES, within_snapshots="uniform")
    return MatchmakerServer(db=folder / "league.db", port=port, settings=settings)


class Forked:
    """A program forked from a server that has loaded torch, with the methods of `Popen`.

    `run` is called with the path of the log, to which the program's output goes, and `arguments`.
    """

    def __init__(self, run, log, *arguments):
        processes = multiprocessing.get_context("forkserver")
        self._process = processes.Process(target=_logged, args=(str(log), run, *arguments))
        self._process.start()
        self.pid = self._process.pid

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        return self.poll()

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self._process.terminate()

    def kill(self):
        self._process.kill()


def _logged(log, run, *arguments):
    with open(log, "a", buffering=1) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    run(*arguments)


class ForkedLearner(Forked):
    def __init__(self, words, log, checkpoint_seconds, cwd="."):
        super().__init__(_learn, log, words, checkpoint_seconds, str(Path(cwd).resolve()))


def _learn(words, checkpoint_seconds, cwd):
    os.chdir(cwd)
    from learner.main import main
    from learner.train import session

    session.CHECKPOINT_SECONDS = checkpoint_seconds
    sys.exit(main(words))


@contextmanager
def learners(folder, checkpoint_seconds=120.0):
    """Yields a function that starts a learner of preset `smoke` with more flags.

    Learners that a failed test left are killed.
    """
    started = []

    def begin(address, *flags):
        words = ["--matchmaker", address, "--run-dir", str(folder), "--preset", "smoke", "--cpu"]
        words += flags
        log = folder / "learner.log"
        log.touch()
        started.append(ForkedLearner(words, log, checkpoint_seconds))
        return started[-1]

    try:
        yield begin
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def snapshots(client):
    return client.players(kinds=[PlayerKind.SNAPSHOT])
