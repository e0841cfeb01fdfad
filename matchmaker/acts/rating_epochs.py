"""Rating epochs: now and then the share of draws and the link of predictions are measured from the
log.

What was measured stands in the log as an event and holds for the results behind it
(`league.stats.ratings.epochs` has the rule of when and how), so nothing is measured again when
ratings are recomputed.
"""

from __future__ import annotations

import importlib

from league.players import Book
from matchmaker.state.books import epoch_data
from matchmaker.state.league import League
from matchmaker.store.transaction import Transaction


def open_due_epochs(league: League) -> list[Book]:
    """Opens the epochs of the books that have grown enough since their last one; returns these."""
    view = league.view.checked()
    with view.lock:
        due = [book for book, table in view.tables.items() if table.is_epoch_due()]
    if not due:
        return []
    # takes half a second, and nobody can write meanwhile below
    importlib.import_module("scipy.special")
    with league.store.write() as tx:
        return [book for book in due if _open(league, tx, book)]


def _open(league: League, tx: Transaction, book: Book) -> bool:
    """Only where memory holds all that the log does: else the next sweep opens it."""
    position = tx.positions()[0]
    with league.view.lock:
        if league.view.books.log_position != position:
            return False
        epoch = league.view.tables[book].next_epoch(position)
    if epoch is None:
        return False
    league.log(
        tx,
        "rating_epoch",
        f"from log position {position + 1} the {book.value} book expects {epoch.draw_probability:.3g} draws "
        f"a match and predicts with sharpness {epoch.link.sharpness:.2f} and a logistic share of "
        f"{epoch.link.logistic_share:.1f}, measured in {epoch.games} results",
        book=book.value,
        **epoch_data(epoch),
    )
    return True
