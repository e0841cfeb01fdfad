"""A worker hangs when it makes no progress for much longer than it took before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from league.service.pace import LEAST_SECONDS, TIMES, Pace
from league.status import STALLED

METRICS = {"rate/steps_per_second": 100.0, "loss/policy": 0.5, "progress/seconds_left": 9.0}


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pace(time: Time) -> Pace:
    return Pace(time)


@pytest.fixture
def passes(time: Time, pace: Pace) -> Callable[[float], None]:
    """Lets time pass, in which heartbeats are sent."""

    def passes(seconds: float) -> None:
        for _ in range(round(seconds)):
            time.now += 1.0
            pace.judged({})

    return passes


def test_its_bound_follows_from_the_slowest_recent_step(
    pace: Pace, passes: Callable[[float], None]
) -> None:
    for _ in range(3):
        passes(20)
        pace.moved()
    passes(20 * TIMES)
    assert pace.judged(METRICS) == METRICS
    passes(1)
    told = pace.judged(METRICS)
    assert told["rate/steps_per_second"] == 0.0
    assert told["loss/policy"] == 0.5
    assert "progress/seconds_left" not in told
    assert told[STALLED] == 20 * TIMES + 1
    pace.moved()
    assert pace.judged(METRICS) == METRICS


def test_a_first_step_that_compiles_does_not_hide_a_hang(
    pace: Pace, passes: Callable[[float], None]
) -> None:
    for seconds in (150, 1, 1):
        passes(seconds)
        pace.moved()
    passes(LEAST_SECONDS + 1)
    assert STALLED in pace.judged(METRICS)


def test_who_moves_fast_is_given_some_seconds(pace: Pace, passes: Callable[[float], None]) -> None:
    pace.moved()
    pace.moved()
    passes(LEAST_SECONDS)
    assert pace.judged(METRICS) == METRICS
    passes(1)
    assert STALLED in pace.judged(METRICS)


def test_before_the_first_progress_nobody_knows_the_pace(
    pace: Pace, passes: Callable[[float], None]
) -> None:
    passes(1000)
    assert pace.judged(METRICS) == METRICS


def test_waiting_does_not_count(pace: Pace, passes: Callable[[float], None], time: Time) -> None:
    pace.moved()
    time.now += 1000  # no heartbeat was sent: the matchmaker was away
    assert pace.judged(METRICS) == METRICS
    for _ in range(20):
        passes(5)
        pace.rests()
    assert pace.judged(METRICS) == METRICS
