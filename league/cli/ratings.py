"""``league ratings``: the leaderboard of a book."""

from __future__ import annotations

import argparse

from league.cli import books, connect
from league.cli.output import Column, print_table, say, share
from league.players import Rating

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
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    books.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with connect.connect(args) as client:
        ratings = client.ratings(books.chosen(args))
    if not ratings:
        say(f"(nobody is rated in the book {args.book} yet)")
    print_table(
        f"Ratings, book {args.book}",
        COLUMNS,
        [_row(rating) for rating in ratings],
        caption="score = mu - 3 sigma; win_rate counts wins only, a draw is none",
    )
    return 0


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
    )
