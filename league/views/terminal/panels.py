"""Draws the terminal view. Its panels are pure functions of a `Screen`."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.padding import Padding
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from league.console.text import Words
from league.metrics import wilson_interval
from league.players import PlayerKind
from league.runs.alarms import of_metrics as alarms_of
from league.status import SERVES_PAGES, WorkerStatus
from league.views.facts import MEASURED, Note, ProcessFacts, Screen, State

ACCENT, GOOD, MIDDLING, POOR = "bright_cyan", "green", "yellow", "red"
FAINT, BOT = "bright_black", "bright_blue"
_STATE_STYLES = {
    State.RUNNING: GOOD,
    State.WAITING: MIDDLING,
    State.STOPPING: MIDDLING,
    State.DONE: ACCENT,
    State.STOPPED: FAINT,
    State.KILLED: POOR,
    State.FAILED: POOR,
}
_HEADER, _LEARNER, _FOOTER = 4, 10, 1
"""Heights of panels, in lines."""
_SMALL, _LONG_EVENT = 30, 3
"""A terminal with fewer than `_SMALL` lines shows only the newest event, over its whole width and
in at most `_LONG_EVENT` lines.
"""


_LONGEST = 1e10
"""Longest duration to show, in seconds (three centuries), because a worker may send any number."""


class _Grid(Table):
    """Builds a table that shows strings as plain text (`Words`), never as Rich markup."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        super().add_row(*(Words(cell) if isinstance(cell, str) else cell for cell in cells), **more)


def duration(seconds: float) -> str:
    """Returns a duration such as «0:12:31»."""
    return str(timedelta(seconds=int(min(max(0.0, seconds), _LONGEST))))


def _percent(share: float) -> Words:
    """Returns a share of wins in four characters: green from 70 %, yellow from 45 %, else red."""
    return Words(f"{share:4.0%}", GOOD if share >= 0.7 else MIDDLING if share >= 0.45 else POOR)


