"""Defines ``league ratings``, ``players``, ``payoff`` and ``leaderboard export``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from league.console.options import BookName, Heading
from league.console.output import is_terminal, print_table, say, share, when
from league.contest.command import LeagueContext, PastLeagueCommand
from league.errors import InvalidInput
from league.players import Book, PayoffCell, PlayerKind, PlayerState, name_in_book
from league.runs.files import write_whole
from league.stats.payoff import Stakes, paid_each

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

RATINGS = "rank# player kind score# mu# sigma# elo# games# wins# draws# losses# win_rate# anchor"
SPARED = (
    "anchor fit_elo elo_low elo_high losses draws wins win_rate kind sigma games score rank elo"
)
CAPTION = "score = mu - 3 sigma; elo is mu in Elo; win_rate counts wins only, a draw is none"
PLAYERS = "player kind role state step# parent marks created_at digest"
PAYOFF = "row column games# wins# draws# losses# win_rate#"
PAID = " payoff# interval#"
leaderboard = typer.Typer(
    help="Writes the leaderboard to a file.",
    rich_help_panel=Heading.WRITE,
    no_args_is_help=True,
    add_completion=False,
)


@app.command(cls=PastLeagueCommand)
def ratings(
    context: LeagueContext,
    book: BookName = Book.EVAL,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Add ratings from a fit of all games at once, their 95 % intervals, and where mu "
            "and the fit disagree.",
        ),
    ] = False,
) -> None:
    """Shows the rating of every player and mixture, the best first. Removed rivals are left out."""
    if fit and book is Book.TRAIN:
        raise InvalidInput(
            "--fit needs players that stay the same, and learners change between their matches: "
            "use --book eval or --book greedy"
        )
    from league.views.leaderboard import is_removed, standings

    with context.league.connect() as client:
        found, _, check = standings(client, book, most_fitted=math.inf if fit else 0)
        unit = client.status().payoff_unit or "payoff"
    if not found:
        say(f"(the book {book.value} has no rating yet)")
    heads, caption = RATINGS, CAPTION
    if has_payoffs := any("payoff" in row for row in found):
        heads += " payoff#"
        caption += f"; payoff: {unit} per match, by which players are rated"
    if fit:
        heads += " fit# low# high# fit_elo# elo_low# elo_high# disagrees"
    if check:
        note = "fit: all games at once with its 95 % interval"
        say(f"({note}, {check.widening:.2f} times as wide as by chance)")
        say(f"({check.words()})")
    removed = [row["player"] for row in found if is_removed(row)]
    if removed:
        say(f"(left out, because they were removed: {', '.join(removed)})")
    rows = []
    for row in found:
        if row["player"] in removed:
            continue
        counts = [str(row[name]) for name in ("games", "wins", "draws", "losses")]
        texts = [f"{row[name]:.2f}" for name in ("score", "mu", "sigma")]
        texts += [f"{row['elo']:.0f}", *counts]
        texts += [share(row["wins"], row["games"]), "pinned" if row["pinned"] else ""]
        if has_payoffs:
            texts.append("" if row["payoff"] is None else f"{row['payoff']:+.2f}")
        if fit:
            texts += [f"{row[name]:.2f}" for name in ("fit", "fit_low", "fit_high")]
            texts += [f"{row[name]:.0f}" for name in ("fit_elo", "elo_low", "elo_high")]
            texts.append("" if row["disagrees"] is None else f"mu {row['disagrees']:+.1f}")
        rows.append((str(row["rank"] or ""), row["player"], row["kind"], *texts))
    print_table(f"Ratings, book {book.value}", heads, rows, caption=caption, spared=SPARED)


@app.command(cls=PastLeagueCommand)
def players(
    context: LeagueContext,
    kind: Annotated[list[PlayerKind] | None, typer.Option(help="Only this kind.")] = None,
    state: Annotated[list[PlayerState] | None, typer.Option(help="Only this state.")] = None,
) -> None:
    """Lists every player that is or was in the league, in order of registration."""
    with context.league.connect() as client:
        listed = client.players(kinds=kind or [], states=state or [])
    rows = [
        (
            *(
                player.name,
                player.kind.value,
                player.role.value,
                player.state.value,
                str(player.step),
                player.parent,
            ),
            "milestone" if player.milestone else "held out" if player.held_out else "",
            when(player.created_at),
            player.digest[:12],
        )
        for player in listed
    ]
    print_table("Players", PLAYERS, rows, spared="created_at role digest parent marks kind")


@app.command(cls=PastLeagueCommand)
def payoff(
    context: LeagueContext,
    book: BookName = Book.EVAL,
    row: Annotated[
        list[str] | None, typer.Option(metavar="PLAYER", help="Only this row; repeatable.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(metavar="PLAYER", help="Only this column; repeatable.")
    ] = None,
) -> None:
    """Shows the results of each pair of players. On a terminal, several players make a matrix."""
    with context.league.connect() as client:
        known = {player.name: player for player in client.players()}
        rated = client.ratings(book)
        rows = [name_in_book(name, book, known, rated) for name in row or ()]
        columns = [name_in_book(name, book, known, rated) for name in column or ()]
        cells = client.payoff(book, rows=rows, columns=columns)
        unit = client.status().payoff_unit or "payoff"
    if not cells:
        say(f"(no such matches in the book {book.value} yet)")
    sides = {cell.row for cell in cells}, {cell.column for cell in cells}
    if is_terminal() and min(map(len, sides)) > 1:
        order = [rating.player.name for rating in rated]
        quantity = f"{unit.capitalize()} per match" if paid_each(cells) else "Share of matches won"
        _print_matrix(cells, order, f"{quantity} by the row, book {book.value}")
        return
    stakes, listed = Stakes.of(cells), []
    for cell in cells:
        counts = map(str, (cell.games, cell.wins, cell.draws, cell.losses))
        paid = stakes.mean(cell)
        texts = paid and (f"{paid.value:+.2f}", f"{paid.low:+.2f} to {paid.high:+.2f}")
        listed.append(
            (cell.row, cell.column, *counts, share(cell.wins, cell.games), *(texts or ()))
        )
    heads, caption = PAYOFF, ""
    if stakes.stake:
        heads, caption = PAYOFF + PAID, f"payoff: {unit} per match, with its 95 % interval"
    print_table("Payoff", heads, listed, caption=caption)


def _print_matrix(cells: Sequence[PayoffCell], order: Sequence[str], title: str) -> None:
    """Prints a matrix with the best players first. Columns that don't fit are left out."""
    names = [*order, *sorted({cell.row for cell in cells} - set(order))]
    stakes, met = Stakes.of(cells), {(cell.row, cell.column): cell for cell in cells}

    def text(cell: PayoffCell) -> str:
        paid = stakes.mean(cell)
        return f"{paid.value:+.2f}" if paid else f"{100 * cell.wins / cell.games:.0f}%"

    columns = [name for name in names if any((row, name) in met for row in names)]
    rows = [
        (row, *(text(met[row, name]) if (row, name) in met else "" for name in columns))
        for row in names if any((row, name) in met for name in columns)
    ]  # fmt: skip
    heads = ["", *(f"{name}#" for name in columns)]
    caption = "best players first; --column chooses columns"
    print_table(title, heads, rows, caption=caption, spared=columns[::-1])


@leaderboard.callback()
def _group() -> None:
    """Makes typer keep the name `export`, although there is only one command."""


@leaderboard.command(cls=PastLeagueCommand)
def export(
    context: LeagueContext,
    format: Annotated[
        str | None,
        typer.Option(metavar="csv|html|json|md", help="Default: the ending of FILE, else md."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: print it.")] = None,
    title: Annotated[
        str | None, typer.Option(help="Heading (default: the run folder's name, or the address).")
    ] = None,
) -> None:
    """Writes ratings with intervals and greedy results. The formats json and html also have the
    payoffs of pairs and the shares of opponents.
    """
    league = context.league
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
    mixtures = sum(row["kind"] == "mixture" for row in board.rows)
    others = f", {mixtures} mixtures" if mixtures else ""
    say(f"{out} holds {len(board.rows) - mixtures} players{others} and {board.matches} matches")
