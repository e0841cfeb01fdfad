"""Shows buttons that begin a match against any member, or between two members."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from league.games.base import CHOICE, GameSpec
from league.ids import lineage_of
from league.players import Book, Rating
from league.stats.ratings.elo import elo
from league.views.dashboard.arena import HUMAN, Arena
from league.views.dashboard.blocks import Block, choice, form
from league.views.dashboard.source import Source
from league.views.html import Text, joined, section, text

PLAYERS = 300
"""Number of names in a list: the bots and the newest players. Chosen players are added."""
LEVELS = {"Easy": 0.25, "Medium": 0.6, "Hard": 1.0}
"""Levels of difficulty, as positions between the lowest score (0) and the highest score (1)."""
ENOUGH = 10
"""A member needs this number of matches to represent a level."""
STILL = "constant"
"""The fighting games' bot that presses no key. It represents no level, because it is no fun."""
STAGE = Markup(
    '<div class="viewer" data-play hidden><div class="screen"><canvas data-part="screen" '
    'role="img" tabindex="0" aria-label="the match"></canvas><span data-part="count" role="status">'
    "</span></div>"
    '<div data-part="pad" class="pad"></div><div class="film"><span data-part="state" '
    'role="status"></span><span data-part="choices"></span>'
    '<button data-part="full">full screen</button></div></div>'
)
"""The element in which static/play.js shows the match after a button was pressed."""


def show(source: Source, parameters: Mapping[str, str]) -> list[Block]:
    arena = Arena(source)
    spec, available = arena.settings().spec(), arena.names()
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
    others = Markup("<details{}><summary>Any member, or two members</summary>{}</details>").format(
        Markup(" open") if second else "", picker
    )
    parts = _levels(available, source.ratings(Book.EVAL)), others
    return [
        section(
            "Play", Markup("<div data-picker>{}{}</div>").format(*parts), words=_counts(source)
        ),
        STAGE,
        section("Controls", _keys(spec), words=_how(spec)),
    ]


def _levels(names: Sequence[str], ratings: Sequence[Rating]) -> Markup:
    """Returns a button for each level, by the score that ranks the leaderboard. Until enough
    members are rated, the first bots represent the lower levels. The hardest level is always the
    best rated member, or the newest snapshot before the first rating.
    """
    names = [name for name in names if name != STILL]
    newest = next((name for name in names if lineage_of(name)), names[-1])
    found = {one.player.name: one for one in ratings}
    best = next((name for name in found if name in names), newest)
    rated = {name: one.score for name, one in found.items() if one.games >= ENOUGH}
    rated = {name: score for name, score in rated.items() if name in names}
    if len(rated) < len(LEVELS):
        others = [name for name in names if name != best]
        levels = dict(zip(LEVELS, (*others[:2], best), strict=False))
    else:
        low, high = min(rated.values()), max(rated.values())
        levels = {
            level: min(rated, key=lambda name: abs(rated[name] - low - place * (high - low)))
            for level, place in LEVELS.items()
        } | {next(reversed(LEVELS)): best}
    buttons = joined(
        Markup('<button name="second" value="{}"><b>{}</b> {}{}</button>').format(
            name, level, text(name), f", Elo {elo(found[name].mu):.0f}" if name in found else ""
        )
        for level, name in levels.items()
    )
    hidden = '<input type="hidden" name="{}" value="{}">'
    fixed = joined(Markup(hidden).format(*pair) for pair in (("first", HUMAN), ("rated", "yes")))
    return Markup('<form class="levels">{}{}</form>').format(fixed, buttons)


def _counts(source: Source) -> Text:
    """Returns sentences on whether the person's matches count in the ratings."""
    folder, best = source.run_dir, "The best of three matches wins."
    if source.is_served():
        words = "Your matches count in the ratings as the player human, unless the line under the"
        return f"{best} {words} picture says otherwise. The run keeps them as replays."
    command = shlex.join(["bin/start-league", "--run-dir", str(folder)])
    code = Markup("<code>{}</code>").format(text(command))
    words = "Your matches do not count, because the run has ended."
    return joined([f"{best} {words} ", code, " opens it again, and then they count."])


def _how(spec: GameSpec) -> str:
    if spec.action_kind == CHOICE:
        return "Choose by the buttons under the picture when it is your turn."
    return (
        "The arrow keys do the same as W, A, S and D. On a gamepad, the lowest of the four main "
        "buttons jumps. A phone shows buttons under the picture."
    )


def _keys(spec: GameSpec) -> Markup:
    """Returns the game's keys and their effects."""
    if spec.action_kind == CHOICE or not spec.action_words:
        return Markup("")
    pairs = zip(spec.action_names, spec.action_words, strict=True)
    return Markup('<ul class="keys">{}</ul>').format(
        joined(Markup("<li><kbd>{}</kbd> {}</li>").format(*pair) for pair in pairs)
    )
