"""Leagues and learners of one test, and runs that the command line's tests share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from multiprocessing.forkserver import ensure_running, set_forkserver_preload
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _fork_server() -> None:
    """Starts the one server of this process that forks learners, also those of commands, so that
    none of them loads torch again.
    """
    set_forkserver_preload(["fork_server"])
    with pytest.MonkeyPatch.context() as patch:  # until 3.12 it looks nowhere else
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        ensure_running()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[object]:
    """A matchmaker for learners' processes."""
    from learner_process import matchmaker

    with matchmaker(tmp_path) as running:
        yield running


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """Starts learners as processes, in one run folder."""
    from learner_process import learners

    with learners(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A league that runs."""
    from cli_league import live_league

    with live_league(tmp_path_factory.mktemp("live")) as league:
        yield league


@pytest.fixture
def league(tmp_path: Path) -> Iterator[object]:
    """A small league, whose log is checked at the end."""
    from small_league import small_league

    with small_league(tmp_path) as league:
        yield league


@pytest.fixture
def client(tmp_path: Path) -> Iterator[object]:
    """A client of a matchmaker, as an evaluator uses it."""
    from evaluator_league import matchmaker_of

    with matchmaker_of(tmp_path) as client:
        yield client


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, with `ids.json`: a match id by category."""
    from cli_league import make_run

    path = tmp_path_factory.mktemp("runs") / "laptop-1"
    ids = make_run(path)
    (path / "ids.json").write_text(json.dumps(ids))
    return path


@pytest.fixture
def served_run(finished: Path) -> Iterator[Path]:
    """The finished run while a matchmaker serves it."""
    from cli_league import served

    with served(finished) as path:
        yield path
