"""Opens rating epochs: measures the share of draws and the link of predictions from the log.

A measurement is an event of the log and holds for the results after it
(`league.stats.ratings.table` has the rule), so recomputing ratings measures nothing again.
"""

from __future__ import annotations

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
    with league.store.write() as tx:
        return [book for book in due if _open(league, tx, book)]


def _open(league: League, tx: Transaction, book: Book) -> bool:
    """Opens a book's epoch if memory holds all of the log; otherwise the next sweep does."""
    position = tx.positions()[0]
    with league.view.lock:
        if league.view.books.log_position != position:
            return False
        epoch = league.view.tables[book].next_epoch(position)
    if epoch is None:
        return False
    text = (
        f"from log position {position + 1} the {book.value} book expects "
        f"{epoch.draw_probability:.3g} draws a match and predicts with sharpness "
        f"{epoch.link.sharpness:.2f} and a logistic share of {epoch.link.logistic_share:.1f}, "
        f"measured in {epoch.games} results"
    )
    league.log(tx, "rating_epoch", text, book=book.value, **epoch_data(epoch))
    return True
