"""The terminal view: panels that are pure functions of a `Screen` and of the cells they fill."""

from __future__ import annotations

import textwrap
import time

from rich import box
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from league.metrics import wilson_interval
from league.players import PlayerKind, Rating, WorkerStatus
from league.runs.alarms import of_metrics as alarms_of
from league.views.terminal import marks
from league.views.terminal.facts import BotEvaluation, ProcessFacts, Screen, State
from league.views.terminal.marks import ACCENT, BOT, FAINT, GOOD, MIDDLING, POOR

_STATE_STYLES = {
    State.RUNNING: GOOD,
    State.WAITING: MIDDLING,
    State.STOPPING: MIDDLING,
    State.DONE: ACCENT,
    State.STOPPED: FAINT,
    State.KILLED: POOR,
    State.FAILED: POOR,
}
_LEARNER_ROWS = (
    ("loss", (("policy", "loss/policy"), ("value", "loss/value"))),
    ("policy", (("entropy", "policy/entropy"), ("KL", "policy/approx_kl"))),
    ("", (("clipped", "policy/clip_fraction"), ("rate", "learning/rate"))),
    ("value", (("explained variance", "value/explained_variance"),)),
)
_HEADER, _LEARNER, _FOOTER = 4, 10, 1
"""Heights of panels, in lines."""
_WIDE = 56
"""Cells from which a panel has room for further columns."""
Column = dict[str, object]
_RIGHT: Column = {"justify": "right"}
_REST: Column = {"ratio": 1}
"""A column that takes what the others leave."""


def _framed(content: RenderableType, title: str, subtitle: str = "") -> Panel:
    """The frame that all panels share."""
    return Panel(
        content,
        title=Text(title, style="bold default"),
        title_align="left",
        subtitle=Text(subtitle, style=FAINT) if subtitle else None,
        subtitle_align="right",
        border_style=FAINT,
        box=box.ROUNDED,
        padding=(0, 1),
    )


def _grid(*columns: Column) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    for column in columns:
        table.add_column(no_wrap=True, overflow="ellipsis", **column)  # type: ignore[arg-type]
    return table


def _bar(share: float, style: str) -> ProgressBar:
    return ProgressBar(
        total=1.0, completed=share, style=FAINT, complete_style=style, finished_style=style
    )


def header(screen: Screen) -> Panel:
    """Run, device, progress and time left: two lines."""
    place = Text(no_wrap=True, overflow="ellipsis")
    place.append(screen.preset, f"bold {ACCENT}").append("  ").append(screen.run_dir, "bold")
    place.append("  " + screen.device, FAINT)
    share, league = screen.done_share, screen.league
    target = f" of {league.target_steps:,}" if league.target_steps else ""
    words = Text.assemble((f"{share * 100:.1f} %", "bold"), f"  {league.steps:,}{target} steps ")
    words.append(f" {marks.duration(screen.now - screen.started_at)}", FAINT)
    if screen.phase == "training" and screen.seconds_left is not None:
        words.append(f"  {marks.duration(screen.seconds_left)} left", ACCENT)
    line = _grid(_REST, {"width": words.cell_len})
    line.add_row(_bar(share, ACCENT), words)
    panel = _framed(Group(place, line), "KUMITE")
    style = GOOD if screen.phase == "training" else MIDDLING
    panel.subtitle = Text.assemble(("● ", style), screen.phase)
    panel.border_style = ACCENT
    return panel


def learner(screen: Screen) -> Panel:
    """The learner's speed, stage, losses, and shares of its time."""
    worker, metrics = screen.league.learner, screen.league.metrics
    if worker is None:
        reason = screen.league.trouble or "Waiting for the learner's first report…"
        return _framed(Text(reason, FAINT), "Learner")
    table = _grid({"style": FAINT, "width": 8}, _REST)
    speed, frames = (metrics.get(f"rate/{name}_per_second") for name in ("steps", "frames"))
    speeds = ((marks.count(speed), f"bold {ACCENT}"), ("  frames ", FAINT), marks.count(frames))
    table.add_row("steps/s", Text.assemble(*speeds))
    stage = Text.assemble((worker.mix or "–", "bold"), (f"  {worker.activity}", FAINT))
    table.add_row("stage", stage)
    reward, seconds = (metrics.get(name) for name in ("reward/episode_mean", "match/seconds_mean"))
    length = "" if seconds is None else f"  in matches of {seconds:.1f} s"
    table.add_row("reward", Text.assemble(marks.value(reward), (length, FAINT)))
    for row, fields in _LEARNER_ROWS:
        values = [
            Text.assemble((f"{label} ", FAINT), marks.value(metrics.get(metric)))
            for label, metric in fields
        ]
        table.add_row(row, Text("  ").join(values))
    shares = {
        name[5:-6]: share
        for name, share in sorted(metrics.items(), key=lambda item: -item[1])
        if name.startswith("time/") and name.endswith("_share") and share >= 0.005
    }
    times = " ".join(f"{name} {share * 100:.0f}%" for name, share in shares.items())
    table.add_row("time", times or "–")
    panel = _framed(table, "Learner", worker.player)
    troubles = ", ".join(alarm.title for alarm in alarms_of(metrics))
    if troubles:
        panel.subtitle = Text(f"! {troubles}", POOR)
        panel.border_style = POOR
    return panel


