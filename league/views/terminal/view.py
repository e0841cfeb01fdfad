"""The terminal view as one renderable: a pure function of a `Screen` and the terminal's size."""

from __future__ import annotations

from rich.layout import Layout

from league.views.terminal import panels
from league.views.terminal.facts import Screen
from league.views.terminal.learners_panel import learners

_HEADER, _LEARNER, _FOOTER = 4, 10, 1


def view(screen: Screen, width: int, height: int) -> Layout:
    """Header, learner beside opponents, learners if several, leaderboard beside the rest, a
    footer.
    """
    left = width // 2
    right = width - left
    opponents = 3 + max(1, len(screen.league.win_rates), len(screen.league.exams))
    top = max(_LEARNER, min(opponents, height // 2)) if height >= 20 else max(3, (height - 5) // 2)
    several = len(screen.learners) + 2 if len(screen.learners) > 1 and height >= 24 else 0
    bottom = max(3, height - _HEADER - top - several - _FOOTER)
    crew = min(2 + max(1, len(screen.processes)), max(3, bottom - 3))
    layout = Layout(name="screen")
    layout.split_column(
        Layout(panels.header(screen, width), name="header", size=_HEADER),
        Layout(name="top", size=top),
        *([Layout(learners(screen, width), name="learners", size=several)] if several else []),
        Layout(name="bottom", size=bottom),
        Layout(panels.footer(screen), name="footer", size=_FOOTER),
    )
    layout["top"].split_row(
        Layout(panels.learner(screen, left), name="learner", size=left),
        Layout(panels.opponents(screen, right), name="opponents", size=right),
    )
    layout["bottom"].split_row(
        Layout(panels.leaderboard(screen, left, bottom), name="leaderboard", size=left),
        Layout(name="side", size=right),
    )
    layout["side"].split_column(
        Layout(panels.processes(screen), name="processes", size=crew),
        Layout(panels.notes(screen, right, bottom - crew), name="notes"),
    )
    return layout
