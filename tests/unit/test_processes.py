"""Real, tiny processes: logged, ended with all that they started, kept alive, stopped in order."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from league.cluster.engine import ProcessSpec
from league.cluster.processes import Process, ProcessGroup, RestartPolicy
from league.errors import ConfigError, DataCorrupt, Unavailable
from league.views.facts import State

POLICY = RestartPolicy(first_seconds=0.01, longest_seconds=0.02, limit=2)
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
PARENT = (
    "import subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print('child', child.pid, flush=True); time.sleep(60)"
)


class Stage:
    """A group of Python one-liners and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.group: ProcessGroup

    def play(
        self,
        *,
        spared: str = "",
        mortal: str = "",
        unasked: str = "",
        **codes: str,
    ) -> ProcessGroup:
        specs = [
            ProcessSpec(
                name=name,
                command=(sys.executable, "-c", code),
                log=self.log(name),
                needed=name != spared,
                vital=name != mortal,
                is_spare=name == unasked,
            )
            for name, code in codes.items()
        ]
        self.group = ProcessGroup(
            specs, POLICY, say=lambda text, is_trouble=False: self.said.append(text)
        )
        self.group.start()
        return self.group

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def check_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.group.check()
            time.sleep(0.01)

    def await_output(self, *names: str) -> None:
        self.check_until(
            lambda: all("here" in self.log(name).read_text().splitlines() for name in names)
        )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    for member in stage.group.members.values():
        member.kill()


def test_killed_process_runs_again(stage: Stage) -> None:
    group = stage.play(worker=SLEEP)
    first = group.facts()[0].pid
    os.kill(first, signal.SIGKILL)
    stage.check_until(lambda: group.facts()[0].restarts == 1)
    again = group.facts()[0]
    assert again.state is State.RUNNING
    assert again.pid != first
    assert re.search(r"worker.*signal 9.*\b0\.01 s", stage.said[0])
    assert "worker" in stage.said[1]


def test_gives_up_when_it_dies_too_often(stage: Stage) -> None:
    stage.play(worker="import sys; print('out of luck', file=sys.stderr); sys.exit(1)")
    with pytest.raises(Unavailable, match=r"worker.* 3 .*exit code 1.*out of luck"):
        stage.check_until(lambda: False)