def opponents(screen: Screen, width: int) -> Panel:
    """Win rates in training by kind of opponent, the configured and met mix, clean matches."""
    league = screen.league
    mine = league.learner.player if league.learner else ""
    listed = league.status.shares if league.status else ()
    shares = {share.category: share for share in listed if share.player == mine}
    evaluated = {one.opponent: one for one in league.evaluations}
    names = list(dict.fromkeys([*shares, *league.win_rates, *evaluated]))
    if not names:
        return _framed(Text("No opponents yet.", FAINT), "Opponents")
    heads = ["", "", "wins", "mix›met", *(["clean matches"] if width >= _WIDE else [])]
    table = _grid({}, _REST, _RIGHT, *([_RIGHT] * (len(heads) - 3)))
    table.add_row(*(Text(head, FAINT) for head in heads))
    for name in names:
        won, share = league.win_rates.get(name), shares.get(name)
        style = FAINT if won is None else marks.win_style(won)
        cells: list[RenderableType] = [
            Text(name),
            _bar(won or 0.0, style),
            Text("–" if won is None else marks.percent(won), style),
            Text(
                f"{share.configured * 100:.0f}›{share.realised * 100:.0f}" if share else "", FAINT
            ),
            _evaluated(evaluated.get(name)),
        ]
        table.add_row(*cells[: len(heads)])
    counted = marks.counted(league.snapshots, "snapshot") if league.snapshots else ""
    return _framed(table, "Opponents", counted)


def _evaluated(evaluation: BotEvaluation | None) -> Text:
    if evaluation is None:
        return Text("–", FAINT)
    cell = evaluation.cell
    interval = wilson_interval(cell.wins, cell.games)
    share = cell.wins / cell.games
    bounds = f" [{interval.low * 100:2.0f}–{interval.high * 100:3.0f}]"
    return Text.assemble((marks.percent(share), marks.win_style(share)), (bounds, FAINT))


def leaderboard(screen: Screen, width: int, height: int) -> Panel:
    """The best players, with the newest rated snapshot and the bots always among them."""
    league, is_wide = screen.league, width >= _WIDE
    if not league.ratings:
        line = "Empty until the evaluator has played the first snapshot."
        return _framed(Text(line, FAINT), "Leaderboard")
    heads = ["#", "player", "rating", *(["μ by fit", "W · D · L"] if is_wide else ["wins"])]
    table = _grid({**_RIGHT, "width": 3}, _REST, *([_RIGHT] * (len(heads) - 2)))
    table.add_row(*(Text(head, FAINT) for head in heads))
    shown = league.best(height - 3)
    for rating in shown:
        is_newest = rating.player == league.newest_rated
        is_bot = rating.player.kind is PlayerKind.BOT
        style = f"bold {ACCENT}" if is_newest else BOT if is_bot else ""
        mark = " ‹" if is_newest else " bot" if is_bot else ""
        table.add_row(*_standing(rating, screen, mark, is_wide=is_wide), style=style)
    is_apart = league.fit is not None and any(one.player.name in league.fit.gaps for one in shown)
    legend = [] if is_apart and not is_wide else [marks.counted(len(league.ratings), "player")]
    legend += ["clean matches"] if is_wide and not is_apart else []
    legend += ["‹ newest rated"] if league.newest_rated else []
    legend += ["≠ fit disagrees"] if is_apart else []
    return _framed(table, "Leaderboard", ", ".join(legend))


def _standing(rating: Rating, screen: Screen, mark: str, *, is_wide: bool) -> list[str]:
    """A line of the leaderboard; when wide, with the fit's 95 % interval of the player's μ."""
    name, fit = rating.player.name, screen.league.fit
    found = None if fit is None else fit.intervals.get(name)
    mark += " ≠" if fit is not None and name in fit.gaps else ""
    line = [str(rating.rank), f"{name}{mark}", f"{rating.score:.2f}"]
    if not is_wide:
        return [*line, marks.percent(rating.wins / max(1, rating.games))]
    interval = "–" if found is None else f"{found.low:.1f}–{found.high:.1f}"
    return [*line, interval, f"{rating.wins} · {rating.draws} · {rating.losses}"]


def processes(screen: Screen) -> Panel:
    """The processes with their states and uptimes."""
    table = _grid({}, _REST, _RIGHT, _RIGHT)
    for facts in screen.processes:
        again = f"↻{facts.restarts}" if facts.restarts else ""
        is_up = facts.state is State.RUNNING
        uptime = marks.duration(screen.now - facts.started_at) if is_up else ""
        mark = Text("● ", _STATE_STYLES[facts.state]).append(facts.name, "default")
        doing = Text(_doing(facts, screen), FAINT)
        table.add_row(mark, doing, Text(again, MIDDLING), Text(uptime, FAINT))
    return _framed(table, "Processes")


