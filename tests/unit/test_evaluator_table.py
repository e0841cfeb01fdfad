"""The table of results: its columns and rows, and that a full disk leaves the old one."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.clean.table import COLUMNS, Row, write_table
from league.errors import StorageFull
from league.players import Book, PayoffCell, Player, PlayerKind

ME = Player(name="main@50", game="brawl", kind=PlayerKind.SNAPSHOT, step=50)
BASED = Player(name="based", game="brawl", kind=PlayerKind.BOT)
PLAYERS = {one.name: one for one in (ME, BASED)}
CELL = PayoffCell(
    row=ME.name,
    column="based",
    wins=3,
    draws=1,
    losses=1,
    seat0_games=3,
    seat0_wins=1,
    frames=750,
    means={"damage_dealt": 15.0, "falls": 1.0},
)


def written(path: Path, *cells: tuple[Book, PayoffCell]) -> list[Row]:
    write_table(path, PLAYERS, cells, frames_per_second=30)
    with path.open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def test_a_row_holds_what_the_log_counts(tmp_path: Path) -> None:
    (row,) = written(tmp_path / "table.csv", (Book.EVAL, CELL))
    assert list(row) == list(COLUMNS)
    assert [row[name] for name in ("player", "step", "opponent", "book")] == [
        "main@50",
        "50",
        "based",
        "eval",
    ]
    assert [row[name] for name in ("matches", "wins", "draws", "losses")] == ["5", "3", "1", "1"]
    assert row["win_rate"] == "0.6000", "a draw is not a win"
    assert (row["wilson_low"], row["wilson_high"]) == ("0.2307", "0.8824")
    assert (row["win_rate_seat_0"], row["win_rate_seat_1"]) == ("0.3333", "1.0000")
    assert (row["damage_dealt_mean"], row["falls_mean"]) == ("15.0000", "1.0000")
    assert row["damage_taken_mean"] == "", "the game does not count it"
    assert row["seconds_mean"] == "5.0000"


def test_only_snapshots_have_rows_and_the_file_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "evaluator" / "evaluation_results.csv"
    written(path, (Book.EVAL, CELL))
    other = PayoffCell(row="based", column="main@50", wins=1, draws=1, losses=3)
    rows = written(
        path, (Book.EVAL, replace(CELL, draws=3)), (Book.GREEDY, CELL), (Book.EVAL, other)
    )
    assert [(r["player"], r["book"], r["matches"]) for r in rows] == [
        ("main@50", "eval", "7"),
        ("main@50", "greedy", "5"),
    ]
    assert os.listdir(path.parent) == ["evaluation_results.csv"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "evaluation_results.csv"
    written(path, (Book.EVAL, CELL))
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        written(path, (Book.EVAL, replace(CELL, draws=3)))
    assert path.read_bytes() == before


def test_the_documentation_shows_every_column() -> None:
    text = (Path(__file__).parents[2] / "docs" / "evaluator.md").read_text(encoding="utf-8")
    listed = [
        line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")
    ]
    assert [name for name in listed if name in COLUMNS] == list(COLUMNS)
    for name, meaning in COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in text