def test_wrong_input_is_not_tried_again(stage: Stage) -> None:
    group = stage.play(
        worker="import sys; print('worker: no such stage', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(ConfigError, match=r"worker.*: no such stage"):
        stage.check_until(lambda: False)
    assert group.facts()[0].restarts == 0


def test_what_a_restart_cannot_cure_is_not_tried_again(stage: Stage) -> None:
    group = stage.play(worker="import sys; sys.exit(4)")
    with pytest.raises(DataCorrupt, match=r"worker.*worker\.log"):
        stage.check_until(lambda: False)
    assert group.facts()[0].restarts == 0


def test_a_full_disk_is_waited_for_however_long_it_takes(stage: Stage) -> None:
    """As long as `limit` restarts would not have lasted."""
    trace = stage.folder / "trace"
    count = f"f = open({str(trace)!r}, 'a+'); f.write('x'); f.flush(); f.seek(0); n = len(f.read())"
    group = stage.play(worker=f"import sys, time; {count}; n < 6 and sys.exit(3); time.sleep(60)")
    stage.check_until(lambda: trace.exists() and len(trace.read_text()) == 6)
    assert group.facts()[0].state is State.RUNNING


def test_the_league_goes_on_while_a_process_that_is_not_vital_dies_too_often(stage: Stage) -> None:
    group = stage.play(mortal="evaluator", evaluator="raise ValueError", learner=SLEEP)
    evaluator, learner = (group.members[name] for name in ("evaluator", "learner"))
    stage.check_until(lambda: evaluator.restarts == POLICY.limit and not evaluator.is_alive)
    stage.check_until(lambda: evaluator.state is State.WAITING)
    assert evaluator.restart_at - time.time() > POLICY.window_seconds / 2
    assert learner.state is State.RUNNING
    evaluator.restart_at = 0.0
    stage.check_until(lambda: evaluator.restarts == POLICY.limit + 1)


def test_a_restart_is_told_with_the_last_words_of_that_life(stage: Stage) -> None:
    stage.play(worker="import sys; print('worker: out of luck', file=sys.stderr); sys.exit(1)")
    stage.check_until(lambda: bool(stage.said))
    (said,) = stage.said
    assert re.search(r"exit code 1.*: out of luck.*\b0\.01 s", said)
    stage.log("worker").write_text("worker: out of luck\n--- a new life\n")
    assert stage.group.members["worker"].last_sentence() == ""


def test_a_process_that_was_stopped_from_outside_runs_again(stage: Stage) -> None:
    group = stage.play(learner="")
    stage.check_until(lambda: group.members["learner"].restarts == 1)
    assert "exit code 0" in stage.said[0]


def test_stops_in_order_and_all_are_waited_for(stage: Stage) -> None:
    trace = str(stage.folder / "trace")
    codes = {
        name: OBEDIENT.format(trace=trace, name=name)
        for name in ("matchmaker", "learner", "evaluator")
    }
    group = stage.play(**codes)
    stage.await_output(*codes)
    assert group.stop(["learner"], 60) == []
    assert group.stop(["evaluator", "nobody"], 60) == []
    assert group.stop(["matchmaker"], 60) == []
    assert Path(trace).read_text().split() == ["learner", "evaluator", "matchmaker"]
    assert {facts.state for facts in group.facts()} == {State.STOPPED}
    assert group.stop(["learner", "matchmaker"], 60) == []  # twice is fine


def test_a_spare_process_runs_while_it_is_wanted(stage: Stage) -> None:
    group = stage.play(unasked="spare", worker=SLEEP, spare=SLEEP)
    spare = group.members["spare"]
    assert (spare.state, spare.pid) == (State.STOPPED, 0)
    group.want("spare", False)
    group.want("spare", True)
    first = spare.pid
    group.want("spare", True)
    assert (spare.state, spare.pid) == (State.RUNNING, first)
    group.want("spare", False)
    stage.check_until(lambda: spare.state is State.STOPPED)
    assert not spare.is_alive
    assert spare.restarts == 0
    group.want("spare", True)
    assert spare.pid != first


def test_waits_double_and_old_restarts_are_forgotten() -> None:
    policy = RestartPolicy(first_seconds=1, longest_seconds=3, limit=3, window_seconds=100)
    times: deque[float] = deque()
    assert [policy.delay(times, now) for now in (0, 10, 20, 30)] == [1, 2, 3, None]
    assert policy.delay(times, 105) == 3
    assert policy.delay(times, 400) == 1


@pytest.fixture
def python(tmp_path: Path) -> Iterator[Callable[[str], Process]]:
    """Starts a one-liner."""
    started = []

    def start(code: str) -> Process:
        command = (sys.executable, "-c", code)
        started.append(Process(ProcessSpec(name="worker", command=command, log=tmp_path / "log")))
        started[-1].start()
        return started[-1]

    yield start
    for process in started:
        process.kill()


def is_alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("end", [Process.kill, Process.terminate])
def test_its_own_children_end_with_a_process(
    python: Callable[[str], Process], end: Callable[[Process], None]
) -> None:
    process = python(PARENT)
    log = process.spec.log
    wait_for(lambda: any(line.startswith("child ") for line in log.read_text().splitlines()))
    child = int(log.read_text().split("child ")[-1])
    assert is_alive(child)
    end(process)
    wait_for(lambda: process.poll() is not None and not is_alive(child))


def test_a_missing_program_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"worker .* no-such-program"):
        Process(ProcessSpec(name="worker", command=("no-such-program",), log=tmp_path)).start()


def test_ctrl_c_of_the_terminal_does_not_reach_a_process(
    python: Callable[[str], Process],
) -> None:
    process = python("import os; print(os.getpgrp(), os.getpid(), os.getsid(0))")
    wait_for(lambda: process.poll() is not None)
    assert set(process.spec.log.read_text().splitlines()[-1].split()) == {str(process.pid)}


def test_one_thread_unless_the_environment_says_otherwise(
    python: Callable[[str], Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    for chosen, expected in ((None, "1"), ("3", "3")):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if chosen:
            monkeypatch.setenv("OMP_NUM_THREADS", chosen)
        process = python("import os; print(os.environ['OMP_NUM_THREADS'])")
        wait_for(lambda process=process: process.poll() is not None)
        assert process.spec.log.read_text().splitlines()[-1] == expected


def test_a_long_log_is_moved_aside_while_it_is_written(python: Callable[[str], Process]) -> None:
    process = python(
        "import time\nfor n in range(2000): print('line', n, flush=True); time.sleep(.0005)"
    )
    while process.poll() is None:
        process.rotate_log(1500)
        time.sleep(0.01)
    log = process.spec.log
    process.rotate_log(1500)
    assert sorted(path.name for path in log.parent.iterdir()) == ["log", "log.1"]
    assert log.stat().st_size <= 1500
    assert "line 1999" in (log.read_text() + log.with_name("log.1").read_text()).splitlines()


def test_the_league_goes_on_without_what_it_does_not_need(stage: Stage) -> None:
    group = stage.play(spared="dashboard", dashboard="import sys; sys.exit(2)", learner=SLEEP)
    stage.check_until(lambda: group.members["dashboard"].state is State.FAILED)
    group.check()
    assert group.members["learner"].state is State.RUNNING
    assert any("dashboard" in text for text in stage.said)
    group.stop(["learner"], 5.0)