def _doing(facts: ProcessFacts, screen: Screen) -> str:
    if facts.state is State.WAITING and facts.restart_at:
        return f"restarts in {max(0.0, facts.restart_at - screen.now):.0f} s"
    if facts.state is not State.RUNNING:
        return facts.state.value
    league = screen.league
    if facts.name.startswith("evaluator") and league.evaluator is not None:
        found = league.evaluator
        waiting = f", {len(found.queue)} wait" if found.queue else ""
        total = f"/{found.matches_total}" if found.matches_total else ", a gate"
        return f"{found.current} {found.matches_done}{total}{waiting}" if found.current else "idle"
    if facts.name == "matchmaker" and league.status is not None:
        return f"{league.status.log_position:,} entries, {league.status.open_leases} open"
    return next((one.activity for one in league.workers if one.worker == facts.name), "starting")


def notes(screen: Screen, width: int, height: int) -> Panel:
    """The last events, the newest below."""
    rows: list[Text] = []
    for note in screen.notes[-height:]:
        clock = time.strftime("%H:%M ", time.localtime(note.at))
        for line in textwrap.wrap(note.text, max(10, width - 4 - len(clock))):
            rows.append(Text.assemble((clock, FAINT), (line, POOR if note.is_trouble else "")))
            clock = " " * len(clock)
    return _framed(Group(*rows[-max(1, height - 2) :]), "Events")


def footer(screen: Screen) -> Text:
    """Folders, and how to stop: one line."""
    text = Text(no_wrap=True, overflow="ellipsis")
    if screen.league.trouble:
        return text.append(f" {screen.league.trouble}", POOR)
    text.append(" Ctrl-C", "bold").append(" saves and stops   ", FAINT)
    text.append("logs ", FAINT).append(screen.logs_dir).append("   more ", FAINT)
    return text.append(f"bin/league ratings --run-dir {screen.run_dir}")


def learners(screen: Screen) -> Panel:
    """Each learner's activity, steps and speed, and an exploiter's generation and chances."""
    table = _grid({}, {}, _RIGHT, _RIGHT, _REST)
    workers = {worker.worker: worker for worker in screen.league.workers}
    for name in screen.learners:
        label, worker = Text(name.removeprefix("learner-"), "bold"), workers.get(name)
        if worker is None:
            table.add_row(label, Text("starting", FAINT))
            continue
        speed = worker.metrics.get("rate/steps_per_second")
        table.add_row(
            label,
            Text(worker.activity, FAINT),
            f"{worker.step:,} steps",
            Text("" if speed is None else f"{marks.count(speed)} steps/s", ACCENT),
            _exploiter_text(worker),
        )
    return _framed(table, "Learners")


def _exploiter_text(worker: WorkerStatus) -> Text:
    """An exploiter's chance against its hardest victim, its generation, and the steps in it."""
    metrics = worker.metrics
    if "exploiter/generation" not in metrics:
        return Text("")
    chance = metrics["exploiter/least_chance"]
    return Text.assemble(
        ("  wins ", FAINT),
        (f"{chance * 100:.0f}%", marks.win_style(chance)),
        f", generation {metrics['exploiter/generation']:.0f}",
        (f" for {metrics['exploiter/steps']:,.0f} steps", FAINT),
    )


def view(screen: Screen, width: int, height: int) -> Layout:
    """The whole terminal, of `width` by `height` cells."""
    left = width // 2
    right = width - left
    evaluated = {one.opponent for one in screen.league.evaluations}
    wanted = 3 + max(1, len(evaluated | screen.league.win_rates.keys()))
    top = max(_LEARNER, min(wanted, height // 2)) if height >= 20 else max(3, (height - 5) // 2)
    several = len(screen.learners) + 2 if len(screen.learners) > 1 and height >= 24 else 0
    bottom = max(3, height - _HEADER - top - several - _FOOTER)
    group = min(2 + max(1, len(screen.processes)), max(3, bottom - 3))
    layout = Layout(name="screen")
    layout.split_column(
        Layout(header(screen), size=_HEADER),
        Layout(name="top", size=top),
        *([Layout(learners(screen), size=several)] if several else []),
        Layout(name="bottom", size=bottom),
        Layout(footer(screen), size=_FOOTER),
    )
    layout["top"].split_row(
        Layout(learner(screen), size=left), Layout(opponents(screen, right), size=right)
    )
    layout["bottom"].split_row(
        Layout(leaderboard(screen, left, bottom), size=left), Layout(name="side", size=right)
    )
    layout["side"].split_column(
        Layout(processes(screen), size=group), Layout(notes(screen, right, bottom - group))
    )
    return layout
