"""Prints the output of commands: tables on a terminal, tab-separated lines for other programs."""

from __future__ import annotations

import getpass
import socket
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size

from league.console.text import Words, plain, share, when

__all__ = ["operator", "plain", "print_pairs", "print_table", "share", "when"]

SECONDS_APART = 10.0
"""Seconds between two lines of progress if they go to a file or another program."""
LEAST_FOLDED = 20
"""Smallest width of a column that takes several lines, with its padding and border."""


def is_terminal() -> bool:
    """Returns whether the output goes to a terminal."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Prints a message for the user to stderr, separate from the output."""
    print(plain(text), file=sys.stderr, flush=True)


def folded(text: str, *, indent: int = 0) -> str:
    """Returns a line that is broken between words where a terminal ends, with `indent` spaces
    before each later part. Without a terminal the line stays whole.
    """
    if not is_terminal():
        return text
    return textwrap.fill(
        text,
        get_terminal_size().columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def operator() -> str:
    """Returns the user who gives a command, for the log: ``user@host``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:80]


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yields a function that shows a line of progress. On a terminal, each line replaces the
    previous line. Elsewhere, a line is printed every few seconds.
    """
    said_at = time.monotonic()

    def draw(text: str) -> None:
        nonlocal said_at
        if sys.stderr.isatty():
            text = plain(text)[: get_terminal_size().columns - 1]
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        elif text and time.monotonic() - said_at >= SECONDS_APART:
            said_at = time.monotonic()
            say(text)

    try:
        yield draw
    finally:
        draw("")


def print_table(
    title: str,
    columns: str | Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    caption: str = "",
    spared: str | Sequence[str] = (),
) -> None:
    """Prints a table. Without a terminal, headings and values are separated by tabs.

    On a narrow terminal, the columns in `spared` are left out, and the caption names them. If that
    is not enough, the widest column of words takes several lines. If even that is not enough,
    further columns are left out, from right to left. The first column always stays.

    Args:
        title: title of the table on a terminal.
        columns: headings. A ``#`` at the end marks numbers, which a terminal aligns to the right.
        rows: cells of each row.
        caption: text below the table on a terminal.
        spared: columns to leave out first on a narrow terminal, in this order.
    """
    heads, spared = (one.split() if isinstance(one, str) else one for one in (columns, spared))
    names = [plain(head.rstrip("#")) for head in heads]
    lines = [list(map(plain, row)) for row in rows]
    if not is_terminal():
        for cells in (names, *lines):
            print("\t".join(cells))
        return
    from rich.console import Console
    from rich.table import Table

    widths = {
        name: max(map(len, cells)) + 3
        for name, *cells in ((line[0], *line) for line in zip(names, *lines, strict=True))
    }
    room, folded = get_terminal_size().columns - 1, ""
    words = [name for head, name in zip(heads, names, strict=True) if not head.endswith("#")][1:]
    for name in (*spared, *names[:0:-1]):
        excess = sum(widths.values()) - room
        widest = max((one for one in words if one in widths), key=widths.__getitem__, default="")
        if excess > 0 and name not in spared and widest and widths[widest] - excess >= LEAST_FOLDED:
            folded = widest
        if excess <= 0 or folded:
            break
        widths.pop(name, None)
    if gone := [name for name in names if name not in widths]:
        listed = ", ".join(gone[:8]) + ", …" * (len(gone) > 8)
        caption = "; ".join([*filter(None, [caption.rstrip(".")]), f"too wide here: {listed}"])
    table = Table(
        title=Words(title, "table.title"),
        caption=Words(caption, "table.caption") if caption else None,
        title_justify="left",
        caption_justify="left",
    )
    for head, name in zip(heads, names, strict=True):
        if name in widths:
            side = "right" if head.endswith("#") else "left"
            table.add_column(Words(name), justify=side, no_wrap=name != folded, overflow="fold")
    for line in lines:
        pairs = zip(names, line, strict=True)
        table.add_row(*(Words(cell) for name, cell in pairs if name in widths))
    Console().print(table)


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Prints lines of names and values, aligned on a terminal and tab-separated elsewhere."""
    listed = [(plain(name), plain(value)) for name, value in pairs]
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        print(f"{name:<{width}}  {value}" if is_terminal() else f"{name}\t{value}")
