"""The terminal view and its plain lines are pure functions of a screen."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import screens
from rich.console import Console

from league.views.terminal.display import LineDisplay, progress_lines
from league.views.terminal.facts import Note, Screen
from league.views.terminal.panels import view
from league.views.terminal.summary import print_summary

SIZES = [(80, 24), (100, 30), (120, 36), (160, 45)]


def drawn(screen: Screen, width: int, height: int) -> list[str]:
    """The lines that a terminal of this size would show."""
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        console.print(view(screen, width, height), height=height)
    return capture.get().splitlines()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_fills_the_terminal_exactly(width: int, height: int) -> None:
    for screen in (screens.full(), screens.EMPTY):
        lines = drawn(screen, width, height)
        assert len(lines) == height
        assert {len(line) for line in lines} == {width}


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_shows_what_matters_at_every_size(width: int, height: int) -> None:
    picture = "\n".join(drawn(screens.full(), width, height))
    for words in (
        *("runs/laptop-1", "laptop", "CPU", "43.5 %", "652,310 of 1,500,000 steps", "11:40"),
        *("7:11 left", "6,212", "18.6k", "league  rollout", "4.710", "-0.013", "3.213", "0.012"),
        *("0.118", "0.812", "snapshots", "53%", "70›69", "99%", "72%", "15›16", "95%", "10›10"),
        *("main@650000", "new", "29.70", "clockwork bot", "constant bot", "17 players"),
        *("matchmaker", "learner-main", "↻1", "evaluator-0", "main@650000 joined the league"),
        *("Ctrl-C", "runs/laptop-1/logs"),
    ):
        assert words in picture, words


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_player_on_whom_the_fit_disagrees_is_marked_and_the_mark_is_explained(
    width: int, height: int
) -> None:
    full = screens.full()
    opinion = full.league.fit
    assert opinion is not None
    agreeing = "\n".join(drawn(full, width, height))
    assert "≠" not in agreeing
    apart = replace(full.league, fit=replace(opinion, gaps={"main@650000": -1.2}))
    lines = drawn(replace(full, league=apart), width, height)
    marked = [line for line in lines if "≠" in line]
    assert len(marked) == 2, marked
    assert "main@650000 ‹ ≠" in marked[0]
    assert "‹ newest rated, ≠ fit disagrees" in marked[1]


def test_lines_tell_the_same_facts() -> None:
    training, exams, waiting = progress_lines(screens.full())
    for words in (
        "652,310 of 1,500,000 steps (43.5 %)",
        "6,212 steps/s",
        "stage league",
        "based 72 %",
        "7:11 left",
    ):
        assert words in training
    assert "clean matches of main@650000: wins clockwork 80 % of 400" in exams
    assert "evaluator-0" in waiting
    (waits,) = progress_lines(screens.EMPTY)
    assert "waiting for the learner" in waits
    evaluating = next(progress_lines(replace(screens.full(), phase="evaluating")))
    assert "main@650000 has played 312 of 700 matches, 1 more" in evaluating


def test_line_display_repeats_nothing_and_survives_a_closed_pipe() -> None:
    stream = io.StringIO()
    display = LineDisplay(stream, 0.0)
    display.show(screens.full())
    display.show(screens.full())
    display.add_note(Note(at=screens.NOW, text="something happened"))
    assert len(stream.getvalue().splitlines()) == 4

    class Closed(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    display = LineDisplay(Closed(), 0.0)
    display.show(screens.full())
    display.add_note(Note(at=screens.NOW, text="nobody hears this"))


def test_summary_has_leaderboard_clean_matches_files_and_time() -> None:
    console = Console(width=110, file=io.StringIO(), color_system=None)
    with console.capture() as capture:
        print_summary(console, screens.full(), [Path("runs/laptop-1/leaderboard.md")])
    text = capture.get()
    for words in (
        *("main@650000 ‹", "constant bot", "80% [75– 83]", "Clean matches are those of main@65"),
        *("29.70", "31.9–34.1", "TrueSkill and the fit of all games agree on all players."),
        *("652,310 steps", "11:40 of wall-clock time", "runs/laptop-1/leaderboard.md"),
    ):
        assert words in text, words


def test_alarms_of_the_learner_stand_in_its_panel_and_in_the_lines() -> None:
    screen = screens.full()
    assert screen.league.status is not None
    (worker,) = screen.league.status.workers
    ill = replace(worker, metrics={**worker.metrics, "alarm/entropy_collapse": 0.01})
    league = replace(screen.league, status=replace(screen.league.status, workers=(ill,)))
    picture = "\n".join(drawn(replace(screen, league=league), 100, 30))
    assert "! entropy collapsed" in picture
    assert "alarms: entropy collapsed" in list(progress_lines(replace(screen, league=league)))
    assert "entropy collapsed" not in "\n".join(drawn(screen, 100, 30))
