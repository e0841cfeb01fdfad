"""Implements ``bin/league recompute``, which compares every book with the log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from league.console.options import Heading
from league.players import Book, Rating
from league.rpc.client import MatchmakerClient
from league.runs import finding
from league.security.credentials import Credentials, of_run
from matchmaker.state.books import Books
from matchmaker.store.sqlite import SqliteStore

app = typer.Typer(rich_help_panel=Heading.LOG, add_completion=False)

WAIT_SECONDS = 5.0
RunArgument = Annotated[
    Path | None, typer.Argument(metavar="RUN", help="The run (default: the newest in runs/).")
]
RunOption = Annotated[
    Path | None, typer.Option(metavar="RUN", help="The same, as other commands take it.")
]


@app.command("recompute")
def command(run: RunArgument = None, run_dir: RunOption = None) -> int:
    """Computes ratings and payoffs from the log and compares them with the running numbers.

    The exit status is 1 when the run's matchmaker shows other numbers.
    """
    run_dir = finding.named_run(run, run_dir)
    address = finding.live_address(run_dir)
    with closing(SqliteStore(finding.database_of(run_dir), read_only=True)) as store:
        with store.read() as reader:
            began = time.perf_counter()
            books = Books.of(reader)
            seconds = time.perf_counter() - began
        findings = differing_from_shown(store, address, of_run(run_dir, "read")) if address else []
    for book, table in books.tables.items():
        drawn, link = table.epoch.draw_probability, table.link
        print(
            f"{book.value}: {len(table.beliefs())} players, {table.games} rated results, "
            f"{len(table.anchors())} anchors; expects {drawn:.3g} draws, "
            f"sharpness {link.sharpness:.2f}, logistic share {link.logistic_share:.1f}"
        )
    print(f"{books.log_position} results of {run_dir} folded in {seconds:.1f} s")
    for line in findings:
        print(line)
    if not address:
        print("no matchmaker serves this run now, so there are no running numbers to compare")
    elif not findings:
        print(f"the numbers that {address} shows are the same, to the last bit")
    return 1 if findings else 0


def differing_from_shown(
    store: SqliteStore, address: str, credentials: Credentials | None = None
) -> list[str]:
    """Compares the numbers that a matchmaker shows with the log, to the last bit.

    Each answer is compared with the log up to the event that the answer includes.

    Args:
        store: the log.
        address: address of the matchmaker.
        credentials: to call the matchmaker.

    Returns:
        A sentence for each book whose ratings or payoffs differ.
    """
    with MatchmakerClient(address, wait_seconds=WAIT_SECONDS, credentials=credentials) as client:
        shown = [
            (book, client.leaderboard(book), client.payoffs(book, with_stats=True)) for book in Book
        ]
        climb = client.payoffs(Book.TRAIN, climb=True)
    findings: list[str] = []
    with store.read() as reader:
        players = {player.name: player for player in reader.players()}
        positions = {board.event_position for _, board, _ in shown}
        positions |= {payoffs.event_position for _, _, payoffs in shown} | {climb.event_position}
        folded = {position: Books.at(reader, position) for position in positions}
    for book, board, payoffs in shown:
        table = folded[board.event_position].tables[book]
        is_same = _numbers(board.ratings) == _numbers(table.leaderboard(players))
        if not is_same or board.anchors != table.anchors():
            findings.append(f"the {book} ratings shown at {address} are not those of the log")
        table = folded[payoffs.event_position].tables[book]
        if payoffs.cells != table.payoff.cells(with_stats=True):
            findings.append(f"the {book} payoffs shown at {address} are not those of the log")
    if climb.cells != folded[climb.event_position].climb.cells():
        findings.append(f"the climb shown at {address} is not that of the log")
    return findings


def _numbers(ratings: Sequence[Rating]) -> list[tuple[Any, ...]]:
    return [
        (row.player.name, row.mu, row.sigma, row.wins, row.draws, row.losses, row.pinned)
        for row in ratings
    ]
