"""A wait is logged at once and then every minute, however many threads wait."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from league.rpc.channel import Reminders


def test_one_line_a_minute_for_all_threads() -> None:
    now, said = 0.0, []
    reminders = Reminders(lambda sentence: said.append((now, sentence)), clock=lambda: now)
    with ThreadPoolExecutor(8) as threads:
        for tick in range(260):
            now = tick / 2
            list(threads.map(reminders, ["waiting"] * 8))
    assert said == [(at, "waiting") for at in (0, 60, 120)]
