"""The terminal view: panels that are pure functions of a `Screen` and of the cells they fill."""

from __future__ import annotations

import textwrap
import time

from rich import box
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from league.metrics import wilson_interval
from league.players import PlayerKind, Rating, WorkerStatus
from league.runs.alarms import of_metrics as alarms_of
from league.views.terminal import marks
from league.views.terminal.facts import BotEvaluation, ProcessFacts, Screen, State
from league.views.terminal.marks import ACCENT, BOT, FAINT, GOOD, MIDDLING, POOR
from league.views.terminal.reader import newest_snapshot

_TIME_SHARES = {
    "game": "bright_blue",
    "inference": "magenta",
    "opponents": "yellow",
    "learning": "green",
    "waiting": "red",
    "references": "cyan",
}
_STATE_STYLES = {
    State.RUNNING: GOOD,
    State.WAITING: MIDDLING,
    State.STOPPING: MIDDLING,
    State.DONE: ACCENT,
    State.STOPPED: FAINT,
    State.KILLED: POOR,
    State.FAILED: POOR,
}


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


def _grid(*columns: dict[str, object]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    for column in columns:
        table.add_column(no_wrap=True, overflow="ellipsis", **column)  # type: ignore[arg-type]
    return table


def header(screen: Screen, width: int) -> Panel:
    """Run, device, progress and time left: two lines."""
    place = Text(no_wrap=True, overflow="ellipsis")
    place.append(screen.preset, f"bold {ACCENT}").append("  ").append(screen.run_dir, "bold")
    place.append("  " + screen.device, FAINT)
    share = screen.done_share
    words = Text(no_wrap=True, overflow="ellipsis")
    target = f" of {screen.target_steps:,}" if screen.target_steps else ""
    words.append(f" {share * 100:.1f} % ", "bold").append(f" {screen.steps:,}{target} steps ")
    words.append(f" {marks.duration(screen.now - screen.started_at)} ", FAINT)
    if screen.phase == "training" and screen.seconds_left is not None:
        words.append(f" {marks.duration(screen.seconds_left)} left", ACCENT)
    line = marks.bar(share, max(10, width - 4 - words.cell_len)).append_text(words)
    panel = _framed(Group(place, line), "KUMITE")
    style = GOOD if screen.phase == "training" else MIDDLING
    panel.subtitle = Text.assemble(("● ", style), screen.phase)
    panel.border_style = ACCENT
    return panel


def learner(screen: Screen, width: int) -> Panel:
    """The learner's speed, stage, losses, and shares of its time."""
    worker, metrics = screen.league.learner, screen.league.metrics
    if worker is None:
        reason = screen.league.trouble or "Waiting for the learner's first report…"
        return _framed(Text(reason, FAINT), "Learner")
    inner = width - 4
    speed = marks.count(metrics.get("rate/steps_per_second", float("nan")))
    frames = marks.count(metrics.get("rate/frames_per_second", float("nan")))
    table = _grid({"style": FAINT, "width": 8}, {"ratio": 1})
    line = Text.assemble((speed, f"bold {ACCENT}"), ("  frames ", FAINT), frames, "  ")
    spark = marks.sparkline(screen.league.speeds, inner - 9 - line.cell_len)
    table.add_row("steps/s", line.append(spark, ACCENT))
    stage = Text.assemble((worker.mix or "–", "bold"), (f"  {worker.activity}", FAINT))
    table.add_row("stage", stage)
    table.add_row("reward", _reward(screen))
    for name, fields in _LEARNER_ROWS:
        values = Text("  ").join(_measure(label, metrics.get(metric)) for label, metric in fields)
        table.add_row(name, values)
    table.add_row("time", _time_shares(screen, inner - 9))
    panel = _framed(table, "Learner", worker.player)
    troubles = ", ".join(alarm.title for alarm in alarms_of(metrics))
    if troubles:
        panel.subtitle = Text(f"! {troubles}", POOR)
        panel.border_style = POOR
    return panel


_LEARNER_ROWS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("loss", (("policy", "loss/policy"), ("value", "loss/value"))),
    ("policy", (("entropy", "policy/entropy"), ("KL", "policy/approx_kl"))),
    ("", (("clipped", "policy/clip_fraction"), ("rate", "learning/rate"))),
    ("value", (("explained variance", "value/explained_variance"),)),
)


