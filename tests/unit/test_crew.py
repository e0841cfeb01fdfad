"""The crew keeps real, tiny processes alive, within limits, and stops them in order."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from league.cluster.backend import ProcessSpec
from league.cluster.crew import Crew, RestartPolicy, State
from league.cluster.local import LocalBackend, last_sentence
from league.cluster.settings import SupervisorSettings
from league.errors import ConfigError, DataCorrupt, StorageFull, Unavailable

SETTINGS = SupervisorSettings(restart_first_seconds=0.01, restart_limit=2)
SLEEP = "import time; time.sleep(60)"
OBEDIENT = """
import signal, sys, time
def stop(*_):
    open({trace!r}, "a").write({name!r} + " ")
    sys.exit(0)
signal.signal(15, stop)
print("here", flush=True)
time.sleep(60)
"""
STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(60)"


class Stage:
    """A crew of Python one-liners and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.crew: Crew

    def play(
        self,
        may_finish: frozenset[str] = frozenset(),
        finished: Mapping[str, bool] = {},
        **codes: str,
    ) -> Crew:
        specs = [
            ProcessSpec(name=name, command=(sys.executable, "-c", code), log=self.log(name))
            for name, code in codes.items()
        ]
        self.crew = Crew(
            LocalBackend(),
            specs,
            SETTINGS,
            say=self.said.append,
            may_finish=may_finish,
            has_finished=lambda name: finished.get(name, True),
        )
        self.crew.start()
        return self.crew

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def tend_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, f"it did not come true in time: {self.said}"
            self.crew.tend()
            time.sleep(0.01)

    def await_word(self, *names: str) -> None:
        self.tend_until(
            lambda: all("here" in self.log(name).read_text().splitlines() for name in names)
        )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    for member in stage.crew.members.values():
        if member.process is not None:
            member.process.kill()


def test_killed_process_runs_again(stage: Stage) -> None:
    crew = stage.play(worker=SLEEP)
    first = crew.facts()[0].pid
    os.kill(first, signal.SIGKILL)
    stage.tend_until(lambda: crew.facts()[0].restarts == 1)
    again = crew.facts()[0]
    assert again.state is State.RUNNING
    assert again.pid != first
    assert stage.said[0] == "worker ended (signal 9): it restarts in 0.01 s."
    assert "runs again" in stage.said[1]


def test_gives_up_when_it_dies_too_often(stage: Stage) -> None:
    stage.play(worker="import sys; print('out of luck', file=sys.stderr); sys.exit(1)")
    with pytest.raises(
        Unavailable, match=r"worker ended 3 times .* exit code 1, saying 'out of luck'"
    ):
        stage.tend_until(lambda: False)


def test_wrong_input_is_not_tried_again(stage: Stage) -> None:
    crew = stage.play(
        worker="import sys; print('worker: no such stage', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(ConfigError, match=r"worker can't run: worker: no such stage"):
        stage.tend_until(lambda: False)
    assert crew.facts()[0].restarts == 0


@pytest.mark.parametrize(
    ("code", "error", "otherwise"),
    [(3, StorageFull, "the disk is full"), (4, DataCorrupt, "damaged")],
)
def test_what_a_restart_cannot_cure_is_not_tried_again(
    stage: Stage, code: int, error: type[Exception], otherwise: str
) -> None:
    crew = stage.play(worker=f"import sys; sys.exit({code})")
    with pytest.raises(error, match=rf"worker can't run: .*{otherwise}, read .*worker\.log"):
        stage.tend_until(lambda: False)
    assert crew.facts()[0].restarts == 0


def test_a_restart_is_told_with_the_last_words_of_that_life(stage: Stage) -> None:
    stage.play(worker="import sys; print('worker: out of luck', file=sys.stderr); sys.exit(1)")
    stage.tend_until(lambda: bool(stage.said))
    assert stage.said == ["worker ended (exit code 1: worker: out of luck): it restarts in 0.01 s."]
    stage.log("worker").write_text("worker: out of luck\n--- a new life\n")
    assert last_sentence(stage.log("worker")) == ""


def test_who_was_told_to_stop_from_outside_has_not_finished(stage: Stage) -> None:
    crew = stage.play(frozenset({"learner"}), {"learner": False}, learner="")
    stage.tend_until(lambda: crew.members["learner"].restarts == 1)
    assert (
        stage.said[0] == "learner ended (exit code 0, as if told to stop): it restarts in 0.01 s."
    )


def test_end_without_error_is_a_death_unless_it_may_finish(stage: Stage) -> None:
    once = "import pathlib, time; p = pathlib.Path({!r}); p.exists() and time.sleep(60); p.touch()"
    crew = stage.play(
        frozenset({"learner"}), learner="", matchmaker=once.format(str(stage.folder / "has_ended"))
    )
    stage.tend_until(lambda: crew.is_done("learner") and crew.members["matchmaker"].restarts == 1)
    assert crew.members["learner"].restarts == 0


def test_stops_in_order_and_all_are_waited_for(stage: Stage) -> None:
    trace = str(stage.folder / "trace")
    codes = {
        name: OBEDIENT.format(trace=trace, name=name)
        for name in ("matchmaker", "learner", "evaluator")
    }
    crew = stage.play(**codes)
    stage.await_word(*codes)
    assert crew.stop(["learner"], 5) == []
    assert crew.stop(["evaluator", "nobody"], 5) == []
    assert crew.stop(["matchmaker"], 5) == []
    assert Path(trace).read_text().split() == ["learner", "evaluator", "matchmaker"]
    assert {facts.state for facts in crew.facts()} == {State.STOPPED}
    assert crew.stop(["learner", "matchmaker"], 5) == []  # twice is fine


def test_stubborn_process_is_killed_and_that_is_said(stage: Stage) -> None:
    crew = stage.play(learner=STUBBORN)
    stage.await_word("learner")
    assert crew.stop(["learner"], 0.2) == ["learner"]
    assert stage.said == ["learner had not stopped within 0.2 s and was killed."]
    assert crew.facts()[0].state is State.KILLED


def test_hurry_ends_the_wait(stage: Stage) -> None:
    crew = stage.play(learner=STUBBORN)
    stage.await_word("learner")
    began = time.monotonic()
    assert crew.stop(["learner"], 30, hurried=lambda: time.monotonic() - began > 0.1) == ["learner"]
    assert time.monotonic() - began < 5
    assert "when hurried" in stage.said[0]


def test_waits_double_and_old_restarts_are_forgotten() -> None:
    policy = RestartPolicy(
        SupervisorSettings(
            restart_first_seconds=1,
            restart_longest_seconds=3,
            restart_limit=3,
            restart_window_seconds=100,
        )
    )
    assert [policy.delay(now) for now in (0, 10, 20, 30)] == [1, 2, 3, None]
    assert policy.delay(105) == 3
    assert policy.delay(400) == 1
