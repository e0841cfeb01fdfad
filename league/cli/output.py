"""What commands print: rich tables on a terminal, tab-separated lines for other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shutil import get_terminal_size


@dataclass(frozen=True)
class Column:
    """One column: its heading, and whether it holds numbers (right-aligned on a terminal)."""

    name: str
    number: bool = False


def is_terminal() -> bool:
    """Whether a person looks at the output."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """A word to the person, kept apart from the output."""
    print(text, file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """Without control characters: a worker's words must not look like lines of ours, or steer a
    terminal.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def print_table(
    title: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    spared: Sequence[str] = (),
) -> None:
    """One line per row. Elsewhere than on a terminal: a line of headings, then tab-separated
    values.

    `spared` names columns that a narrow terminal does without, in the order in which they leave.
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
        columns, rows = (
            [columns[place] for place in places],
            [[row[place] for place in places] for row in rows],
        )
    return columns, rows


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Lines of ``name  value``, aligned on a terminal, tab-separated elsewhere."""
    listed = [(plain(name), plain(value)) for name, value in pairs]
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        print(f"{name:<{width}}  {value}" if is_terminal() else f"{name}\t{value}")


def when(seconds: float) -> str:
    """Unix seconds as local-free text, "" for none."""
    if seconds <= 0:
        return ""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds")
    # beyond the year 9999, in a log of before that was refused
    except (OSError, OverflowError, ValueError):
        return f"{seconds:g} s"


def share(part: float, whole: float) -> str:
    """A percentage, "" of nothing."""
    return f"{100 * part / whole:.1f}%" if whole else ""
