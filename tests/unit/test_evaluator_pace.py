"""The evaluator's share of the processor."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.pace import LEAST_REST_SECONDS, MEMORY_SECONDS, Pace


class Machine:
    """A processor and a wall clock that move only when told."""

    def __init__(self, share: float) -> None:
        self.processor = self.clock = 1000.0
        self.pace = Pace(share, processor=lambda: self.processor, clock=lambda: self.clock)

    def work(self, seconds: float, passed: float | None = None) -> None:
        self.processor += seconds
        self.clock += seconds if passed is None else passed

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.clock += seconds


@given(st.floats(0.05, 0.95), st.lists(st.floats(1e-5, 0.3), min_size=1, max_size=60))
def test_work_stays_at_its_share(share: float, pieces: list[float]) -> None:
    machine = Machine(share)
    for piece in pieces:
        machine.work(piece)
        machine.pace.rest(machine.wait)
    worked, passed = machine.processor - 1000.0, machine.clock - 1000.0
    assert worked / share == pytest.approx(passed, abs=LEAST_REST_SECONDS + 1e-6)


@given(st.lists(st.floats(1e-5, 0.3), max_size=20))
def test_a_whole_core_never_waits(pieces: list[float]) -> None:
    machine = Machine(1.0)
    for piece in pieces:
        machine.work(2 * piece, passed=piece)  # of two threads
        machine.pace.rest(machine.wait)
    assert machine.clock == pytest.approx(1000.0 + sum(pieces))


def test_what_other_work_delayed_is_made_up_for_a_moment_only() -> None:
    machine = Machine(0.5)
    machine.work(1.0, passed=3600.0)  # others had the core
    machine.pace.rest(machine.wait)
    began = machine.clock
    for _ in range(100):
        machine.work(0.1)
        machine.pace.rest(machine.wait)
    assert machine.clock - began == pytest.approx(10.0 / 0.5 - MEMORY_SECONDS, abs=0.01)


@pytest.mark.parametrize("leads", [True, False])
def test_it_steps_back_and_takes_its_own_session_along_alone(leads: bool) -> None:
    # a process that no session was ever made for (a container's first), and some kernels, show an
    # empty file
    script = (
        "import os; from evaluator.pace import OWN_GROUP, step_back;"
        "group = lambda: OWN_GROUP.read_text() if OWN_GROUP.exists() else '';"
        "before = group(); step_back(7); print(os.nice(0), before, group(), sep='|')"
    )
    nice = max(7, os.nice(0))
    said = subprocess.run(
        [sys.executable, "-c", script],
        start_new_session=leads,
        capture_output=True,
        text=True,
        check=True,
    )
    own, before, after = (part.strip() for part in said.stdout.split("|"))
    assert int(own) == nice
    assert after == (before.rpartition(" ")[0] + " 7" if leads and before else before)


def test_who_was_started_nicer_stays_so() -> None:
    script = "import os; from evaluator.pace import step_back; os.nice(12); step_back(7); print(os.nice(0))"
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(said.stdout) == max(12, min(19, os.nice(0) + 12))