def _measure(label: str, number: float | None) -> Text:
    return Text.assemble((f"{label} ", FAINT), marks.value(number))


def _reward(screen: Screen) -> Text:
    metrics = screen.league.metrics
    line = Text(marks.value(metrics.get("reward/episode_mean")))
    seconds = metrics.get("match/seconds_mean")
    return line if seconds is None else line.append(f"  in matches of {seconds:.1f} s", FAINT)


def _time_shares(screen: Screen, width: int) -> Text:
    metrics = screen.league.metrics
    parts = [
        (name, metrics.get(f"time/{name}_share", 0.0), style)
        for name, style in _TIME_SHARES.items()
    ]
    if not any(share for _, share, _ in parts):
        return Text("–", FAINT)
    line = marks.stacked_bar(
        [(share, style) for _, share, style in parts], 10 if width >= 60 else 5
    )
    for name, share, style in sorted(parts, key=lambda part: -part[1]):
        word = Text.assemble(" ", (name, style), f" {share * 100:.0f}")
        if line.cell_len + word.cell_len > width or share < 0.005:
            break
        line.append_text(word)
    return line


def opponents(screen: Screen, width: int) -> Panel:
    """Win rates in training by kind of opponent, the configured and met mix, clean matches."""
    league = screen.league
    mine = league.learner.player if league.learner else ""
    listed = league.status.shares if league.status else ()
    shares = {share.category: share for share in listed if share.player == mine}
    names = list(dict.fromkeys([*shares, *league.win_rates]))
    evaluated = {one.opponent: one for one in league.evaluations}
    names += [name for name in evaluated if name not in names]
    if not names:
        return _framed(Text("No opponents yet.", FAINT), "Opponents")
    is_wide = width >= 56
    widths = _opponent_widths(width - 4, is_wide, max(map(len, names)))
    sides = ("left", "left", "right", "left", "right", "right")
    table = _grid(*({"width": w, "justify": side} for w, side in zip(widths, sides, strict=False)))
    heads = ["", "wins", "", "", "mix›met", "clean matches"]
    table.add_row(*(Text(head, FAINT) for head in heads[: len(widths)]))
    for name in names:
        series = league.win_rates.get(name, ())
        recent = series[-1] if series else None
        style = marks.win_style(recent or 0.0) if series else FAINT
        share = shares.get(name)
        cells = [
            Text(name),
            marks.bar(recent or 0.0, widths[1], style),
            Text(marks.percent(recent) if recent is not None else "–", style),
            Text(marks.sparkline(series, widths[3], high=1.0), style),
            Text(
                f"{share.configured * 100:.0f}›{share.realised * 100:.0f}" if share else "", FAINT
            ),
            _evaluated(evaluated.get(name)),
        ]
        table.add_row(*cells[: len(widths)])
    return _framed(
        table, "Opponents", marks.counted(league.snapshots, "snapshot") if league.snapshots else ""
    )


