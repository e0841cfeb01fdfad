"""``league ratings``, ``players``, ``payoff`` and ``leaderboard export``: who is how strong."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from league.cli.connection import League, with_league
from league.cli.options import BookName
from league.cli.output import is_terminal, print_table, say, share, when
from league.errors import InvalidInput, nearest
from league.players import Book, PayoffCell, Player, PlayerKind, PlayerState, Rating
from league.runs.files import write_whole

RATINGS = "rank# player kind score# mu# sigma# games# wins# draws# losses# win_rate#"
SPARED = ("losses", "draws", "wins", "win_rate", "kind", "score", "sigma", "games", "rank")
PLAYERS = "player kind role state step# parent marks created_at digest"
PAYOFF = "row column games# wins# draws# losses# win_rate#"
SHADES = (
    (0.2, "on #7f1d1d"),
    (0.4, "on #78350f"),
    (0.6, "on #3f3f46"),
    (0.8, "on #14532d"),
    (1.1, "on #166534"),
)
MOST_COLUMNS = 12
"""Columns of the payoff matrix on a terminal."""

leaderboard = typer.Typer(
    help="Writes the leaderboard to a file.", no_args_is_help=True, add_completion=False
)


@with_league(past=True)
def ratings(
    league: League,
    book: BookName = Book.EVAL,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Add ratings from all games at once, their 95 % intervals, and where the two "
            "disagree.",
        ),
    ] = False,
) -> None:
    """Shows the rating of every player, the best first."""
    if fit and book is Book.TRAIN:
        raise InvalidInput(
            "--fit needs players that stay the same, and learners change between their matches: "
            "use --book eval or --book greedy"
        )
    with league.connect() as client:
        rated = client.ratings(book)
        cells = client.payoff(book) if fit else []
    if not rated:
        say(f"(the book {book.value} has no rating yet)")
    shown, rows = RATINGS, [_rating_row(rating) for rating in rated]
    caption = "score = mu - 3 sigma; win_rate counts wins only, a draw is none"
    if not is_terminal() or any(rating.pinned for rating in rated):
        shown += " anchor"
        rows = [
            (*row, "pinned" if one.pinned else "") for row, one in zip(rows, rated, strict=True)
        ]
    if fit:
        shown += " fit# low# high# disagrees"
    if fit and rated:
        fitted, note = _fitted(rated, cells)
        rows = [(*row, *more) for row, more in zip(rows, fitted, strict=True)]
        caption += f"; {note}"
        say(f"({note})")
    print_table(f"Ratings, book {book.value}", shown, rows, caption=caption, spared=SPARED)


def _rating_row(rating: Rating) -> tuple[str, ...]:
    skill = (f"{value:.2f}" for value in (rating.score, rating.mu, rating.sigma))
    counts = map(str, (rating.games, rating.wins, rating.draws, rating.losses))
    player = rating.player
    win_rate = share(rating.wins, rating.games)
    return (str(rating.rank), player.name, player.kind.value, *skill, *counts, win_rate)


def _fitted(
    rated: Sequence[Rating], cells: Sequence[PayoffCell]
) -> tuple[list[tuple[str, ...]], str]:
    """The columns of the fit for each rating, on the ratings' zero point, and a note on it."""
    from league.stats.ratings.cross_check import cross_check

    check = cross_check(rated, cells)
    rows = []
    for rating in rated:
        name = rating.player.name
        found = check.intervals[name]
        gap = f"mu {check.gaps[name]:+.1f}" if name in check.gaps else ""
        rows.append((*(f"{x:.2f}" for x in (found.estimate, found.low, found.high)), gap))
    note = "fit: all games at once with its 95 % interval"
    return rows, f"{note}, {check.widening:.2f} times as wide as by chance"


@with_league(past=True)
def players(
    league: League,
    kind: Annotated[list[PlayerKind] | None, typer.Option(help="Only this kind.")] = None,
    state: Annotated[list[PlayerState] | None, typer.Option(help="Only this state.")] = None,
) -> None:
    """Lists every player that is or was in the league, in order of registration."""
    with league.connect() as client:
        found = client.players(kinds=kind or [], states=state or [])
    print_table("Players", PLAYERS, [_player_row(player) for player in found])


