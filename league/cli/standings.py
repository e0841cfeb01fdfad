"""``league ratings``, ``players``, ``payoff`` and ``leaderboard export``: who is how strong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import BookName, Heading
from league.console.output import is_terminal, print_table, say, share, when
from league.contest.command import LeagueContext, PastLeagueCommand
from league.errors import InvalidInput, nearest
from league.players import Book, PayoffCell, PlayerKind, PlayerState, Rating, newest_snapshot
from league.runs.files import write_whole
from league.stats.payoff import Stakes, paid_each

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.ratings.fit import Interval
    from league.stats.structure.mixtures import MixtureRating

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

RATINGS = "rank# player kind score# mu# sigma# elo# games# wins# draws# losses# win_rate# anchor"
SPARED = (
    "anchor fit_elo elo_low elo_high losses draws wins win_rate kind sigma games score rank elo"
)
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
            help="Add ratings from all games at once, their 95 % intervals, and where the two "
            "disagree.",
        ),
    ] = False,
) -> None:
    """Shows the rating of every player and mixture, the best first."""
    if fit and book is Book.TRAIN:
        raise InvalidInput(
            "--fit needs players that stay the same, and learners change between their matches: "
            "use --book eval or --book greedy"
        )
    check = None
    mixtures: list[MixtureRating] = []
    with context.league.connect() as client:
        rated, cells = client.ratings(book), client.payoff(book)
        unit = client.status().payoff_unit or "payoff"
        if rated and book is Book.EVAL:
            from league.stats.structure.mixtures import rated_mixtures

            mixtures = rated_mixtures(client.players(), cells, rated)
        if fit and rated:
            from league.stats.ratings.cross_check import cross_check

            climb = client.payoff(Book.TRAIN, climb=True) if book is Book.EVAL else []
            check = cross_check(rated, cells, client.players(), climb)
    if not rated:
        say(f"(the book {book.value} has no rating yet)")
    heads = RATINGS
    rows: list[tuple[str, ...]] = [_rating_row(rating) for rating in rated]
    caption = "score = mu - 3 sigma; elo is mu in Elo; win_rate counts wins only, a draw is none"
    if paid := paid_each(cells):
        heads += " payoff#"
        caption += f"; payoff: {unit} per match, by which players are rated"
        rows = [(*row, f"{paid[row[1]]:+.2f}") for row in rows]
    if fit:
        heads += " fit# low# high# fit_elo# elo_low# elo_high# disagrees"
    if check:
        for place, rating in enumerate(rated):
            name = rating.player.name
            gap = f"mu {check.gaps[name]:+.1f}" if name in check.gaps else ""
            rows[place] += (*_fitted(check.intervals[name]), gap)
        note = "fit: all games at once with its 95 % interval"
        say(f"({note}, {check.widening:.2f} times as wide as by chance)")
        say(f"({check.words()})")
    for mixture in mixtures:  # among the players, which alone have ranks
        row = _mixture_row(mixture)
        if paid:
            row += (f"{sum(paid[name] * weight for name, weight in mixture.weights.items()):+.2f}",)
        if check:
            row += (*_fitted(check.of_mixture(mixture.weights)), "")
        rows.insert(sum(float(other[3]) >= mixture.score for other in rows), row)
    print_table(f"Ratings, book {book.value}", heads, rows, caption=caption, spared=SPARED)


def _fitted(interval: Interval) -> tuple[str, ...]:
    from league.stats.ratings.elo import elo

    points = interval.estimate, interval.low, interval.high
    return (*(f"{x:.2f}" for x in points), *(f"{elo(x):.0f}" for x in points))


def _skill(of: Rating | MixtureRating) -> tuple[str, ...]:
    from league.stats.ratings.elo import elo

    return (*(f"{value:.2f}" for value in (of.score, of.mu, of.sigma)), f"{elo(of.mu):.0f}")


def _rating_row(rating: Rating) -> tuple[str, ...]:
    counts = map(str, (rating.games, rating.wins, rating.draws, rating.losses))
    player, anchor = rating.player, "pinned" if rating.pinned else ""
    win_rate = share(rating.wins, rating.games)
    skill = _skill(rating)
    return (str(rating.rank), player.name, player.kind.value, *skill, *counts, win_rate, anchor)


def _mixture_row(mixture: MixtureRating) -> tuple[str, ...]:
    counts = map(str, (mixture.games, mixture.wins, mixture.draws, mixture.losses))
    win_rate = share(mixture.wins, mixture.games)
    return ("", mixture.name, "mixture", *_skill(mixture), *counts, win_rate, "")


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
    print_table("Players", PLAYERS, rows)


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
    """Shows how often each player won against each other: a matrix of several on a terminal."""
    with context.league.connect() as client:
        known = {player.name: player for player in client.players()}
        rated = client.ratings(book)

        def resolved(name: str) -> str:  # in a clean book a live player is its newest snapshot
            if name not in known:
                hint = nearest(name, known) or "bin/league players lists them"
                raise InvalidInput(f"there is no player {name!r}: {hint}")
            if book is Book.TRAIN or known[name].kind is not PlayerKind.LIVE:
                return name
            return newest_snapshot(name, known.values(), rated).name

        rows, columns = list(map(resolved, row or ())), list(map(resolved, column or ()))
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
    """Prints a matrix with the best players first. Its columns are the best players that fit."""
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
    """Makes typer keep the name `export`, though it is the only command."""


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
    """Writes ratings with intervals, greedy matches, and (json, html) payoffs and shares."""
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
