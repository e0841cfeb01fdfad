"""The panels of the terminal view. Each is a pure function of a `Screen` and the cells it may
fill.
"""

from __future__ import annotations

import textwrap
import time

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from league.cluster.crew import ProcessFacts, State
from league.metrics import wilson_interval
from league.players import PlayerKind, Rating
from league.runs.alarms import of_metrics as alarms_of
from league.views.terminal import marks
from league.views.terminal.facts import Exam, Screen
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


def framed(content: RenderableType, title: str, subtitle: str = "") -> Panel:
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


def grid(*columns: dict[str, object]) -> Table:
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
    panel = framed(Group(place, line), "KUMITE")
    style = GOOD if screen.phase == "training" else MIDDLING
    panel.subtitle = Text.assemble(("● ", style), screen.phase)
    panel.border_style = ACCENT
    return panel


def learner(screen: Screen, width: int) -> Panel:
    """How the learner learns: speed, stage, losses, where its time goes."""
    worker, metrics = screen.league.learner, screen.league.metrics
    if worker is None:
        reason = screen.league.trouble or "Waiting for the learner's first word…"
        return framed(Text(reason, FAINT), "Learner")
    inner = width - 4
    speed = marks.count(metrics.get("rate/steps_per_second", float("nan")))
    frames = marks.count(metrics.get("rate/frames_per_second", float("nan")))
    table = grid({"style": FAINT, "width": 8}, {"ratio": 1})
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
    panel = framed(table, "Learner", worker.player)
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
    """Win rate in training by kind of opponent, the mix as set and as played, clean matches
    beside.
    """
    league = screen.league
    mine = league.learner.player if league.learner else ""
    told = league.status.shares if league.status else ()
    shares = {share.category: share for share in told if share.player == mine}
    names = list(dict.fromkeys([*shares, *league.win_rates]))
    exams = {exam.opponent: exam for exam in league.exams}
    names += [name for name in exams if name not in names]
    if not names:
        return framed(Text("Nobody has been met yet.", FAINT), "Opponents")
    is_wide = width >= 56
    widths = _opponent_widths(width - 4, is_wide, max(map(len, names)))
    sides = ("left", "left", "right", "left", "right", "right")
    table = grid(*({"width": w, "justify": side} for w, side in zip(widths, sides, strict=False)))
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
            _examined(exams.get(name)),
        ]
        table.add_row(*cells[: len(widths)])
    return framed(
        table, "Opponents", marks.counted(league.snapshots, "snapshot") if league.snapshots else ""
    )


def _opponent_widths(inner: int, is_wide: bool, longest: int) -> list[int]:
    """Cells for name, bar, percentage, sparkline, mix and (when wide) clean matches."""
    name, number, mix, clean = min(longest, 14 if is_wide else 9), 4, 7, 14
    room = inner - name - number - mix - 4 - (clean + 1 if is_wide else 0)
    spark = max(1, room // 2)
    return [name, max(1, room - spark), number, spark, mix, *([clean] if is_wide else [])]


def _examined(exam: Exam | None) -> Text:
    cell = exam.sampled if exam is not None else None
    if cell is None or not cell.games:
        return Text("–", FAINT)
    interval = wilson_interval(cell.wins, cell.games)
    share = cell.wins / cell.games
    return Text.assemble(
        (marks.percent(share), marks.win_style(share)),
        (f" [{interval.low * 100:2.0f}–{interval.high * 100:3.0f}]", FAINT),
    )


def leaderboard(screen: Screen, width: int, height: int) -> Panel:
    """The best players, and always the newest of the rated snapshots and the bots, as far as
    they fit.
    """
    ratings = screen.league.ratings
    if not ratings:
        line = "Empty until the evaluator has played the first snapshot."
        return framed(Text(line, FAINT), "Leaderboard")
    newest = newest_snapshot(ratings)
    is_wide = width >= 56
    columns: list[dict[str, object]] = [{"justify": "right", "width": 3}, {"ratio": 1}]
    columns += [{"justify": "right"}] * (3 if is_wide else 2)
    table = grid(*columns)
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
    opinion = screen.league.opinion
    is_apart = opinion is not None and any(rating.player.name in opinion.gaps for rating in shown)
    legend = [] if is_apart and not is_wide else [marks.counted(len(ratings), "player")]
    legend += ["clean matches"] if is_wide and not is_apart else []
    legend += ["‹ newest rated"] if newest else []
    legend += ["≠ fit disagrees"] if is_apart else []
    return framed(table, "Leaderboard", ", ".join(legend))


def _standing(rating: Rating, screen: Screen, *, is_newest: bool, is_wide: bool) -> list[str]:
    """A line of the leaderboard; when wide, with the fit's 95 % interval of the player's μ."""
    player, opinion = rating.player, screen.league.opinion
    name = f"{player.name}{' ‹' if is_newest else ' bot' if player.kind is PlayerKind.BOT else ''}"
    found = None if opinion is None else opinion.intervals.get(player.name)
    name += " ≠" if opinion is not None and player.name in opinion.gaps else ""
    line = [str(rating.rank), name, f"{rating.score:.2f}"]
    if not is_wide:
        return [*line, marks.percent(rating.wins / max(1, rating.games))]
    interval = "–" if found is None else f"{found.low:.1f}–{found.high:.1f}"
    return [*line, interval, f"{rating.wins} · {rating.draws} · {rating.losses}"]


def chosen(ratings: tuple[Rating, ...], newest: str, room: int) -> list[Rating]:
    """At most `room` of `ratings`: the newest and the bots first, then from the top; kept in
    order.
    """
    wanted = [r for r in ratings if r.player.name == newest]
    wanted += [r for r in ratings if r.player.kind is PlayerKind.BOT]
    wanted += [r for r in ratings if r not in wanted]
    kept = {rating.player.name for rating in wanted[: max(1, room)]}
    return [rating for rating in ratings if rating.player.name in kept]


def processes(screen: Screen) -> Panel:
    """Which process is in which state, since when."""
    table = grid({}, {"ratio": 1}, {"justify": "right"}, {"justify": "right"})
    for facts in screen.processes:
        again = f"↻{facts.restarts}" if facts.restarts else ""
        uptime = (
            marks.duration(screen.now - facts.started_at) if facts.state is State.RUNNING else ""
        )
        mark = Text("● ", _STATE_STYLES[facts.state]).append(facts.name, "default")
        doing = _doing(facts, screen)
        table.add_row(mark, Text(doing, FAINT), Text(again, MIDDLING), Text(uptime, FAINT))
    return framed(table, "Processes")


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
    """What happened last, newest below."""
    rows: list[Text] = []
    for note in screen.notes[-height:]:
        clock = time.strftime("%H:%M ", time.localtime(note.at))
        wrapped = textwrap.wrap(note.text, max(10, width - 4 - len(clock)))
        for number, line in enumerate(wrapped):
            style = POOR if note.is_trouble else ""
            rows.append(
                Text.assemble((clock if number == 0 else " " * len(clock), FAINT), (line, style))
            )
    return framed(Group(*rows[-max(1, height - 2) :]), "Events")


def footer(screen: Screen) -> Text:
    """Where things are, and how to stop: one line."""
    text = Text(no_wrap=True, overflow="ellipsis")
    if screen.league.trouble:
        return text.append(f" {screen.league.trouble}", POOR)
    text.append(" Ctrl-C", "bold").append(" saves and stops   ", FAINT)
    text.append("logs ", FAINT).append(screen.logs_dir).append("   more ", FAINT)
    return text.append(f"bin/league ratings --run-dir {screen.run_dir}")
