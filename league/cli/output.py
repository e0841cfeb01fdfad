"""What commands print: rich tables on a terminal, tab-separated lines for other programs."""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size

from league.views.text import plain, share, when

__all__ = ["Column", "columns", "operator", "plain", "print_pairs", "print_table", "share", "when"]


@dataclass(frozen=True)
class Column:
    """One column: its heading, and whether it holds numbers (right-aligned on a terminal)."""

    name: str
    number: bool = False


def columns(names: str) -> tuple[Column, ...]:
    """Columns from their names in one string; ``#`` after a name marks numbers."""
    return tuple(Column(name.rstrip("#"), name.endswith("#")) for name in names.split())


def is_terminal() -> bool:
    """Whether the output goes to a terminal."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Prints a message for the person to stderr, apart from the output."""
    print(text, file=sys.stderr, flush=True)


def operator() -> str:
    """Who gives a command, for the log: ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:80]


def print_table(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    spared: Sequence[str] = (),
) -> None:
    """Prints one line per row; without a terminal, headings and tab-separated values.

    Args:
        title: shown on a terminal only, like `caption`.
        columns: headings, one for each cell of a row.
        rows: cells as text.
        caption: a note under the table.
        spared: columns that a narrow terminal leaves out, the first one first.
    """
    lines = [list(map(plain, row)) for row in rows]
    if not is_terminal():
        print("\t".join(column.name for column in columns))
        for row in lines:
            print("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns, lines = _fitting(columns, lines, spared)
    table = Table(
        title=title, caption=caption or None, title_justify="left", caption_justify="left"
    )
    for column in columns:
        table.add_column(column.name, justify="right" if column.number else "left", no_wrap=True)
    for row in lines:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _fitting(
    columns: Sequence[Column], rows: list[list[str]], spared: Sequence[str]
) -> tuple[Sequence[Column], list[list[str]]]:
    for name in spared:
        cells = ([column.name, *cells] for column, *cells in zip(columns, *rows, strict=True))
        widths = [max(map(len, column)) for column in cells]
        if sum(widths) + 3 * len(widths) + 1 <= get_terminal_size().columns:
            break
        places = [place for place, column in enumerate(columns) if column.name != name]
        columns = [columns[place] for place in places]
        rows = [[row[place] for place in places] for row in rows]
    return columns, rows


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints lines of ``name  value``, aligned on a terminal, tab-separated elsewhere."""
    listed = [(plain(name), plain(value)) for name, value in pairs]
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        print(f"{name:<{width}}  {value}" if is_terminal() else f"{name}\t{value}")
