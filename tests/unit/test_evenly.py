"""Learners side by side make as many steps each, and nobody is waited for who is not there."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from learner.distributed.evenly import GONE_SECONDS, HANGING_SECONDS, SLACK_TURNS, Evenly


class Machine:
    """Learners that take turns of different length, on a clock that stands still but for them.

    While one waits the others go on: whoever is due next makes its turn. All that live say so.
    """

    def __init__(self, folder: Path, seconds: dict[str, float]) -> None:
        self.now = 1000.0
        self.seconds = seconds
        self.learners = {
            name: Evenly(folder, name, clock=lambda: self.now, sleep=self.wait) for name in seconds
        }
        self.due = {name: self.now + one for name, one in seconds.items()}
        self.steps = dict.fromkeys(seconds, 0)
        self.waiting: set[str] = set()
        self.waited = dict.fromkeys(seconds, 0.0)
        self.alive = set(seconds)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        self.run(until)
        self.now = max(self.now, until)

    def run(self, until: float) -> None:
        while True:
            for name in self.alive:
                if self.learners[name]._count is not None:
                    self.learners[name].touch()
            ready = {
                name: at
                for name, at in self.due.items()
                if name not in self.waiting and at <= until
            }
            if not ready:
                return
            name = min(ready, key=lambda one: ready[one])
            self.now = max(self.now, ready[name])
            self.steps[name] += 100
            self.waiting.add(name)
            self.waited[name] += self.learners[name].turn(self.steps[name])
            self.waiting.discard(name)
            self.due[name] = self.now + self.seconds[name]


def test_a_fast_learner_makes_no_more_steps_than_a_slow_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"main": 2.0, "main-exploiter": 0.2, "league-exploiter": 1.4})
    machine.run(1010.0)  # all have joined by then
    before = dict(machine.steps)
    machine.run(1250.0)
    made = {name: machine.steps[name] - before[name] for name in before}
    assert made["main"] == pytest.approx(12_000, rel=0.02), "the slowest is not held up"
    for name in made:
        assert made[name] == pytest.approx(12_000, abs=100 * (SLACK_TURNS + 1))
    assert machine.waited["main-exploiter"] > 100
    assert machine.waited["main"] < 2


def test_one_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"main": 0.5, "main-exploiter": 0.5})
    machine.run(1010.0)
    machine.due["main-exploiter"] = 10**9
    machine.alive.discard("main-exploiter")
    machine.run(1100.0)
    assert machine.steps["main"] >= (100 - GONE_SECONDS - 1) / 0.5 * 100


def test_one_that_hangs_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"main": 0.5, "main-exploiter": 0.5})
    machine.run(1010.0)
    machine.due["main-exploiter"] = 10**9
    before = machine.steps["main"]
    machine.run(1000.0 + HANGING_SECONDS)
    assert machine.steps["main"] <= before + 100 * (SLACK_TURNS + 1)
    machine.run(1050.0 + HANGING_SECONDS)
    assert machine.steps["main"] >= before + 30 / 0.5 * 100


def test_one_that_joins_begins_where_the_others_are(tmp_path: Path) -> None:
    machine = Machine(tmp_path, {"main": 0.5, "main-exploiter": 0.5})
    machine.due["main-exploiter"] = 1060.0
    machine.run(1060.0)
    before = dict(machine.steps)
    machine.run(1090.0)
    made = {name: machine.steps[name] - before[name] for name in before}
    assert made["main"] == pytest.approx(6000, rel=0.1), "nobody waits until it has caught up"
    assert made["main-exploiter"] == pytest.approx(6000, rel=0.1)


def test_a_stop_ends_the_wait_and_files_that_are_none_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("half a")
    (tmp_path / "other").write_text("0 1e12 1e12")  # as if it had just written, and for ever
    stops = iter([False] * 5 + [True])
    ahead = Evenly(tmp_path, "main", should_stop=lambda: next(stops), sleep=lambda seconds: None)
    for steps in (0, 100, 200, 300):
        ahead.turn(steps)
    assert next(stops, None) is None


def test_alone_nobody_waits(tmp_path: Path) -> None:
    alone = Evenly(tmp_path / "turns", "main", sleep=lambda seconds: pytest.fail("it waits"))
    for step in range(0, 1000, 100):
        assert alone.turn(step) < 1.0


def test_no_file_is_written_behind_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.distributed.evenly.TOUCH_SECONDS", 0.001)
    slow = threading.Event()

    def touch(evenly: Evenly) -> None:
        slow.set()
        time.sleep(0.1)
        (tmp_path / "main").write_text("0 0 0")

    with Evenly(tmp_path, "main") as evenly:
        evenly.turn(100)
        monkeypatch.setattr(Evenly, "touch", touch)
        assert slow.wait(5)
    time.sleep(0.2)
    assert not (tmp_path / "main").exists()


def test_as_a_context_it_says_that_it_lives_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.distributed.evenly.TOUCH_SECONDS", 0.01)
    with Evenly(tmp_path, "main") as evenly:
        evenly.turn(100)
        first = (tmp_path / "main").read_text()
        limit = time.monotonic() + 5
        while (tmp_path / "main").read_text() == first:
            assert time.monotonic() < limit
            time.sleep(0.01)
    assert not (tmp_path / "main").exists()