def _opponent_widths(inner: int, is_wide: bool, longest: int) -> list[int]:
    """Cells for name, bar, percentage, sparkline, mix and (when wide) clean matches."""
    name, number, mix, clean = min(longest, 14 if is_wide else 9), 4, 7, 14
    room = inner - name - number - mix - 4 - (clean + 1 if is_wide else 0)
    spark = max(1, room // 2)
    return [name, max(1, room - spark), number, spark, mix, *([clean] if is_wide else [])]


def _evaluated(evaluation: BotEvaluation | None) -> Text:
    cell = evaluation.sampled if evaluation is not None else None
    if cell is None or not cell.games:
        return Text("–", FAINT)
    interval = wilson_interval(cell.wins, cell.games)
    share = cell.wins / cell.games
    return Text.assemble(
        (marks.percent(share), marks.win_style(share)),
        (f" [{interval.low * 100:2.0f}–{interval.high * 100:3.0f}]", FAINT),
    )


def leaderboard(screen: Screen, width: int, height: int) -> Panel:
    """The best players, with the newest rated snapshot and the bots always among them."""
    ratings = screen.league.ratings
    if not ratings:
        line = "Empty until the evaluator has played the first snapshot."
        return _framed(Text(line, FAINT), "Leaderboard")
    newest = newest_snapshot(ratings)
    is_wide = width >= 56
    columns: list[dict[str, object]] = [{"justify": "right", "width": 3}, {"ratio": 1}]
    columns += [{"justify": "right"}] * (3 if is_wide else 2)
    table = _grid(*columns)
    heads = [
        "#",
        "player",
        "rating",
        *(["μ by fit"] if is_wide else []),
        "W · D · L" if is_wide else "wins",
    ]
    table.add_row(*(Text(head, FAINT) for head in heads))
    shown = chosen(ratings, newest.name if newest else "", height - 3)
    for rating in shown:
        is_newest = newest is not None and rating.player.name == newest.name
        is_bot = rating.player.kind is PlayerKind.BOT
        style = f"bold {ACCENT}" if is_newest else BOT if is_bot else ""
        table.add_row(*_standing(rating, screen, is_newest=is_newest, is_wide=is_wide), style=style)
    fit = screen.league.fit
    is_apart = fit is not None and any(rating.player.name in fit.gaps for rating in shown)
    legend = [] if is_apart and not is_wide else [marks.counted(len(ratings), "player")]
    legend += ["clean matches"] if is_wide and not is_apart else []
    legend += ["‹ newest rated"] if newest else []
    legend += ["≠ fit disagrees"] if is_apart else []
    return _framed(table, "Leaderboard", ", ".join(legend))


def _standing(rating: Rating, screen: Screen, *, is_newest: bool, is_wide: bool) -> list[str]:
    """A line of the leaderboard; when wide, with the fit's 95 % interval of the player's μ."""
    player, fit = rating.player, screen.league.fit
    name = f"{player.name}{' ‹' if is_newest else ' bot' if player.kind is PlayerKind.BOT else ''}"
    found = None if fit is None else fit.intervals.get(player.name)
    name += " ≠" if fit is not None and player.name in fit.gaps else ""
    line = [str(rating.rank), name, f"{rating.score:.2f}"]
    if not is_wide:
        return [*line, marks.percent(rating.wins / max(1, rating.games))]
    interval = "–" if found is None else f"{found.low:.1f}–{found.high:.1f}"
    return [*line, interval, f"{rating.wins} · {rating.draws} · {rating.losses}"]


def chosen(ratings: tuple[Rating, ...], newest: str, room: int) -> list[Rating]:
    """At most `room` of `ratings`: the newest snapshot and the bots first, then the best."""
    wanted = [r for r in ratings if r.player.name == newest]
    wanted += [r for r in ratings if r.player.kind is PlayerKind.BOT]
    wanted += [r for r in ratings if r not in wanted]
    kept = {rating.player.name for rating in wanted[: max(1, room)]}
    return [rating for rating in ratings if rating.player.name in kept]


def processes(screen: Screen) -> Panel:
    """The processes with their states and uptimes."""
    table = _grid({}, {"ratio": 1}, {"justify": "right"}, {"justify": "right"})
    for facts in screen.processes:
        again = f"↻{facts.restarts}" if facts.restarts else ""
        uptime = (
            marks.duration(screen.now - facts.started_at) if facts.state is State.RUNNING else ""
        )
        mark = Text("● ", _STATE_STYLES[facts.state]).append(facts.name, "default")
        doing = _doing(facts, screen)
        table.add_row(mark, Text(doing, FAINT), Text(again, MIDDLING), Text(uptime, FAINT))
    return _framed(table, "Processes")


def _doing(facts: ProcessFacts, screen: Screen) -> str:
    if facts.state is State.WAITING and facts.restart_at:
        return f"restarts in {max(0.0, facts.restart_at - screen.now):.0f} s"
    if facts.state is not State.RUNNING:
        return facts.state.value
    evaluator = screen.league.evaluator
    if facts.name.startswith("evaluator") and evaluator is not None:
        if not evaluator.current:
            return "idle"
        waiting = f", {len(evaluator.queue)} wait" if evaluator.queue else ""
        total = f"/{evaluator.matches_total}" if evaluator.matches_total else ", a gate"
        return f"{evaluator.current} {evaluator.matches_done}{total}{waiting}"
    status = screen.league.status
    if facts.name == "matchmaker" and status is not None:
        return f"{status.log_position:,} entries, {status.open_leases} open"
    workers = status.workers if status is not None else ()
    return next((worker.activity for worker in workers if worker.worker == facts.name), "starting")


def notes(screen: Screen, width: int, height: int) -> Panel:
    """The last events, the newest below."""
    rows: list[Text] = []
    for note in screen.notes[-height:]:
        clock = time.strftime("%H:%M ", time.localtime(note.at))
        wrapped = textwrap.wrap(note.text, max(10, width - 4 - len(clock)))
        for number, line in enumerate(wrapped):
            style = POOR if note.is_trouble else ""
            rows.append(
                Text.assemble((clock if number == 0 else " " * len(clock), FAINT), (line, style))
            )
    return _framed(Group(*rows[-max(1, height - 2) :]), "Events")


def footer(screen: Screen) -> Text:
    """Folders, and how to stop: one line."""
    text = Text(no_wrap=True, overflow="ellipsis")
    if screen.league.trouble:
        return text.append(f" {screen.league.trouble}", POOR)
    text.append(" Ctrl-C", "bold").append(" saves and stops   ", FAINT)
    text.append("logs ", FAINT).append(screen.logs_dir).append("   more ", FAINT)
    return text.append(f"bin/league ratings --run-dir {screen.run_dir}")


def learners(screen: Screen, width: int) -> Panel:
    """Each learner's activity, steps and speed, and an exploiter's generation and chances."""
    right: dict[str, object] = {"justify": "right"}
    table = _grid({}, {}, right, right, {"ratio": 1})
    workers = {worker.worker: worker for worker in screen.league.workers}
    for name in screen.learners:
        worker = workers.get(name)
        label = Text(name.removeprefix("learner-"), "bold")
        if worker is None:
            table.add_row(label, Text("starting", FAINT), "", "", "")
            continue
        table.add_row(label, Text(worker.activity, FAINT), *_numbers(worker))
    return _framed(table, "Learners")


def _numbers(worker: WorkerStatus) -> tuple[Text, Text, Text]:
    metrics = worker.metrics
    speed = metrics.get("rate/steps_per_second")
    return (
        Text(f"{worker.step:,} steps"),
        Text(f"{marks.count(speed)} steps/s" if speed is not None else "", ACCENT),
        _exploiter_text(worker),
    )


def _exploiter_text(worker: WorkerStatus) -> Text:
    """An exploiter's chance against its hardest victim, its generation, and the steps in it."""
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


_HEADER, _LEARNER, _FOOTER = 4, 10, 1


def view(screen: Screen, width: int, height: int) -> Layout:
    """The whole terminal.

    Args:
        screen: what to show.
        width, height: cells of the terminal.
    """
    left = width // 2
    right = width - left
    wanted = 3 + max(1, len(screen.league.win_rates), len(screen.league.evaluations))
    top = max(_LEARNER, min(wanted, height // 2)) if height >= 20 else max(3, (height - 5) // 2)
    several = len(screen.learners) + 2 if len(screen.learners) > 1 and height >= 24 else 0
    bottom = max(3, height - _HEADER - top - several - _FOOTER)
    group = min(2 + max(1, len(screen.processes)), max(3, bottom - 3))
    layout = Layout(name="screen")
    layout.split_column(
        Layout(header(screen, width), name="header", size=_HEADER),
        Layout(name="top", size=top),
        *([Layout(learners(screen, width), name="learners", size=several)] if several else []),
        Layout(name="bottom", size=bottom),
        Layout(footer(screen), name="footer", size=_FOOTER),
    )
    layout["top"].split_row(
        Layout(learner(screen, left), name="learner", size=left),
        Layout(opponents(screen, right), name="opponents", size=right),
    )
    layout["bottom"].split_row(
        Layout(leaderboard(screen, left, bottom), name="leaderboard", size=left),
        Layout(name="side", size=right),
    )
    layout["side"].split_column(
        Layout(processes(screen), name="processes", size=group),
        Layout(notes(screen, right, bottom - group), name="notes"),
    )
    return layout
