"""Defines ``league structure``: which players are worth playing, which results are cyclic,
and which players are near-copies.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, SupportsFloat

import typer

from league.console.options import BookName, Heading, Plot, check_png
from league.console.output import print_pairs, print_table, say
from league.contest.command import LeagueContext, PastLeagueCommand
from league.errors import InvalidInput
from league.players import Book, Rating
from league.runs.files import write_whole

if TYPE_CHECKING:  # numpy and scipy take half a second to load
    from league.stats.structure.study import Structure

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)

PLAYERS = (
    "player nash# nash_low# nash_high# in_support# score# alpha_rank# alpha_low# alpha_high# rank# "
    "rating# games# cluster#"
)
CYCLES = "first beats who_beats and_back# p_value# games#"
CLUSTERS = "cluster# nash# nash_low# nash_high# players# members"
SPARED = "games in_support cluster alpha_low alpha_high alpha_rank nash_low nash_high rating"
SHOWN_MASS = 0.01
"""A cluster of a single player is listed only if the upper end of the interval of its Nash mass is
at least this large.
"""
Groups = tuple[str, str] | None


@app.command(cls=PastLeagueCommand)
def structure(
    context: LeagueContext,
    book: BookName = Book.EVAL,
    games_at_least: Annotated[
        int, typer.Option(min=1, metavar="N", help="Leave out players with fewer games.")
    ] = 1,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="Lines of each table.")] = 15,
    versus: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="GROUP GROUP",
            help="Compare the best mixtures of two groups, such as --versus 'main@*' based.",
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every figure.")
    ] = None,
    plot: Plot = None,
) -> None:
    """Shows the league's Nash mixture, α-rank, cycles, and clusters of near-copies."""
    check_png(plot)
    with context.league.connect() as client:
        cells, ratings = client.payoff(book), client.ratings(book)
        unit = client.status().payoff_unit or "payoff"
    from league.stats.structure.study import study
    from league.stats.structure.table import table_of

    table = table_of(cells, ratings, games_at_least)
    ratings = [rating for rating in ratings if rating.player.name in table.names]
    groups = [_members(pattern, table.names) for pattern in versus or ()]
    result = study(table, [(groups[0], groups[1])] if groups else [], cycles=top)
    print_structure(result, ratings, top, versus, unit)
    if json_file is not None:
        _write_json(json_file, result, ratings, book, versus)
    if plot is not None:
        from league.views.structure_figure import draw  # matplotlib takes a second to load

        title = f"Structure of the league, book {book.value}"
        write_whole(plot, draw(result, [rating.score for rating in ratings], title))
        say(f"{plot} shows {len(ratings)} players")


def _members(pattern: str, names: Sequence[str]) -> list[int]:
    indices = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    if not indices:
        raise InvalidInput(
            f"no player with enough matches is called {pattern!r}: bin/league ratings lists them"
        )
    return indices


