"""The report's columns, rows, and that no row comes twice."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.reports.table import COLUMNS, Report, Row, make_row
from league.errors import DataCorrupt, StorageFull
from league.players import Book, MatchResult, PayoffCell, Player, PlayerKind, SeatResult

ME = Player(name="main@50", game="brawl", kind=PlayerKind.SNAPSHOT, step=50)


def match(number: int, outcome: float, seat: int, side: float, **stats: float) -> MatchResult:
    """A match whose outcome is from my side, and so are the stats."""
    told = {"spawn_side": side, "damage_dealt": 10.0, "falls": 1.0} | stats
    mine = SeatResult(player=ME.name, stats=told)
    its = SeatResult(player="based", stats={"damage_dealt": 99.0})
    return MatchResult(
        match_id=str(number),
        lease_token="",
        outcome=outcome if seat == 0 else 1.0 - outcome,
        frames=60 * (number + 1),
        seats=(mine, its) if seat == 0 else (its, mine),
        finished_at=1_700_000_000.0 + number,
    )


FOUR = [
    match(0, 1.0, 0, -1.0, damage_dealt=30.0),
    match(1, 1.0, 1, -1.0),
    match(2, 0.5, 0, 1.0),
    match(3, 0.0, 1, 1.0),
]
CELL = PayoffCell(row=ME.name, column="based", wins=2, draws=1, losses=1)


def row_of(cell: PayoffCell = CELL, book: Book = Book.EVAL) -> Row:
    return make_row(ME, book, cell, FOUR, frames_per_second=30)


def test_a_row_tells_what_was_played() -> None:
    row = row_of()
    assert list(row) == list(COLUMNS)
    assert (row["matches"], row["wins"], row["draws"], row["losses"]) == ("4", "2", "1", "1")
    assert row["win_rate"] == "0.5000", "a draw is not a win"
    assert (row["wilson_low"], row["wilson_high"]) == ("0.1500", "0.8500")
    assert (row["win_rate_seat_0"], row["win_rate_seat_1"]) == ("0.5000", "0.5000")
    assert (row["win_rate_left"], row["win_rate_right"]) == ("1.0000", "0.0000")
    assert (row["damage_dealt_mean"], row["falls_mean"]) == ("15.0000", "1.0000")
    assert row["damage_taken_mean"] == "", "the game does not tell"
    assert row["seconds_mean"] == "5.0000"
    assert row["finished_at"] == "2023-11-14T22:13:23+00:00"
    assert (row["player"], row["step"], row["opponent"], row["book"]) == (
        "main@50",
        "50",
        "based",
        "eval",
    )


def test_the_counts_are_the_matchmakers_where_another_process_played() -> None:
    row = make_row(ME, Book.EVAL, CELL, [], frames_per_second=30)
    assert (row["matches"], row["win_rate"]) == ("4", "0.5000")
    assert row["win_rate_seat_0"] == row["seconds_mean"] == ""


def test_rows_are_added_and_never_doubled(tmp_path: Path) -> None:
    path = tmp_path / "evaluator" / "evaluation_results.csv"
    Report(path).put([row_of()])
    Report(path).put([row_of(), row_of(book=Book.GREEDY)])
    Report(path).put([row_of(replace(CELL, draws=3))])
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["book"], r["matches"]) for r in rows] == [("eval", "6"), ("greedy", "4")]
    assert path.read_text().splitlines()[0] == ",".join(COLUMNS)
    assert os.listdir(path.parent) == ["evaluation_results.csv"]


def test_a_whole_gauntlet_takes_the_place_of_a_broken_one(tmp_path: Path) -> None:
    """Also where it met other opponents."""
    report = Report(tmp_path / "evaluation.csv")
    report.put([row_of(replace(CELL, column="constant"))], is_whole=False)
    report.put([row_of()])
    assert [row["opponent"] for row in report.rows()] == ["based"]


def test_a_file_with_other_columns_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "evaluation_results.csv"
    path.write_text("player,opponent\nme,you\n")
    with pytest.raises(DataCorrupt, match="columns"):
        Report(path).put([row_of()])
    assert path.read_text() == "player,opponent\nme,you\n"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report(tmp_path / "evaluation_results.csv")
    report.put([row_of()])
    before = report.rows()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        report.put([row_of(replace(CELL, column="constant"))])
    assert report.rows() == before


def test_the_documentation_shows_every_column() -> None:
    text = (Path(__file__).parents[2] / "docs" / "evaluator.md").read_text(encoding="utf-8")
    listed = [
        line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")
    ]
    assert [name for name in listed if name in COLUMNS] == list(COLUMNS)
    for name, meaning in COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in text
