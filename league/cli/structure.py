"""``league structure``: who is worth playing, how much is cyclic, who is a copy."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.cli.connection import League, with_league
from league.cli.options import BookName, Plot, check_png
from league.cli.output import is_terminal, print_pairs, print_table, say
from league.errors import InvalidInput
from league.players import Book, Rating
from league.runs.files import write_whole

if TYPE_CHECKING:  # numpy and scipy take half a second to load
    from league.stats.structure.study import Estimate, Structure

PLAYERS = (
    "player nash# nash_low# nash_high# in_support# score# alpha_rank# alpha_low# alpha_high# rank# "
    "rating# games# cluster#"
)
CYCLES = "first beats who_beats and_back# p_value# games#"
CLUSTERS = "cluster# nash# nash_low# nash_high# players# members"
SPARED = ("games", "in_support", "cluster", "alpha_rank", "rating")
SHOWN_MASS = 0.01
"""Clusters of one player are listed when their mass may be as large as this."""
Groups = list[tuple[str, str]]


@with_league(past=True)
def structure(
    league: League,
    book: BookName = Book.EVAL,
    games_at_least: Annotated[
        int, typer.Option(min=1, metavar="N", help="Leave out players with fewer games.")
    ] = 1,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="Lines of each table.")] = 15,
    payoff: Annotated[
        str,
        typer.Option(
            metavar="margins|logits",
            help="Payoffs of the Nash mixture: margins, wins less losses, or log odds.",
        ),
    ] = "margins",
    alpha: Annotated[
        float | None,
        typer.Option(metavar="A", help="α of α-rank (default: the limit of large α)."),
    ] = None,
    within: Annotated[
        float,
        typer.Option(metavar="P", help="Near-copies differ by at most P percentage points."),
    ] = 10.0,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP GROUP",
            help="Compare two groups at their best, such as --versus 'main@*' based; repeatable.",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=0, metavar="D", help="Draws for the intervals (0: 20 to 200).")
    ] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every figure.")
    ] = None,
    plot: Plot = None,
) -> None:
    """Shows the league's Nash mixture, α-rank, cycles, and clusters of near-copies."""
    check_png(plot)
    groups = _checked(payoff, alpha, within, versus or [])
    with league.connect() as client:
        cells, ratings = client.payoff(book), client.ratings(book)
    from league.stats.structure.study import Choices, study
    from league.stats.structure.table import table_of

    table = table_of(cells, ratings, games_at_least)
    ratings = [rating for rating in ratings if rating.player.name in table.names]
    found = study(
        table,
        Choices(payoff=payoff, draws=draws, cycles=top, within=within / 100, alpha=alpha),  # type: ignore[arg-type]
        [(_members(one, table.names), _members(two, table.names)) for one, two in groups],
    )
    print_structure(found, ratings, top, groups)
    if json_file is not None:
        _write_json(json_file, found, ratings, book, groups)
    if plot is not None:
        from league.views.structure_figure import draw  # matplotlib takes a second to load

        title = f"Structure of the league, book {book.value}"
        write_whole(plot, draw(found, [rating.score for rating in ratings], title))
        say(f"{plot} shows {len(ratings)} players")