def _player_row(player: Player) -> tuple[str, ...]:
    marks = [("milestone", player.milestone), ("held out", player.held_out)]
    return (
        player.name,
        player.kind.value,
        player.role.value,
        player.state.value,
        str(player.step),
        player.parent,
        ", ".join(mark for mark, is_set in marks if is_set),
        when(player.created_at),
        player.digest[:12],
    )


@with_league(past=True)
def payoff(
    league: League,
    book: BookName = Book.EVAL,
    row: Annotated[
        list[str] | None, typer.Option(metavar="PLAYER", help="Only this row; repeatable.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="PLAYER", help="Only this column; repeatable.")
    ] = None,
) -> None:
    """Shows how often each player won against each other: a matrix on a terminal."""
    rows, chosen = row or [], column or []
    with league.connect() as client:
        _check_names([*rows, *chosen], [player.name for player in client.players()])
        cells = client.payoff(book, rows=rows, columns=chosen)
        order = [rating.player.name for rating in client.ratings(book)]
    if not cells:
        say(f"(no such matches in the book {book.value} yet)")
    if is_terminal():
        _print_matrix(cells, order, f"Share of matches won by the row, book {book.value}")
    else:
        print_table("Payoff", PAYOFF, [_payoff_row(cell) for cell in cells])


def _check_names(asked: Iterable[str], names: Collection[str]) -> None:
    for name in asked:
        if name not in names:
            hint = nearest(name, names) or "bin/league players lists them"
            raise InvalidInput(f"there is no player {name!r}: {hint}")


def _payoff_row(cell: PayoffCell) -> tuple[str, ...]:
    counts = (cell.games, cell.wins, cell.draws, cell.losses)
    return (cell.row, cell.column, *map(str, counts), share(cell.wins, cell.games))


def _print_matrix(cells: Sequence[PayoffCell], order: Sequence[str], title: str) -> None:
    """Best players first; the columns are the opponents met most often."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    by_pair = {(cell.row, cell.column): cell for cell in cells}
    met = {name: sum(cell.games for cell in cells if cell.column == name) for _, name in by_pair}
    shown = _ranked(set(sorted(met, key=lambda name: -met[name])[:MOST_COLUMNS]), order)
    hidden = len(met) - len(shown)
    note = f"{hidden} columns hidden: name them with --column" if hidden else "best players first"
    table = Table(title=title, caption=note, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for name in shown:
        table.add_column(name, justify="right")
    for row in _ranked({cell.row for cell in cells}, order):
        drawn = [_shaded(by_pair.get((row, column))) for column in shown]
        table.add_row(Text(row), *(Text(text, style=style) for text, style in drawn))
    Console().print(table)


def _ranked(names: set[str], order: Sequence[str]) -> list[str]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _shaded(cell: PayoffCell | None) -> tuple[str, str]:
    if cell is None or not cell.games:
        return "", ""
    won = cell.wins / cell.games
    return f"{100 * won:.0f}%", next(style for bound, style in SHADES if won < bound)


@leaderboard.callback()
def _group() -> None:
    """Makes typer keep the name `export`, though it is the only command."""


@leaderboard.command()
@with_league(past=True)
def export(
    league: League,
    format: Annotated[
        str | None,
        typer.Option(metavar="csv|html|json|md", help="Default: the ending of FILE, else md."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: print it.")] = None,
    title: Annotated[
        str | None, typer.Option(help="Heading (default: the run folder's name, or the address).")
    ] = None,
) -> None:
    """Writes ratings with intervals, greedy matches, and (json, html) payoffs and shares."""
    from league.views.leaderboard import FORMATS, gather

    name = format or (out.suffix.lstrip(".") if out else "md")
    if name not in FORMATS:
        raise InvalidInput(f"{format or out} names no format: add --format {'|'.join(FORMATS)}")
    heading = title or league.address or league.folder().resolve().name
    if league.at and not title:
        heading += f", as of {league.at}"
    with league.connect() as client:
        board = gather(client, title=heading, now=time.time())
    text = FORMATS[name](board)
    if out is None:
        print(text, end="")
        return
    write_whole(out, text)
    say(f"{out} holds {len(board.rows)} players and {board.matches} matches")
