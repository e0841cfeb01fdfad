"""For every test, and every process that a test starts."""

import fcntl
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from league.garbage import collect_rarely

# Two OpenMP threads on two busy cores made a learner 50 times slower; `bin/test` sets this too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
collect_rarely()
os.environ.setdefault("KUMITE_NO_DASHBOARD", "1")  # a second of a core for each league


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the tests of whole systems first: they wait most, and others can run meanwhile."""
    items.sort(key=lambda item: "system" not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Lets the first worker write the bytecode of all modules alone, which the others then read."""
    with open(__file__) as own:
        try:
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(own, fcntl.LOCK_SH)
        return (yield)


def pytest_collection_finish() -> None:
    """Waits until `bin/test` has compiled Brawl's step, and keeps the collector away from the
    million objects of all test modules and their imports.
    """
    with (Path(__file__).parents[1] / "league/games/brawl/kernel.py").open() as kernel:
        fcntl.flock(kernel, fcntl.LOCK_SH)
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Takes larger fixtures out of the clone, whose runs/ commands would find, and notes of trusted
    rivals out of the home folder.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("nowhere"))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs each test in its own folder, where only its own runs/ can be found. Games of the folder
    put it on the path, which is longer for every import and every process of later tests.
    """
    before = sys.path.copy()
    monkeypatch.chdir(tmp_path)
    yield
    sys.path[:] = before