def _checked(
    payoff: str, alpha: float | None, within: float, versus: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs of groups; raises `InvalidInput` for a flag with a wrong value."""
    if payoff not in ("margins", "logits"):
        raise InvalidInput(f"--payoff {payoff!r} is unknown: use margins or logits")
    for flag, value in (("--alpha", alpha), ("--within", within)):
        if value is not None and not 0.0 < value < math.inf:
            raise InvalidInput(f"{flag} {value:g} must be a number above 0")
    if len(versus) % 2:
        raise InvalidInput(f"--versus compares two groups, and {versus[-1]!r} has no partner")
    return list(zip(versus[::2], versus[1::2], strict=True))


def _members(pattern: str, names: Sequence[str]) -> list[int]:
    found = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise InvalidInput(
            f"no player with enough matches is called {pattern!r}: bin/league ratings lists them"
        )
    return found


def _write_json(
    file: Path, found: Structure, ratings: Sequence[Rating], book: Book, groups: Groups
) -> None:
    from league.stats.structure.study import as_json

    compared = [
        {"first": first, "second": second}
        | {name: float(getattr(one, name)) for name in ("value", "low", "high")}
        for (first, second), one in zip(groups, found.performances, strict=True)
    ]
    content = as_json(found) | {"book": book.value, "versus": compared}
    for player, rating in zip(content["players"], ratings, strict=True):
        player |= {"rank": rating.rank, "rating": rating.score}
    write_whole(file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    say(f"{file} holds all of it")


def print_structure(found: Structure, ratings: Sequence[Rating], top: int, groups: Groups) -> None:
    """Prints a summary, then players, three-cycles and clusters.

    Args:
        found: the analysis.
        ratings: those of the table's players, in its order.
        top: lines of each table.
        groups: names of the groups that were compared.
    """
    print_pairs(_summary(found, groups))
    print()
    shown = [int(index) for index in found.order[:top]]
    hidden = len(ratings) - len(shown)
    rows = [_player_row(found, ratings[index], index) for index in shown]
    caption = f"{hidden} more: --top {len(ratings)} shows all" if hidden else ""
    _print_intervals("Players, best against the mixture first", PLAYERS, rows, caption)
    if found.cycles:
        print()
        rows = [_cycle_row(found, place) for place in range(len(found.cycles))]
        caption = "p_value: corrected for looking at all"
        _print_intervals("Strongest three-cycles", CYCLES, rows, caption)
    print()
    mass = found.cluster_mass
    listed = sorted(
        (-float(mass.value[number]), -len(members), number, members)
        for number, members in enumerate(found.clusters.members())
        if len(members) > 1 or mass.high[number] >= SHOWN_MASS
    )
    rows = [_cluster_row(found, number, members) for _, _, number, members in listed[:top]]
    points = f"{100 * found.choices.within:g} percentage points"
    _print_intervals("Clusters", CLUSTERS, rows, f"members differ by at most {points}")


def _summary(found: Structure, groups: Groups) -> list[tuple[str, str]]:
    table, cyclicity = found.table, found.cyclicity
    count = len(table.names)
    matches = int(table.games_NN.sum()) // 2
    pairs = count * (count - 1) // 2
    met = f"{count}; {found.pairs_met:,} of {pairs:,} pairs met, {matches:,} matches"
    lines = [
        ("players", met),
        ("unknown pairs", f"as the ratings predict, worth {table.prior_games:.1f} games"),
        ("Nash mixture", _mixture(found)),
        ("cyclic part", _cyclic(cyclicity.share, cyclicity.by_chance, cyclicity.p_value)),
        ("three-cycles", f"{found.sure_cycles:,} sure ones, corrected for looking at all of them"),
        ("clusters", f"{found.clusters.count} of {count} players"),
    ]
    for (first, second), one in zip(groups, found.performances, strict=True):
        text = f"{_interval(one)} of a match, each at its best mixture"
        lines.append((f"{first} against {second}", text))
    return lines


def _mixture(found: Structure) -> str:
    masses = sorted(zip(-found.mass.value, found.table.names, strict=True))
    main = [f"{name} {_share(-mass)}" for mass, name in masses[:4] if -mass >= 0.005]
    rest = sum(-mass for mass, _ in masses[len(main) :])
    return ", ".join([*main, f"others {_share(rest)}"] if rest >= 0.005 else main)


def _cyclic(share: float, by_chance: float, p_value: float) -> str:
    if math.isnan(share):
        return "none: all players are equal"
    verdict = "no more than by chance" if p_value > 0.05 else "a rating can't express this part"
    chance = f"p {p_value:.3f}; up to {_share(by_chance)} by chance"
    return f"{_share(share)} of the payoff ({chance}): {verdict}"


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _interval(estimate: Estimate) -> str:
    value, low, high = (float(x) for x in (estimate.value, estimate.low, estimate.high))
    return f"{_share(value)} ({_share(low)} to {_share(high)})"


def _print_intervals(
    title: str, columns: str, rows: Sequence[tuple[str, ...]], caption: str
) -> None:
    """On a terminal, shows a value and its interval in one column."""
    if not is_terminal():
        print_table(title, columns, rows)
        return
    shown = columns.split()
    kept = [column for column in shown if not column.endswith(("_low#", "_high#"))]
    joined = []
    for row in rows:
        cells: list[str] = []
        for column, cell in zip(shown, row, strict=True):
            if column.endswith("_low#"):
                cells[-1] += f" ({cell.rstrip('%')}–"
            elif column.endswith("_high#"):
                cells[-1] += f"{cell.rstrip('%')})"
            else:
                cells.append(cell)
        joined.append(cells)
    print_table(title, kept, joined, caption=caption, spared=SPARED)


def _player_row(found: Structure, rating: Rating, index: int) -> tuple[str, ...]:
    mass, alpha = found.mass, found.alpha_mass
    nash = (mass.value, mass.low, mass.high, found.supported_N)
    score = float(found.score.value[index])
    return (
        rating.player.name,
        *(_share(share_N[index]) for share_N in nash),
        f"{0.0 if abs(score) < 5e-4 else score:.3f}",  # without the sign of a rounded zero
        *(_share(share_N[index]) for share_N in (alpha.value, alpha.low, alpha.high)),
        str(rating.rank),
        f"{rating.score:.2f}",
        str(rating.games),
        str(found.clusters.cluster_N[index] + 1),
    )


def _cycle_row(found: Structure, place: int) -> tuple[str, ...]:
    cycle, names = found.cycles[place], found.table.names
    first, second, third = (names[index] for index in cycle.players)
    one, two, three = (f"{100 * chance:.0f}%" for chance in cycle.chances)
    games = "/".join(map(str, cycle.games))
    return first, f"{second} {one}", f"{third} {two}", three, f"{cycle.p_value:.2g}", games


def _cluster_row(found: Structure, number: int, members: Sequence[int]) -> tuple[str, ...]:
    names = [found.table.names[index] for index in members]
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    mass = found.cluster_mass
    shares = (_share(share_C[number]) for share_C in (mass.value, mass.low, mass.high))
    return (str(number + 1), *shares, str(len(names)), listed)