def _framed(content: RenderableType, title: str, subtitle: str = "") -> Panel:
    """Returns a panel in the style that all panels share."""
    return Panel(
        content,
        title=Words(title, style="bold default"),
        title_align="left",
        subtitle=Words(subtitle, style=FAINT) if subtitle else None,
        subtitle_align="right",
        border_style=FAINT,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def _grid(columns: str, *heads: str) -> Table:
    """Returns a table without lines. `columns` has a character for each column: ``<`` aligns the
    column to the left, ``>`` to the right, and ``*`` gives it the remaining width.
    """
    table = _Grid.grid(padding=(0, 1), expand=True)
    for column in columns:
        side, ratio = "right" if column == ">" else "left", 1 if column == "*" else None
        table.add_column(justify=side, ratio=ratio, no_wrap=True, overflow="ellipsis")
    if heads:
        table.add_row(*(Words(head, FAINT) for head in heads))
    return table


def _header(screen: Screen) -> Panel:
    """Returns the panel with run, device, progress and time left, in two lines."""
    title = Words(no_wrap=True, overflow="ellipsis")
    title.append(screen.preset, f"bold {ACCENT}").append("  ").append(screen.run_dir, "bold")
    title.append("  " + screen.device, FAINT)
    league, share = screen.league, screen.done_share
    target = f" of {league.target_steps:,}" if league.target_steps else ""
    done = f"{share * 100:.1f} %  " if target else ""
    words = Words.assemble((done, "bold"))
    if screen.phase == "training" and screen.seconds_left is not None:
        words.append(f"{duration(screen.seconds_left)} left  ", ACCENT)
    words.append(f"{league.steps:,}{target} steps ")
    words.append(f" {duration(screen.now - screen.started_at)}", FAINT)
    line = _grid("*<")
    line.add_row(ProgressBar(1.0, share, style=FAINT, complete_style=ACCENT), words)
    panel = _framed(Group(title, line), "KUMITE")
    style = GOOD if screen.phase == "training" else MIDDLING
    panel.subtitle = Words.assemble(("● ", style), screen.phase)
    panel.subtitle.append(screen.usage and f" · {screen.usage}", FAINT)
    panel.border_style = ACCENT
    return panel


def _learner(screen: Screen) -> Panel:
    """Returns the panel with the learner's speed, stage, losses, and shares of time."""
    worker, metrics = screen.league.learner, screen.league.metrics
    if worker is None:
        reason = screen.league.trouble or "Waiting for the learner's first report…"
        return _framed(Words(reason, FAINT), "Learner")
    table = _grid("<*")
    doing = Words.assemble((worker.mix or "–", "bold"), (f"  {worker.activity}", FAINT))
    table.add_row(Words("stage", FAINT), doing)
    for row, *numbers in MEASURED:
        line = [
            Words(label and f"{label} ", FAINT).append(
                f"{metrics[metric]:{shape}}" if metric in metrics else "–", "default"
            )
            for label, metric, shape in numbers
        ]
        table.add_row(Words(row, FAINT), Words("  ").join(line))
    times = sorted(
        ((share, name[5:-6]) for name, share in metrics.items() if name.startswith("time/")),
        reverse=True,
    )
    spent = " ".join(f"{name} {share:.0%}" for share, name in times if share >= 0.005)
    table.add_row(Words("time", FAINT), spent or "–")
    panel = _framed(table, "Learner", worker.player)
    if troubles := ", ".join(alarm.title for alarm in alarms_of(metrics)):
        panel.subtitle = Words(f"! {troubles}", POOR)
        panel.border_style = POOR
    return panel


def opponents(screen: Screen) -> Panel:
    """Returns the panel with win rates in training by kind of opponent, configured and realised
    shares of the mix, and clean matches.
    """
    league = screen.league
    mine = league.learner.player if league.learner else ""
    listed = league.status.shares if league.status else ()
    shares = {share.category: share for share in listed if share.player == mine}
    evaluated = {cell.column: cell for cell in league.evaluations}
    names = dict.fromkeys([*shares, *league.win_rates, *evaluated])
    if not names:
        return _framed(Words("No opponents yet.", FAINT), "Opponents")
    table = _grid("*>>>", "", "wins", "mix›met", "clean matches")
    for name in names:
        won, share, cell = league.win_rates.get(name), shares.get(name), evaluated.get(name)
        met = f"{share.configured * 100:.0f}›{share.realised * 100:.0f}" if share else ""
        clean = Words("–", FAINT)
        if cell is not None:
            interval = wilson_interval(cell.wins, cell.games)
            bounds = f" [{interval.low * 100:2.0f}–{interval.high * 100:3.0f}]"
            clean = _percent(cell.wins / cell.games).append(bounds, FAINT)
        wins = Words("–", FAINT) if won is None else _percent(won)
        table.add_row(name, wins, Words(met, FAINT), clean)
    return _framed(table, "Opponents", league.active)


def leaderboard(screen: Screen, height: int, *, marks_gaps: bool = False) -> Panel:
    """Returns a panel of `height` lines with the newest rated snapshot, the bots, and the best
    players. With `marks_gaps`, further lines show where players are left out.
    """
    league = screen.league
    if not league.ratings:
        line = "Empty until the evaluator has played the first snapshot."
        if league.status is None:
            line = "Waiting for the matchmaker, which reads the ratings…"
        return _framed(Words(line, FAINT), "Leaderboard")
    table = _grid(">*>>>", "#", "player", "rating", "games", "wins")
    shown = league.best(height - 3)
    for before, rating in zip([None, *shown], shown, strict=False):
        if marks_gaps and rating.rank > (before.rank if before else 0) + 1:
            table.add_row("", "…")
        name, style = rating.player.name, ""
        if rating.player == league.newest_rated:
            name, style = f"{name} ‹", f"bold {ACCENT}"
        elif rating.player.kind is PlayerKind.BOT:
            name, style = f"{name} bot", BOT
        won = f"{rating.wins / max(1, rating.games):.0%}"
        table.add_row(
            str(rating.rank), name, f"{rating.score:.2f}", str(rating.games), won, style=style
        )
    total = len(league.ratings)
    listed = f"{total}" if len(shown) == total else f"{len(shown)} of {total}"
    legend = f"{listed} players, ‹ newest rated"
    return _framed(table, "Leaderboard", legend)


def _processes(screen: Screen) -> Panel:
    table = _grid("<*>>")
    for process in screen.processes:
        mark = Words("● ", _STATE_STYLES[process.state]).append(process.name, "default")
        again = f"↻{process.restarts}" if process.restarts else ""
        is_up = process.state is State.RUNNING
        uptime = duration(screen.now - process.started_at) if is_up else ""
        doing = Words(_doing(process, screen), FAINT)
        table.add_row(mark, doing, Words(again, MIDDLING), Words(uptime, FAINT))
    return _framed(table, "Processes")


def _doing(process: ProcessFacts, screen: Screen) -> str:
    league = screen.league
    if process.state is not State.RUNNING:
        return process.state.value
    if process.name == "matchmaker" and league.status is not None:
        return f"{league.status.log_position:,} results, {league.status.open_leases} open"
    worker = next((worker for worker in league.workers if worker.worker == process.name), None)
    if process.name == "dashboard" and worker is None:
        return SERVES_PAGES
    if worker is None or league.status is None:
        return "starting"
    return f"silent since {worker.activity}" if league.status.is_silent(worker) else worker.doing


def _notes(notes: Sequence[Note], width: int) -> list[RenderableType]:
    """Returns the lines of events, with the newest at the bottom."""
    rows: list[RenderableType] = []
    for note in notes:
        clock = time.strftime("%H:%M ", time.localtime(note.at))
        for line in textwrap.wrap(note.text, max(10, width - len(clock))):
            rows.append(Words.assemble((clock, FAINT), (line, POOR if note.is_trouble else "")))
            clock = " " * len(clock)
    return rows


def _footer(screen: Screen) -> Words:
    """Returns a line with the dashboard's address, the key that stops the run, and the folder of
    logs. On a narrow terminal the line is cut off.
    """
    text = Words(no_wrap=True, overflow="ellipsis")
    if screen.dashboard:
        text.append(" browser ", FAINT).append(f"{screen.dashboard}  ")
    if screen.league.trouble:
        return text.append(f" {screen.league.trouble}", POOR)
    if screen.dashboard:
        text.append("fight a bot: ", FAINT).append("/play  ")
    text.append(" Ctrl-C", "bold").append(" saves and stops   ", FAINT)
    text.append("logs ", FAINT).append(screen.logs_dir)
    if not screen.dashboard:
        text.append("   more ", FAINT).append(
            f"bin/league ratings --run-dir {shlex.quote(screen.run_dir)}"
        )
    return text


def _learners(screen: Screen) -> Panel:
    """Returns the panel with a line for each learner."""
    table = _grid("<*")
    workers = {worker.worker: worker for worker in screen.league.workers}
    for name in screen.learners:
        line = learner_words(workers[name]) if name in workers else "starting"
        table.add_row(Words(name.removeprefix("learner-"), "bold"), line)
    return _framed(table, "Learners")


def learner_words(worker: WorkerStatus) -> str:
    """Returns a learner's activity, steps and speed. For an exploiter, adds its generation and its
    chance against its victims.
    """
    metrics, parts = worker.metrics, [worker.activity, f"{worker.step:,} steps"]
    if "rate/steps_per_second" in metrics:
        parts.append(f"{metrics['rate/steps_per_second']:,.0f} steps/s")
    if "exploiter/generation" in metrics:
        parts.append(f"generation {metrics['exploiter/generation']:.0f}")
    if "exploiter/least_chance" in metrics:
        parts[-1] += f", beats its victims {metrics['exploiter/least_chance'] * 100:.0f} %"
    return " · ".join(parts)


def view(screen: Screen, width: int, height: int) -> Layout:
    """Returns the picture for a terminal of `width` by `height` cells."""
    left = width // 2
    right = width - left
    evaluated = {cell.column for cell in screen.league.evaluations}
    newest = _notes(screen.notes[-1:], width - 2)[:_LONG_EVENT] if height < _SMALL else []
    wanted = 3 + max(1, len(evaluated | screen.league.win_rates.keys()))
    top = (
        max(_LEARNER, min(wanted, (height - len(newest)) // 2))
        if height >= 20
        else max(3, (height - 5) // 2)
    )
    several = len(screen.learners) + 2 if len(screen.learners) > 1 and height >= 24 else 0
    bottom = max(3, height - _HEADER - top - several - len(newest) - _FOOTER)
    group = min(2 + max(1, len(screen.processes)), max(3, bottom - 3))
    layout = Layout(name="screen")
    layout.split_column(
        Layout(_header(screen), size=_HEADER),
        Layout(name="top", size=top),
        *([Layout(_learners(screen), size=several)] if several else []),
        Layout(name="bottom", size=bottom),
        *([Layout(Padding(Group(*newest), (0, 1)), size=len(newest))] if newest else []),
        Layout(_footer(screen), size=_FOOTER),
    )
    layout["top"].split_row(
        Layout(_learner(screen), size=left), Layout(opponents(screen), size=right)
    )
    layout["bottom"].split_row(
        Layout(leaderboard(screen, bottom), size=left), Layout(name="side", size=right)
    )
    if newest:
        layout["side"].update(_processes(screen))
        return layout
    rows = _notes(screen.notes[group - bottom :], right - 4)
    events = _framed(Group(*rows[-max(1, bottom - group - 2) :]), "Events")
    layout["side"].split_column(Layout(_processes(screen), size=group), Layout(events))
    return layout
