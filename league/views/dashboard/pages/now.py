"""Shows the processes, their speed, and alarms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from markupsafe import Markup

from league.console.text import long_duration, percent, speed, when
from league.metrics import wilson_interval
from league.runs.alarms import of_metrics as alarms_of
from league.status import SILENT_SECONDS, WorkerStatus
from league.views.dashboard.blocks import Block, link, paused, player_link, wins_bar
from league.views.dashboard.source import Source
from league.views.facts import MEASURED, LeagueFacts
from league.views.html import Text, facts, joined, section, table, tag, text

SHOWN_EVENTS = 20


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    league = source.facts
    return [
        _progress(league),
        _alarms(league),
        _processes(league),
        *([_learner(league), _opponents(league)] if league.learner else []),
        _events(source),
    ]


def _progress(league: LeagueFacts) -> Block:
    status, metrics = league.status, league.metrics
    target = f" of {league.target_steps:,}" if league.target_steps else ""
    numbers = {
        "steps" + target: f"{league.steps:,}",
        "steps/s": f"{metrics.get('rate/steps_per_second', 0.0):,.0f}",
        "left": long_duration(metrics.get("progress/seconds_left", 0.0)),
        "stage": (league.learner.mix if league.learner else "") or "–",
        "results": f"{status.log_position if status else 0:,}",
        "active snapshots": f"{league.snapshots:,}",
        "newest": player_link(league.newest) if league.newest else "–",
    }
    if league.learner is None or (status and not status.is_running(league.learner)):
        del numbers["steps/s"], numbers["left"]
    share = min(1.0, league.steps / league.target_steps) if league.target_steps else 0.0
    bar = Markup('<progress max="1" value="{:.4f}" aria-label="steps done"></progress> {}').format(
        share, percent(share)
    )
    trouble = (
        Markup('<p class="alarm">{}</p>').format(text(league.trouble)) if league.trouble else ""
    )
    words: Text = ""
    if status and status.pause:
        resumed = link("resume the learners", "/mix")
        words = joined([f"{paused(status.pause)} Operators ", resumed, "."])
    return section("Progress", trouble, bar, facts(numbers), words=words)


def _alarms(league: LeagueFacts) -> Block:
    sentences, words = [alarm.sentence for alarm in alarms_of(league.metrics)], ""
    if league.status is not None:
        now, workers = league.status.vitals.now, league.workers
        quiet = min((now - worker.last_beat_at for worker in workers), default=0.0)
        if quiet > SILENT_SECONDS:
            last = long_duration(quiet)
            words = f"The run has ended or stands still. Its processes last reported {last} ago."
        sentences += [
            f"{worker.worker} hangs or has ended: it last reported "
            f"{long_duration(now - worker.last_beat_at)} ago."
            for worker in workers
            if not words and league.status.is_silent(worker)
        ]
        sentences += [worker.trouble for worker in league.workers if worker.trouble]
        sentences += [league.status.vitals.trouble] if league.status.vitals.trouble else []
    if not sentences:
        return section("Alarms", words=words or Markup('<span class="well">None.</span>'))
    alarms = (Markup('<p class="alarm">{}</p>').format(text(sentence)) for sentence in sentences)
    return section("Alarms", *alarms, words=words)


def _processes(league: LeagueFacts) -> Block:
    status, rows = league.status, list[tuple[Text, ...]]()
    if status is not None:
        doing = f"{status.log_position:,} results, {status.open_leases:,} leases open"
        rows.append(("matchmaker", doing, "", "", "", "now"))
    for worker in league.workers:
        rows.append(tuple(_row(worker, league)))
    words = "What each process does, what it waits for, and when it was last heard from."
    headings = ("process", "does", "steps#", "speed#", "waits#", "heard")
    return section("Processes", table(headings, rows), words=words)


def _row(worker: WorkerStatus, league: LeagueFacts) -> Iterator[str | Markup]:
    assert league.status is not None
    metrics, ago = worker.metrics, league.status.vitals.now - worker.last_beat_at
    yield joined(
        [worker.worker, tag("silent", "bad") if league.status.is_silent(worker) else ""], " "
    )
    yield f"{worker.activity} ({worker.mix})" if worker.mix else worker.activity or "–"
    yield f"{worker.step:,}" if worker.player else ""
    yield speed(metrics)
    waiting = metrics.get("time/waiting_share")
    yield "" if waiting is None else f"{percent(waiting)} of its time"
    yield f"{long_duration(max(0.0, ago))} ago" if ago < 86400 else when(worker.last_beat_at)


def _learner(league: LeagueFacts) -> Block:
    metrics, rows = league.metrics, []
    for row, *numbers in MEASURED:
        for label, metric, shape in numbers:
            if metric in metrics:
                name = f"{label} loss" if row == "loss" else label or row
                rows.append((name, f"{metrics[metric]:{shape}}"))
    shares = sorted(
        ((share, name[5:-6]) for name, share in metrics.items() if name.startswith("time/")),
        reverse=True,
    )
    spent = [(f"time in {name}", percent(share)) for share, name in shares if share >= 0.005]
    assert league.learner is not None
    return section(f"Learner {league.learner.player}", facts(dict(rows + spent)), half=True)


def _opponents(league: LeagueFacts) -> Block:
    assert league.learner is not None
    listed = league.status.shares if league.status else ()
    shares = {share.category: share for share in listed if share.player == league.learner.player}
    clean = {cell.column: cell for cell in league.evaluations}
    rows = []
    for name in dict.fromkeys([*shares, *league.win_rates, *clean]):
        won, share, cell = league.win_rates.get(name), shares.get(name), clean.get(name)
        bounds = ""
        if cell:
            interval = wilson_interval(cell.wins, cell.games)
            bounds = f"{percent(interval.low)} to {percent(interval.high)}"
        rows.append(
            (
                name,
                percent(share.configured) if share else "",
                percent(share.realised) if share else "",
                percent(won),
                wins_bar(cell.wins, cell.games) if cell else "",
                bounds,
            )
        )
    headings = ("opponent", "set#", "met#", "wins in training#", "clean wins", "95 % interval")
    return section("Opponents", table(headings, rows), half=True)


def _events(source: Source) -> Block:
    rows = [(_clock(event.at), event.text) for event in source.events()[:SHOWN_EVENTS]]
    return section("Events", table(("at", "what happened"), rows))


def _clock(seconds: float) -> str:
    """Returns the time of the day, with the date unless it is today."""
    at = time.localtime(seconds)
    is_today = at[:3] == time.localtime()[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M:%S", at)
