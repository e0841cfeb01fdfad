"""Buckets: the average and the burst hold, for each peer separately, in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.errors import Busy
from league.service.rate_limiter import RateLimiter

HERE, THERE = "ipv4:127.0.0.1:{}", "ipv4:10.0.0.5:{}"


def allowed(limits: RateLimiter, peer: str) -> bool:
    try:
        limits.take(peer)
    except Busy:
        return False
    return True


@settings(deadline=None, max_examples=50)
@given(
    rate=st.floats(0.5, 500),
    burst=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 2), max_size=100),
)
def test_no_peer_gets_more_than_its_burst_and_its_rate(
    rate: float, burst: int, pauses: list[float]
) -> None:
    """In any stretch of time, also after a long silence: nothing is saved up beyond the burst."""
    now = [0.0]
    limits = RateLimiter(rate, burst, lambda: now[0])
    taken: list[float] = []
    for pause in pauses:
        now[0] += pause
        for _ in range(3):
            if allowed(limits, HERE.format(1)):
                taken.append(now[0])
    for first, since in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + rate * (taken[last] - since) + 1e-6


def test_who_waits_as_advised_is_let_in() -> None:
    now = [0.0]
    limits = RateLimiter(10.0, 2, lambda: now[0])
    assert [allowed(limits, "a") for _ in range(3)] == [True, True, False]
    with pytest.raises(Busy, match=r"\b10\b.*\b0\.1 s") as caught:
        limits.take("a")
    now[0] += caught.value.retry_seconds
    assert allowed(limits, "a")
    now[0] -= 50.0  # a clock that goes back gives nothing and takes nothing
    assert not allowed(limits, "a")


def test_another_machine_is_one_peer_and_this_ones_connections_are_many() -> None:
    limits = RateLimiter(1e-3, 1, lambda: 0.0)
    assert [allowed(limits, HERE.format(port)) for port in (1, 2, 1)] == [True, True, False]
    assert [allowed(limits, THERE.format(port)) for port in (1, 2)] == [True, False]


def test_a_flood_of_peers_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.service.rate_limiter.MOST_PEERS", 100)
    limits = RateLimiter(1e-3, 1, lambda: 0.0)
    for number in range(1000):
        limits.take(f"ipv4:10.0.{number // 250}.{number % 250}:9")
    assert len(limits) <= 100
