"""How well ratings predict the matches of real runs, under the rule in force and under others.

    OMP_NUM_THREADS=1 python tests/bench/rating_replay.py RUN [RUN ...]

Folds each run's log anew, in order, and predicts every match before it is folded. What is shown, by
book, is the log loss of the predicted scores (a draw is half a win; ½ for all matches would give
.693). A run of an older version is migrated in a copy.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # learner.py beside this file is not the package

from league.players import Book
from league.stats.ratings import NO_DRIFT, outlook
from matchmaker.state.books import MARK_KINDS, Books, Mark, marks_of
from matchmaker.store.base import Reader
from matchmaker.store.rows import ResultRow
from matchmaker.store.sqlite import SqliteStore

RULES = ("in force", "no inheritance", "no epochs", "no drift")
Losses = dict[Book, list[float]]


def marks(reader: Reader) -> list[Mark]:
    """Without epochs, which open here by the rule of today. Older logs tell a player's place by
    the order of events alone.
    """
    found = [
        mark for mark in marks_of(reader.events_of(*MARK_KINDS)) if mark.kind != "rating_epoch"
    ]
    announced = reader.select(
        "SELECT position, data_json FROM events WHERE kind = 'result' ORDER BY position"
    )
    told = [(position, json.loads(text)["position"]) for position, text in announced]
    placed, place = [], 0
    for mark in found:
        while told and told[0][0] < mark.event_position:
            place = told.pop(0)[1]
        position = mark.data.get("log_position", place)
        placed.append(
            replace(mark, log_position=position, data={**mark.data, "log_position": position})
        )
    return placed


def predicted(books: Books, row: ResultRow) -> float:
    """Log loss of what is believed of a match."""
    table = books.tables[row.book]
    first, second = table.belief(row.seat0), table.belief(row.seat1)
    score = outlook(first, second, table.epoch.draw_probability, table.link).score
    score = min(max(score, 1e-6), 1.0 - 1e-6)
    return -(row.outcome * math.log(score) + (1.0 - row.outcome) * math.log(1.0 - score))


def replayed(rows: Sequence[ResultRow], placed: Sequence[Mark], rule: str) -> Losses:
    books, waiting = Books(), list(placed)
    losses: Losses = {book: [] for book in Book}
    for table in books.tables.values():
        table.drift = NO_DRIFT if rule == "no drift" else table.drift
    for row in rows:
        while waiting and waiting[0].log_position < row.position:
            mark = waiting.pop(0)
            if rule != "no inheritance" or mark.data.get("kind") == "live":
                books.apply(mark)
        losses[row.book].append(predicted(books, row))
        books.add_results([row])
        table = books.tables[row.book]
        if rule != "no epochs" and (epoch := table.next_epoch(row.position)):
            table.begin_epoch(row.position, epoch.draw_probability, epoch.link)
    return losses


def of_run(run: Path) -> Iterator[tuple[str, Losses]]:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(shutil.copy(run / "league.db", folder)))
        with store.read() as reader:
            rows = [row for row in reader.results() if row.rated and row.seat0 != row.seat1]
            placed = marks(reader)
        store.close()
    for rule in RULES:
        yield rule, replayed(rows, placed, rule)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    all_of_them: dict[str, Losses] = {rule: {book: [] for book in Book} for rule in RULES}
    print(f"{'':40}" + "".join(f"{book.value:>18}" for book in Book))
    for run in parser.parse_args().runs:
        for rule, losses in of_run(run):
            print(line(f"{run.name}, {rule}", losses))
            for book in Book:
                all_of_them[rule][book] += losses[book]
    for rule, losses in all_of_them.items():
        print(line(f"all, {rule}", losses))


def line(name: str, losses: Losses) -> str:
    cells = (
        f"{math.fsum(found) / max(1, len(found)):.4f} ({len(found):,})" for found in losses.values()
    )
    return f"{name:40}" + "".join(f"{cell:>18}" for cell in cells)


if __name__ == "__main__":
    main()
