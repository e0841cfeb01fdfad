"""Begins a match against any member, or between two members, at the press of a button."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from league.games.base import CHOICE
from league.ids import lineage_of
from league.views.dashboard.arena import HUMAN, Arena
from league.views.dashboard.blocks import Block, choice, form
from league.views.dashboard.source import Source
from league.views.html import section

PLAYERS = 300
"""Names in a list: the bots, the newest, and the chosen players."""
STAGE = Markup(
    '<div class="viewer" data-play hidden><canvas data-part="screen" role="img" tabindex="0" '
    'aria-label="the match"></canvas><div class="film"><span data-part="state" role="status">'
    '</span><span data-part="choices"></span>'
    '<button data-part="full">full screen</button></div></div>'
)
"""The frame that static/play.js fills after a press of Begin."""


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    arena = Arena(source)
    settings = arena.settings()
    available = arena.names()
    first, second = parameters.get("first", HUMAN), parameters.get("second", "")
    newest = next((name for name in available if lineage_of(name)), "")
    chosen = [name for name in dict.fromkeys((first, second)) if name in available[PLAYERS:]]
    names = available[:PLAYERS] + chosen
    seats = {HUMAN: "you"} | {name: name for name in names}
    picker = form(
        choice("first", "first", seats, first),
        choice("second", "second", {name: name for name in names} | {HUMAN: "you"},
               second or newest),
        choice("rated", "ratings", {"yes": "count it", "no": "leave them"},
               parameters.get("rated", "yes")),
        button="Begin",
    )  # fmt: skip
    how = _how(settings.spec().action_kind == CHOICE, settings.spec().action_names)
    return [
        section("Play", Markup("<div data-picker>{}</div>").format(picker), words=how),
        STAGE,
    ]


def _how(is_choice: bool, names: tuple[str, ...]) -> str:
    if is_choice:
        return "Choose by the buttons under the picture when it is your turn."
    keys = ", ".join(name.upper() for name in names)
    return (
        f"Your keys are {keys}; the arrows are W A S D. A gamepad works too. A match between two "
        "members is shown live. Your matches are rated as the player human, "
        "unless your token only reads, and kept as replays."
    )
