"""Shows the best player, a live match, highlights, the processes, their speed, and alarms."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from league.console.text import long_duration, percent, speed
from league.ids import lineage_of
from league.metrics import wilson_interval
from league.players import Rating
from league.runs.alarms import of_metrics as alarms_of
from league.stats.ratings.elo import PER_POINT, SIGMAS
from league.status import SILENT_SECONDS, WorkerStatus
from league.views.dashboard.blocks import Block, ago, link, paused, player_link, wins_bar
from league.views.dashboard.source import Source
from league.views.facts import MEASURED, LeagueFacts
from league.views.html import Text, facts, joined, section, table, tag, text

SHOWN_EVENTS = 20
SHOWN_HIGHLIGHTS = 6
LIVE_SECONDS = 120.0
"""A match that ended longer ago than this is not called live."""
VIEWER = Markup(
    '<div class="viewer" data-live><div class="screen"><canvas data-part="screen" role="img" '
    'aria-label="the match"></canvas><span data-part="count" role="status" data-wait>The '
    "evaluator's first match appears here.</span></div>"
    '<div class="film"><span data-part="state"></span><button data-part="toggle">pause</button>'
    '<a class="button" data-part="replay" href="matches">whole match</a></div></div>'
)
"""The element in which static/viewer.js plays each new match."""


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    league = source.facts
    return [
        _progress(league),
        *([*_live(source), _highlights(source)] if source.run_dir else []),
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
    words: list[Text] = [_best(league.ratings), " "]
    if "left" in numbers and metrics.get("progress/seconds_left"):
        words.append(f"The training takes about {numbers['left']} longer. ")
    elif share == 1.0:
        words.append("The training is done. ")
    if status and status.pause:
        resumed = link("resume the learners", "/mix")
        words += [f"{paused(status.pause)} Operators ", resumed, ". "]
    fight = Markup(' <a class="button" href="play">Fight now</a>')
    return section("Progress", trouble, bar, fight, facts(numbers), words=joined(words))


def _best(ratings: Sequence[Rating]) -> Text:
    """Returns a sentence on the best player: its age, and its lead over the best player of another
    lineage.

    The lead over snapshots of the same learner would say little, because they are very similar.
    """
    best = next(iter(ratings), None)
    if best is None:
        return "No member has a rating yet: the first snapshot gets one within a few minutes."
    lineage = lineage_of(best.player.name)
    second = next((one for one in ratings if lineage_of(one.player.name) != lineage), None)
    age = long_duration(max(0.0, time.time() - best.player.created_at))
    words: list[Text] = [player_link(best.player.name), " is the best member. It joined "]
    words.append(f"{age} ago")
    if second is not None:
        lead = PER_POINT * (best.mu - second.mu)
        half = PER_POINT * SIGMAS * math.hypot(best.sigma, second.sigma)
        other, margin = (
            player_link(second.player.name),
            f"{abs(lead):.0f} ± {half:.0f} Elo (2 sigma)",
        )
        if lead >= 0.0:
            words += [f" and is {margin} above ", other]
            words += [", but this lead is not sure yet"] if half > lead else []
        else:
            words += [
                " and ranks above ",
                other,
                f", whose rating is higher ({margin}) but less sure",
            ]
    return joined([*words, "."])


def _live(source: Source) -> list[Block]:
    """Returns the section with the newest match, or [] if no match will ever appear there."""
    found = source.shown()
    if found is None and not source.is_served():
        return []
    is_live = found is None or time.time() - found.at < LIVE_SECONDS
    words = "The end of a match that the evaluator has just played, some two or three a minute."
    if not is_live:
        words = "The end of the last match that the evaluator has shown."
    return [section("Live match" if is_live else "Last match", VIEWER, words=words, half=True)]


def _highlights(source: Source) -> Block:
    from league.replay.highlights import WIN, WORDS

    kept, rows = source.replays(), list[tuple[Text, ...]]()
    for found in source.highlights():
        if found.kind in WORDS and found.match_id in kept and len(rows) < SHOWN_HIGHLIGHTS:
            names = joined(map(player_link, found.names), " against ")
            won = f"{found.winner} wins" if found.winner else "a draw"
            words = f"{won}{' ' if found.kind == 'win' else ', '}{found.words}"
            ago = f"{long_duration(max(0.0, time.time() - found.at))} ago"
            title = WORDS[found.kind].capitalize()
            if found.kind == WIN:
                newest = source.facts.newest
                who = "the newest agent" if found.winner == newest else found.winner
                bot = found.names[found.names[0] == found.winner]
                title = f"Win of {who} over its hardest bot: {bot}"
            replay = link(f"▶ {title}", "/match", match=found.match_id)
            rows.append((replay, joined([names, Markup("<br>"), words, " · ", ago])))
    more = link("more replays", "/matches", replays="kept")
    words = joined(["The run keeps these matches, next to ", more, "."])
    return section("Highlights", table(("", ""), rows), words=words, half=True)


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
        rows.append(("matchmaker", doing, "", "", "", "now", ""))
    has_nodes = status is not None and status.has_nodes
    for worker in league.workers:
        rows.append((*_row(worker, league), worker.node))
    words = "What each process does, what it waits for, and when it was last heard from."
    headings = ("process", "does", "steps#", "speed#", "waits#", "heard", "node")
    if not has_nodes:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    return section("Processes", table(headings, rows), words=words)


def _row(worker: WorkerStatus, league: LeagueFacts) -> Iterator[Text]:
    assert league.status is not None
    metrics = worker.metrics
    yield joined(
        [worker.worker, tag("silent", "bad") if league.status.is_silent(worker) else ""], " "
    )
    yield f"{worker.activity} ({worker.mix})" if worker.mix else worker.doing or "–"
    yield f"{worker.step:,}" if worker.player else ""
    yield speed(metrics)
    waiting = metrics.get("time/waiting_share")
    yield "" if waiting is None else f"{percent(waiting)} of its time"
    yield ago(worker.last_beat_at, league.status.vitals.now)


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
            bounds = f"{100 * interval.low:.0f} to {100 * interval.high:.0f} %"
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
    headings = ("opponent", "set#", "met#", "wins in training#", "clean wins", "95 % interval#")
    return section("Opponents", table(headings, rows), half=True)


def _events(source: Source) -> Block:
    rows = [(ago(event.at), event.text) for event in source.events()[:SHOWN_EVENTS]]
    return section("Events", table(("at", "what happened"), rows))
