"""A wait is logged at once, then after growing pauses; another wait at once again."""

from __future__ import annotations

from league.rpc.channel import Reminders


def test_one_line_then_reminders_at_growing_intervals() -> None:
    now, said = 0.0, []
    reminders = Reminders(lambda sentence: said.append((now, sentence)), clock=lambda: now)
    for tick in range(2000):
        now = tick / 2
        reminders("waiting")
    assert [at for at, _ in said] == [0, 10, 30, 70, 150, 310, 630]
    now += 6
    reminders("waiting again")
    assert said[-1] == (now, "waiting again")
    now += 9.5
    reminders("and again")
    assert said[-1] == (now, "and again")
