"""Shows the learners' opponents: configured, expected and realised shares, and expected scores next
to the actual scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from league.console.text import percent
from league.players import CATEGORIES, PlayerKind
from league.status import LeagueStatus, Share
from league.views.dashboard.blocks import (
    GRID,
    Block,
    Chart,
    ago,
    answer,
    choice,
    entry,
    form,
    link,
    paused,
    suggestions,
)
from league.views.dashboard.source import Source
from league.views.html import joined, section, table
from league.views.style import SCREEN_PALETTE

KINDS = ("self", "snapshots", "exploiters", "bots")


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    status = source.status()
    shares = status.shares
    blocks = answer(parameters)
    for player in dict.fromkeys(share.player for share in shares):
        of_player = [share for share in shares if share.player == player]
        is_changed = any(change.mix == of_player[0].mix for change in status.changes)
        blocks += [_bars(player, of_player), _table(player, of_player, is_changed)]
        if parameters.get("count") == player:
            blocks.append(_foreseen(player, source.met(player)))
        elif source.run_dir is not None:
            words = "Expected against played scores are counted from the whole log: "
            counted = link("count them", "/mix", count=player)
            blocks.append(section(f"What {player} met", words=joined([words, counted])))
    if not shares:
        blocks.append(section("Opponent mix", words="No learner has drawn an opponent yet."))
    return [*blocks, *_change(source, status), *_pause(status)]


def _change(source: Source, status: LeagueStatus) -> list[Block]:
    """Returns the newest change of each mix, and a form with which operators change a mix."""
    mixes = {share.mix: share.mix for share in status.shares} | {
        change.mix: change.mix for change in status.changes
    }
    if not mixes:
        return []
    ask = form(
        choice("mix", "mix", mixes, ""),
        entry("opponent", "category, bot or rival", "", names="opponents", is_needed=True),
        entry("weight", "weight, 0 removes", "", is_needed=True),
        action="/mix",
        method="post",
        button="Change",
    )
    rows = [(change.mix, change.words, change.by, ago(change.at)) for change in status.changes]
    changes = table(("mix", "newest change", "by", "at"), rows)
    kinds = (PlayerKind.BOT, PlayerKind.RIVAL)
    named = [player.name for player in source.players().values() if player.kind in kinds]
    words = "An operator changes a weight of a mix, and the next draws follow."
    return [
        section("Change a mix", suggestions("opponents", [*CATEGORIES, *named]), ask, words=words),
        *([section("Changed mixes", changes)] if rows else []),
    ]


def _pause(status: LeagueStatus) -> list[Block]:
    """Returns the button with which operators pause or resume the learners."""
    pause = status.pause
    if pause is None and not status.shares:
        return []
    name = "Pause" if pause is None else "Resume"
    ask = form(action=f"/{name.lower()}", method="post", button=name)
    words = "An operator lets the learners hold before their next rollouts. The evaluator goes on."
    return [section(f"{name} the learners", ask, words=paused(pause) if pause else words)]


def _bars(player: str, shares: Sequence[Share]) -> Chart:
    names = [share.category for share in shares]
    series = [
        {"type": "bar", "name": name, "data": values, "itemStyle": {"color": colour}}
        for name, values, colour in (
            ("set", [round(100 * share.configured, 1) for share in shares], SCREEN_PALETTE[8]),
            ("expected", [round(100 * share.expected, 1) for share in shares], SCREEN_PALETTE[1]),
            ("met", [round(100 * share.realised, 1) for share in shares], SCREEN_PALETTE[0]),
        )
    ]
    options = {
        "grid": {"left": 110, "right": 20, "top": 36, "bottom": 28},
        "legend": {"top": 0, "data": ["set", "expected", "met"]},
        "xAxis": {"type": "value", "axisLabel": {"formatter": "{value} %"}, "splitLine": GRID},
        "yAxis": {"type": "category", "data": names, "inverse": True},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "series": series,
    }
    words = (
        f"Shares of the mix {shares[0].mix}. Set: in the settings. Expected: in the next draw, "
        "which leaves out categories without players and adapts the bots' weights. Met: so far."
    )
    height = 90 + 44 * len(names)
    return Chart(title=f"Opponents of {player}", words=words, options=options, height=height)


def _table(player: str, shares: Sequence[Share], is_changed: bool) -> Block:
    rows = [
        (
            share.category,
            percent(share.configured),
            percent(share.expected),
            percent(share.realised),
            f"{share.matches:,}",
            *((percent(share.realised_since), f"{share.matches_since:,}") if is_changed else ()),
        )
        for share in shares
    ]
    since = ("met since#", "matches since#") if is_changed else ()
    head = table(("category", "set#", "expected#", "met#", "matches#", *since), rows)
    return section(f"Shares of {player}", head, half=True)


def _foreseen(player: str, parts: Sequence[Mapping[str, Any]]) -> Block:
    """Compares expected and actual scores, by quarter of a learner's steps."""
    rows = [
        (
            f"{span['since_step']:,} to {span['until_step']:,}",
            f"{span['matches']:,}",
            *(percent(_share(span["kinds"], kind)) for kind in KINDS),
            percent(_share(span["bands"], ".2_to_.8")),
            percent(_share(span["bands"], "above_.9")),
            percent(span["expected"]),
            percent(span["score"]),
        )
        for span in parts
    ]
    words = (
        "By quarter of its steps: its opponents, how many of its matches were even (an expected "
        "score of 20 to 80 %) or as good as won (above 90 %), and the means of the expected and of "
        "the played scores."
    )
    headings = ["steps", "matches#", *(f"{kind}#" for kind in KINDS)]
    headings += ["even#", "won#", "expected#", "played#"]
    return section(f"Expected and played scores of {player}", table(headings, rows), words=words)


def _share(groups: Mapping[str, Any], name: str) -> float:
    return float(groups.get(name, {}).get("share", 0.0))
