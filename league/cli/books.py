"""The flag that chooses a book of results."""

from __future__ import annotations

import argparse

from league.players import Book


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--book",
        choices=[book.value for book in Book],
        default=Book.EVAL.value,
        help="eval: clean matches, keys sampled (default); greedy: the likelier keys; train: while learning",
    )


def chosen(args: argparse.Namespace) -> Book:
    """The book that the flags name."""
    return Book(args.book)