def _write_json(
    file: Path, structure: Structure, ratings: Sequence[Rating], book: Book, versus: Groups
) -> None:
    from league.stats.structure.study import as_json

    compared = [
        dict(zip(("first", "second"), versus or (), strict=True))
        | {name: float(getattr(interval, name)) for name in ("value", "low", "high")}
        for interval in structure.performances
    ]
    content = as_json(structure) | {"book": book.value, "versus": compared}
    for player, rating in zip(content["players"], ratings, strict=True):
        player |= {"rank": rating.rank, "rating": rating.score}
    write_whole(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    say(f"{file} holds all of it")


def print_structure(
    structure: Structure, ratings: Sequence[Rating], top: int, versus: Groups, unit: str = "payoff"
) -> None:
    """Prints a summary, then players, three-cycles and clusters, with up to `top` lines each.
    `unit` is the unit of payoffs.
    """
    from league.stats.structure.clusters import WITHIN

    print_pairs(_summary(structure, versus, unit))
    print()
    shown = [int(index) for index in structure.order[:top]]
    hidden = len(ratings) - len(shown)
    rows = [_player_row(structure, ratings[index], index) for index in shown]
    caption = f"{hidden} more: --top {len(ratings)} shows all" if hidden else ""
    title = "Players, best against the mixture first"
    print_table(title, PLAYERS, rows, caption=caption, spared=SPARED)
    if structure.cycles:
        print()
        rows = [_cycle_row(structure, index) for index in range(len(structure.cycles))]
        caption = "p_value: corrected for looking at all"
        print_table("Strongest three-cycles", CYCLES, rows, caption=caption)
    print()
    mass = structure.cluster_mass
    listed = sorted(
        (-float(mass.value[number]), -len(members), number, members)
        for number, members in enumerate(structure.clusters.members())
        if len(members) > 1 or mass.high[number] >= SHOWN_MASS
    )
    rows = [_cluster_row(structure, number, members) for _, _, number, members in listed[:top]]
    apart = f"{2 * WITHIN * structure.table.stake:.2g} {unit} per match"
    caption = (
        f"members differ by at most {apart if structure.table.stake else '10 percentage points'}"
    )
    print_table("Clusters", CLUSTERS, rows, caption=caption)


def _summary(structure: Structure, versus: Groups, unit: str) -> list[tuple[str, str]]:
    table, cyclicity = structure.table, structure.cyclicity
    count = len(table.names)
    matches = int(table.matches_NN.sum()) // 2
    pairs = count * (count - 1) // 2
    met = f"{count}; {structure.pairs_met:,} of {pairs:,} pairs met, {matches:,} matches"
    verdict = "can't express this part" if cyclicity.low > 0 else "may express all of the payoff"
    lines = [
        ("players", met),
        ("unknown pairs", f"as the ratings predict, worth {table.prior_games:.1f} games"),
        ("Nash mixture", _mixture(structure)),
        ("cyclic part", f"{cyclicity} of the payoff: a rating {verdict}"),
        ("three-cycles", f"{structure.sure_cycles:,} sure, corrected for looking at all of them"),
        ("clusters", f"{structure.clusters.count} of {count} players"),
    ]
    if table.stake:
        lines.insert(1, ("values", f"{unit} per match, which ratings follow too"))
    if versus:
        interval = structure.performances[0]
        value, low, high = (
            f"{float(x):+.2f}" if table.stake else _share(x)
            for x in (interval.value, interval.low, interval.high)
        )
        of = f"{unit} per match" if table.stake else "of a match"
        text = f"{value} ({low} to {high}) {of}, each at its best mixture"
        lines.append((f"{versus[0]} against {versus[1]}", text))
    return lines


def _mixture(structure: Structure) -> str:
    masses = sorted(zip(-structure.mass.value, structure.table.names, strict=True))
    main = [f"{name} {_share(-mass)}" for mass, name in masses[:4] if -mass >= 0.005]
    rest = sum(-mass for mass, _ in masses[len(main) :])
    return ", ".join([*main, f"others {_share(rest)}"] if rest >= 0.005 else main)


def _share(value: SupportsFloat) -> str:
    return f"{100 * float(value):.1f}%"


def _player_row(structure: Structure, rating: Rating, index: int) -> tuple[str, ...]:
    mass, alpha = structure.mass, structure.alpha_mass
    nash = (mass.value, mass.low, mass.high, structure.supported_N)
    score = float(structure.score.value[index])
    return (
        rating.player.name,
        *(_share(share_N[index]) for share_N in nash),
        f"{0.0 if abs(score) < 5e-4 else score:.3f}",  # without the sign of a rounded zero
        *(_share(share_N[index]) for share_N in (alpha.value, alpha.low, alpha.high)),
        str(rating.rank),
        f"{rating.score:.2f}",
        str(rating.games),
        str(structure.clusters.cluster_N[index] + 1),
    )


def _cycle_row(structure: Structure, index: int) -> tuple[str, ...]:
    cycle, names = structure.cycles[index], structure.table.names
    first, second, third = (names[index] for index in cycle.players)
    stake = structure.table.stake
    one, two, three = (
        f"{stake * (2 * chance - 1):+.2f}" if stake else f"{100 * chance:.0f}%"
        for chance in cycle.chances
    )
    games = "/".join(map(str, cycle.games))
    return first, f"{second} {one}", f"{third} {two}", three, f"{cycle.p_value:.2g}", games


def _cluster_row(structure: Structure, number: int, members: Sequence[int]) -> tuple[str, ...]:
    names = [structure.table.names[index] for index in members]
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    mass = structure.cluster_mass
    shares = (_share(share_C[number]) for share_C in (mass.value, mass.low, mass.high))
    return (str(number + 1), *shares, str(len(names)), listed)
