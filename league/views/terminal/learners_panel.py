"""The panel of a league with several learners: each on a line, mains and exploiters."""

from __future__ import annotations

from rich.panel import Panel
from rich.text import Text

from league.players import WorkerStatus
from league.views.terminal import marks
from league.views.terminal.facts import Screen
from league.views.terminal.marks import ACCENT, FAINT
from league.views.terminal.panels import framed, grid


def learners(screen: Screen, width: int) -> Panel:
    """Name, what it does, steps, speed, and of an exploiter its generation and how it stands."""
    right: dict[str, object] = {"justify": "right"}
    table = grid({}, {}, right, right, {"ratio": 1})
    workers = {worker.worker: worker for worker in screen.league.workers}
    for name in screen.learners:
        worker = workers.get(name)
        label = Text(name.removeprefix("learner-"), "bold")
        if worker is None:
            table.add_row(label, Text("starting", FAINT), "", "", "")
            continue
        table.add_row(label, Text(worker.activity, FAINT), *_numbers(worker))
    return framed(table, "Learners")


def _numbers(worker: WorkerStatus) -> tuple[Text, Text, Text]:
    metrics = worker.metrics
    speed = metrics.get("rate/steps_per_second")
    return (
        Text(f"{worker.step:,} steps"),
        Text(f"{marks.count(speed)} steps/s" if speed is not None else "", ACCENT),
        exploiter_words(worker),
    )


def exploiter_words(worker: WorkerStatus) -> Text:
    """How likely it beats the hardest of its victims, which generation it is in, and since how
    many steps.
    """
    metrics = worker.metrics
    if "exploiter/generation" not in metrics:
        return Text("")
    chance = metrics["exploiter/least_chance"]
    return Text.assemble(
        ("  wins ", FAINT),
        (f"{chance * 100:.0f}%", marks.win_style(chance)),
        (f", generation {metrics['exploiter/generation']:.0f}", ""),
        (f" for {metrics['exploiter/steps']:,.0f} steps", FAINT),
    )
