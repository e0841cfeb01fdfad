"""``league ratings``: the leaderboard of a book, and the fit of all its games beside it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from league.cli import books, connect
from league.cli.output import Column, is_terminal, print_table, say, share
from league.errors import InvalidInput
from league.players import Book, PayoffCell, Rating

ANCHOR = Column("anchor")
"""Shown on a terminal where somebody is one."""
COLUMNS = (
    Column("rank", number=True),
    Column("player"),
    Column("kind"),
    Column("score", number=True),
    Column("mu", number=True),
    Column("sigma", number=True),
    Column("games", number=True),
    Column("wins", number=True),
    Column("draws", number=True),
    Column("losses", number=True),
    Column("win_rate", number=True),
    ANCHOR,
)
FIT_COLUMNS = (
    Column("fit", number=True),
    Column("low", number=True),
    Column("high", number=True),
    Column("disagrees"),
)
SPARED = ("losses", "draws", "wins", "win_rate", "kind", "score", "sigma", "games", "rank")
"""Columns that a narrow terminal does without, in this order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    connect.add_moment(parser)
    books.add_arguments(parser)
    parser.add_argument(
        "--fit",
        action="store_true",
        help="beside them ratings from all games at once, with 95%% intervals, and where the two disagree",
    )


def run(args: argparse.Namespace) -> int:
    book = books.chosen(args)
    if args.fit and book is Book.TRAIN:
        raise InvalidInput(
            "--fit takes players that stay as they are, and learners change between their matches: "
            "use --book eval or --book greedy"
        )
    with connect.connect(args) as client:
        ratings = client.ratings(book)
        cells = client.payoff(book) if args.fit else []
    if not ratings:
        say(f"(nobody is rated in the book {args.book} yet)")
    rows, caption = (
        [_row(rating) for rating in ratings],
        "score = mu - 3 sigma; win_rate counts wins only, a draw is none",
    )
    if args.fit and ratings:
        fitted, said = _fitted(ratings, cells)
        rows = [(*row, *more) for row, more in zip(rows, fitted, strict=True)]
        caption += f"; {said}"
    columns: tuple[Column, ...] = COLUMNS + FIT_COLUMNS if args.fit else COLUMNS
    if is_terminal() and not any(rating.pinned for rating in ratings):
        at = columns.index(ANCHOR)
        columns, rows = (
            columns[:at] + columns[at + 1 :],
            [(*row[:at], *row[at + 1 :]) for row in rows],
        )
    print_table(f"Ratings, book {args.book}", columns, rows, caption=caption, spared=SPARED)
    return 0


def _fitted(
    ratings: Sequence[Rating], cells: Sequence[PayoffCell]
) -> tuple[list[tuple[str, ...]], str]:
    """The columns of the fit for each rating, on the ratings' zero point, and a word on it."""
    from league.stats.ratings.cross_check import cross_check

    opinion = cross_check(ratings, cells)
    rows = []
    for rating in ratings:
        name = rating.player.name
        found = opinion.intervals[name]
        gap = f"mu {opinion.gaps[name]:+.1f}" if name in opinion.gaps else ""
        rows.append((*(f"{x:.2f}" for x in (found.estimate, found.low, found.high)), gap))
    said = f"fit: all games at once with its 95 % interval, {opinion.widening:.2f} times as wide as by chance"
    say(f"({said})")
    return rows, said


def _row(rating: Rating) -> tuple[str, ...]:
    return (
        str(rating.rank),
        rating.player.name,
        rating.player.kind.value,
        f"{rating.score:.2f}",
        f"{rating.mu:.2f}",
        f"{rating.sigma:.2f}",
        str(rating.games),
        str(rating.wins),
        str(rating.draws),
        str(rating.losses),
        share(rating.wins, rating.games),
        "pinned" if rating.pinned else "",
    )
