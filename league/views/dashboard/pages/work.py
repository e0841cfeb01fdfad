"""Shows forms for operators: to request evaluations, and to train exploiters on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from league.evaluations import OpponentScore, Report
from league.views.dashboard.blocks import (
    Block,
    ago,
    answer,
    choice,
    entry,
    form,
    link,
    player_link,
    suggestions,
)
from league.views.dashboard.source import Source
from league.views.html import Text, joined, section, table, tag

ROWS = 30
STEPS = {"100000": "100,000 steps", "300000": "300,000 steps", "1000000": "1,000,000 steps"}


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    reports = source.reports()[::-1]
    ask = form(
        entry("player", "player", "", names="players", is_needed=True),
        entry("opponents", "opponents, with commas", "", names="players", is_needed=True),
        entry("count", "matches each", "40", is_needed=True),
        action="/evaluate",
        method="post",
        button="Evaluate",
    )
    exploit = form(
        entry("player", "player", "", names="players", is_needed=True),
        choice("steps", "budget", STEPS, "300000"),
        action="/exploit",
        method="post",
        button="Exploit",
    )
    job = source.exploiting
    state = (
        f"{job.what} is being trained." if job.is_running() else "No exploiter is being trained."
    )
    lines = job.last_lines()
    shown = Markup('<pre tabindex="0" aria-label="its output">{}</pre>').format(joined(lines, "\n"))
    return [
        suggestions("players", source.players()),
        *answer(parameters),
        section(
            "Evaluations",
            ask,
            words="The evaluator plays clean matches of a player against the opponents you name.",
        ),
        section(  # drawn again at each refresh, which a form must not be
            "Requested evaluations",
            table(("number", "state", "player", "won–drawn–lost", "done#", "asked by", "at"),
                  [_row(report, source.scores(report)) for report in reports[:ROWS]]),
        ),
        section(
            "Exploit",
            exploit,
            words="An exploiter is trained against the player on this machine, which takes minutes "
            "of one core; how much it wins says how exploitable the player is at least.",
        ),
        section("Exploiter in training", Markup("<p>{}</p>").format(state), shown if lines else ""),
    ]  # fmt: skip


def _score(score: OpponentScore) -> Markup:
    counts = f"{score.wins:,}–{score.draws:,}–{score.losses:,}" if score.matches else "none yet"
    return Markup("{} <span>{}</span>").format(player_link(score.opponent), counts)


def _row(report: Report, scores: Sequence[OpponentScore]) -> tuple[Text, ...]:
    asked = report.evaluation
    return (
        str(asked.number),
        tag(asked.state.value),
        player_link(asked.player),
        joined(map(_score, scores), ", "),
        link(
            f"{report.matches_done:,} of {report.matches_total:,}",
            "/matches",
            player=asked.player,
            book="eval",
        ),
        asked.by,
        ago(asked.at),
    )
