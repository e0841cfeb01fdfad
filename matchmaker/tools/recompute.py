"""Implements ``bin/league recompute``, which compares the ratings and payoffs that a matchmaker
shows with the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from league.players import Book, Rating
from league.rpc.client import MatchmakerClient
from league.security.credentials import Credentials
from matchmaker.state.books import Books
from matchmaker.store.sqlite import SqliteStore

WAIT_SECONDS = 5.0


def differing_from_shown(
    store: SqliteStore, address: str, credentials: Credentials | None = None
) -> list[str]:
    """Compares the numbers that a matchmaker shows with the log, to the last bit. Returns a
    sentence for each book whose ratings or payoffs differ.

    Each answer is compared with the log up to the event that the answer includes.
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
