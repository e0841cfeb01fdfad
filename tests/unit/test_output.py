"""What commands print of others' words."""

import re

import pytest

from league.cli.status import event_line
from league.console import output
from league.console.output import print_pairs, print_table, progress, say, when
from league.console.text import measured, steps_of
from league.errors import InvalidInput, LeagueError
from league.metrics import Measured
from league.players import Event

FORGED = "it failed\n9\t2026-01-01\toperator_action\tbob\x1b[2K"
PLAIN = "it failed 9 2026-01-01 operator_action bob [2K"


def test_a_workers_words_make_no_line_of_ours_and_steer_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert event_line(
        Event(position=1, at=0.0, kind="leases_released", text=FORGED, data_json="")
    ).endswith(PLAIN)
    print_table("Workers", ["worker", FORGED], [("learner-main", FORGED)])
    print_pairs([("doing", FORGED)])
    say(FORGED)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"worker\t{PLAIN}",
        f"learner-main\t{PLAIN}",
        f"doing\t{PLAIN}",
    ]
    assert printed.err == f"{PLAIN}\n"
    assert str(LeagueError(FORGED)) == PLAIN


def test_no_part_of_a_table_on_a_terminal_is_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    words = "[/oops]\x1b[2K"
    print_table(words, [words], [(words,)], caption=words)
    assert capsys.readouterr().out.count("[/oops] [2K") == 4


def test_a_narrow_terminal_leaves_columns_out_and_cuts_no_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "50")
    cells = [letter * 18 for letter in "abcd"]
    print_table("Wide", ["w", "x", "y", "z"], [cells], spared="x")
    table, _, caption = capsys.readouterr().out.partition("└")
    assert [cell in table for cell in cells] == [True, False, True, False]
    assert "too wide here: x, z" in caption


def test_the_widest_column_of_words_takes_several_lines_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    note = "word " * 20
    print_table("Folded", ["name", "note", "count#"], [("main@500", note, "12345")])
    printed = capsys.readouterr().out
    assert printed.count("word") == 20
    assert "12345" in printed
    assert "too wide" not in printed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, ""), (1.0, "1970-01-01 00:00:01+00:00"), (1.8e12, "1.8e+12 s"), (1e300, "1e+300 s")],
)
def test_every_time_can_be_printed(seconds: float, text: str) -> None:
    assert when(seconds) == text


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (Measured(1.2, 1.05, 1.35), "1.20 ±0.15"),
        (Measured(1.2, 0.8, 1.8), "1.20 (0.80–1.80)"),
        (Measured(0.1, 0.0, 0.3), "0.10 (0.00–0.30)"),
        (Measured(123.4, 120.0, 126.8), "123 ±3"),
        (Measured(2.0, 2e-30, 2e30), "2.00 (0.00–2e+30)"),
        (Measured(1.2), "1.20"),
    ],
)
def test_a_number_shows_both_ends_of_an_interval_that_is_not_symmetric(
    one: Measured, text: str
) -> None:
    assert measured(one) == text


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with progress() as show:
        for done in range(8):
            show(f"{done} matches")
            now[0] += output.SECONDS_APART / 4
    assert capsys.readouterr() == ("", "4 matches\n")


@pytest.mark.parametrize(
    ("text", "steps"),
    [("500", 500), ("500k", 500_000), ("1.5M", 1_500_000), ("2_000,000", 2_000_000)],
)
def test_numbers_of_steps_may_be_short(text: str, steps: int) -> None:
    assert steps_of(text) == steps


@pytest.mark.parametrize("text", ["", "0", "1.5", "-5", "many", "1e6", "5 M", "9" * 40])
def test_no_number_of_steps_is_quoted(text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(repr(text))):
        steps_of(text)
