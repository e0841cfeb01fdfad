"""What the dashboard says of a match in words that people use."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from league.errors import NotFound
from league.games.registry import game_spec
from league.players import Book
from league.views.dashboard.pages import matches

STATS = {"distance_sum": 2700.0, "air_frames": 450.0, "damage_dealt": 12.5, "attacks": 59.0}
STATS |= {"keys_pressed": 1800.0, "spawn_side": -1.0}


def cells(game: str | None) -> dict[str, str]:
    """The first seat's numbers of a match of 900 frames, and its length, by their words."""
    seats = [SimpleNamespace(name=name, stats=STATS) for name in ("main", "based")]
    given = SimpleNamespace(book=Book.EVAL, category="gauntlet", seed=7, seats=seats)
    result = SimpleNamespace(failed=False, outcome=1.0, frames=900, seats=seats, finished_at=5.0)
    record = SimpleNamespace(
        assignment=given, result=result, worker="evaluator-0", lease_state="done", why_json=""
    )
    source = SimpleNamespace(
        replays=dict, match=lambda _: record, spec=lambda: game and game_spec(game)
    )
    page = "".join(map(str, matches.show_match(source, {"match": "1"})))
    rows = re.findall(r"<td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td", page)
    return dict(rows) | dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))


def test_sums_over_frames_are_means_and_frames_are_seconds():
    shown = cells("brawl")
    assert shown["length"] == "30.0 s"
    assert shown["mean distance"] == "3.0"
    assert shown["air seconds"] == "15.0"
    assert shown["damage dealt"] == "12.5"
    assert shown["attacks"] == "59"
    assert shown["mean keys held at once"] == "2.0"
    assert shown["began on the"] == "left"


def test_a_game_of_choices_has_moves_and_an_unknown_game_frames():
    assert cells("kuhn")["length"] == "900 moves"
    assert cells(None)["length"] == "900 frames"


def test_a_match_that_nobody_knows_is_not_found():
    def unknown(_: str) -> None:
        raise NotFound("no such match")

    with pytest.raises(NotFound):
        list(matches.show_match(SimpleNamespace(replays=dict, match=unknown), {"match": "x"}))
