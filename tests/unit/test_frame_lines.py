"""Frames of games without a drawing, as lines of text and on a terminal."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from league.games.drawing.lines import Line, frame_lines
from league.games.registry import make_batched
from league.views.match_view import MatchView

HAND = {
    "game": "leduc",
    "frame": 3,
    "max_frames": 8,
    "seats": [
        {"card": "J0", "chips": 1, "acts": True, "first": False, "last": "", "payoff": 0.0},
        {"card": "K1", "chips": 3, "acts": False, "first": True, "last": "raise", "payoff": 1.5},
    ],
    "table": {"public": "Q0", "choices": ""},
}
BOARD = {"game": "lines", "frame": 2, "seats": [{}, {}], "text": "X . O\n. . ."}


def test_a_frame_has_a_line_for_each_seat_and_each_field_that_says_something() -> None:
    assert frame_lines(HAND, ["main@5", ""]) == [
        Line("main@5", "card J0 · chips 1 · acts", seat=0),
        Line("seat 1", "card K1 · chips 3 · first · last raise · payoff 1.5", seat=1),
        Line("public", "Q0"),
        Line("played", "3 of at most 8"),
    ]


def test_poker_s_choices_are_words() -> None:
    game = make_batched("leduc", 1)
    game.bots_N2[0] = game.spec.bot_index("aggressive")
    game.reset(np.array([1], np.uint64))
    told: list[str] = []
    for _ in range(4):
        game.step(game.idle_actions())
        lines = frame_lines(game.frame(0), ["a", "b"])
        told += [line.text for line in lines if line.label == "choices"]
    assert told == ["raise", "raise, raise", "raise, raise, call", "raise, raise, call / raise"]


def test_text_of_several_lines_keeps_its_columns() -> None:
    assert frame_lines(BOARD, ["a", "b"])[2:] == [
        Line("text", "X . O", mono=True),
        Line("", ". . .", mono=True),
        Line("played", "2"),
    ]


def drawn(frame: dict, said: list[str], size: tuple[int, int]) -> list[str]:
    console = Console(file=io.StringIO(), width=size[0], height=size[1], record=True)
    view = MatchView(["anna", "bob"])
    view.see(frame)
    console.print(view.draw(said, size))
    return console.export_text().splitlines()


def test_the_terminal_shows_both_hands_and_the_newest_events_that_fit() -> None:
    said = [f"event {number}" for number in range(30)]
    lines = drawn(HAND, said, (60, 16))
    assert any("anna" in line and "card J0" in line for line in lines)
    assert any("bob" in line and "card K1" in line for line in lines)
    assert "leduc" in lines[0]
    assert lines[-1].strip() == "event 29"
    assert len(lines) == 16
