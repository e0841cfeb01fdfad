"""``league payoff``: who beat whom. A matrix on a terminal, one line per pair for other
programs.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence

from league.cli import books, connect
from league.cli.output import Column, is_terminal, print_table, say, share
from league.errors import InvalidInput, nearest
from league.players import PayoffCell

COLUMNS = (
    Column("row"),
    Column("column"),
    Column("games", number=True),
    Column("wins", number=True),
    Column("draws", number=True),
    Column("losses", number=True),
    Column("win_rate", number=True),
)
SHADES = (
    (0.2, "on #7f1d1d"),
    (0.4, "on #78350f"),
    (0.6, "on #3f3f46"),
    (0.8, "on #14532d"),
    (1.1, "on #166534"),
)
WIDEST = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    connect.add_moment(parser)
    books.add_arguments(parser)
    parser.add_argument(
        "--row", action="append", default=[], metavar="PLAYER", help="only this row; repeatable"
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="PLAYER",
        help="only this column; repeatable",
    )


def run(args: argparse.Namespace) -> int:
    book = books.chosen(args)
    with connect.connect(args) as client:
        _check_names([*args.row, *args.column], [player.name for player in client.players()])
        cells = client.payoff(book, rows=args.row, columns=args.column)
        order = [rating.player.name for rating in client.ratings(book)]
    if not cells:
        say(f"(no such matches in the book {args.book} yet)")
    if is_terminal():
        print_matrix(cells, order, f"Share of matches won by the row, book {args.book}")
    else:
        print_table("Payoff", COLUMNS, [_row(cell) for cell in cells])
    return 0


def _check_names(asked: Iterable[str], names: Collection[str]) -> None:
    for name in asked:
        if name not in names:
            raise InvalidInput(
                f"there is no player {name!r}: {nearest(name, names) or 'bin/league players lists them'}"
            )


def _row(cell: PayoffCell) -> tuple[str, ...]:
    counts = (cell.games, cell.wins, cell.draws, cell.losses)
    return (cell.row, cell.column, *map(str, counts), share(cell.wins, cell.games))


def print_matrix(cells: Sequence[PayoffCell], order: Sequence[str], title: str) -> None:
    """Best players first; the columns are the opponents met most often, as many as fit."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    by_pair = {(cell.row, cell.column): cell for cell in cells}
    rows = _ranked({cell.row for cell in cells}, order)
    met = {name: sum(cell.games for cell in cells if cell.column == name) for _, name in by_pair}
    columns = _ranked(set(sorted(met, key=lambda name: -met[name])[:WIDEST]), order)
    hidden = len(met) - len(columns)
    note = f"{hidden} columns hidden: name them with --column" if hidden else "best players first"
    table = Table(title=title, caption=note, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        drawn = [_cell(by_pair.get((row, column))) for column in columns]
        table.add_row(Text(row), *(Text(text, style=style) for text, style in drawn))
    Console().print(table)


def _ranked(names: set[str], order: Sequence[str]) -> list[str]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _cell(cell: PayoffCell | None) -> tuple[str, str]:
    if cell is None or not cell.games:
        return "", ""
    won = cell.wins / cell.games
    style = next(style for bound, style in SHADES if won < bound)
    return f"{100 * won:.0f}%", style
