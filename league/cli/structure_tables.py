"""What ``league structure`` prints: a summary in words, then players, three-cycles and clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from league.cli.output import Column, is_terminal, print_pairs, print_table
from league.players import Rating

if TYPE_CHECKING:  # numpy and scipy take half a second to load
    from league.stats.structure.study import Estimate, Structure

PLAYERS = (
    Column("player"),
    Column("nash", number=True),
    Column("nash_low", number=True),
    Column("nash_high", number=True),
    Column("in_support", number=True),
    Column("score", number=True),
    Column("alpha_rank", number=True),
    Column("alpha_low", number=True),
    Column("alpha_high", number=True),
    Column("rank", number=True),
    Column("rating", number=True),
    Column("games", number=True),
    Column("cluster", number=True),
)
CYCLES = (
    Column("first"),
    Column("beats"),
    Column("who_beats"),
    Column("and_back", number=True),
    Column("p_value", number=True),
    Column("games", number=True),
)
CLUSTERS = (
    Column("cluster", number=True),
    Column("nash", number=True),
    Column("nash_low", number=True),
    Column("nash_high", number=True),
    Column("players", number=True),
    Column("members"),
)
SPARED = ("games", "in_support", "cluster", "alpha_rank", "rating")
"""Columns that a narrow terminal does without, in this order."""
SHOWN_MASS = 0.01
"""A cluster of one player is listed where its mass may be as large."""


def print_structure(
    structure: Structure, ratings: Sequence[Rating], *, top: int, versus: Sequence[Sequence[str]]
) -> None:
    """`top` lines of each table. `ratings`: of the table's players, in its order; `versus`:
    names of the groups that were compared.
    """
    print_pairs(_summary(structure, versus))
    print()
    _print_players(structure, ratings, top)
    if structure.cycles:
        print()
        rows = [_cycle_row(structure, place) for place in range(len(structure.cycles))]
        _print_intervals(
            "Strongest three-cycles", CYCLES, rows, "p_value: corrected for looking at all"
        )
    _print_clusters(structure, top)


def _summary(structure: Structure, versus: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    table, found = structure.table, structure.cyclicity
    count = len(table.names)
    matches = int(table.games_NN.sum()) // 2
    pairs = count * (count - 1) // 2
    lines = [
        (
            "players",
            f"{count}; {structure.pairs_met:,} of {pairs:,} pairs met, {matches:,} matches",
        ),
        ("unknown pairs", f"as the ratings predict, worth {table.prior_games:.1f} games"),
        ("Nash mixture", _mixture(structure)),
        ("cyclic part", _cyclic(found.share, found.by_chance, found.p_value)),
        (
            "three-cycles",
            f"{structure.sure_cycles:,} sure ones, corrected for looking at all of them",
        ),
        ("clusters", f"{structure.clusters.count} of {count} players"),
    ]
    for (ours, theirs), one in zip(versus, structure.performances, strict=True):
        lines.append(
            (f"{ours} against {theirs}", f"{_range(one)} of a match, each at its best mixture")
        )
    return lines


def _mixture(structure: Structure) -> str:
    masses = sorted(zip(-structure.mass.value, structure.table.names, strict=True))
    main = [f"{name} {_share(-mass)}" for mass, name in masses[:4] if -mass >= 0.005]
    rest = sum(-mass for mass, _ in masses[len(main) :])
    return ", ".join([*main, f"others {_share(rest)}"] if rest >= 0.005 else main)


def _cyclic(share: float, by_chance: float, p_value: float) -> str:
    if math.isnan(share):
        return "none: nothing tells the players apart"
    verdict = "no more than chance shows" if p_value > 0.05 else "a rating can't tell this part"
    return f"{_share(share)} of the payoff (p {p_value:.3f}; up to {_share(by_chance)} by chance): {verdict}"


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _range(estimate: Estimate) -> str:
    value, low, high = (float(x) for x in (estimate.value, estimate.low, estimate.high))
    return f"{_share(value)} ({_share(low)} to {_share(high)})"


def _print_players(structure: Structure, ratings: Sequence[Rating], top: int) -> None:
    shown = [int(index) for index in structure.order[:top]]
    hidden = len(ratings) - len(shown)
    rows = [_player_row(structure, ratings[index], index) for index in shown]
    caption = f"{hidden} more: --top {len(ratings)} shows all" if hidden else ""
    _print_intervals("Players, best against the mixture first", PLAYERS, rows, caption)


def _print_clusters(structure: Structure, top: int) -> None:
    mass = structure.cluster_mass
    listed = [
        (-float(mass.value[number]), -len(members), number, members)
        for number, members in enumerate(structure.clusters.members())
        if len(members) > 1 or mass.high[number] >= SHOWN_MASS
    ]
    print()
    within = 100 * structure.choices.within
    rows = [
        _cluster_row(structure, number, members) for _, _, number, members in sorted(listed)[:top]
    ]
    caption = f"members are within {within:g} percentage points of each other"
    _print_intervals("Clusters", CLUSTERS, rows, caption)


def _print_intervals(
    title: str, columns: Sequence[Column], rows: Sequence[tuple[str, ...]], caption: str = ""
) -> None:
    """On a terminal an interval stands in one column with its value, and what can be spared
    leaves first where a line would not fit.
    """
    if not is_terminal():
        print_table(title, columns, rows)
        return
    kept = [column for column in columns if not column.name.endswith(("_low", "_high"))]
    print_table(
        title, kept, [_joined(columns, row) for row in rows], caption=caption, spared=SPARED
    )


def _joined(columns: Sequence[Column], row: Sequence[str]) -> list[str]:
    cells: list[str] = []
    for column, cell in zip(columns, row, strict=True):
        if column.name.endswith("_low"):
            cells[-1] += f" ({cell.rstrip('%')}–"
        elif column.name.endswith("_high"):
            cells[-1] += f"{cell.rstrip('%')})"
        else:
            cells.append(cell)
    return cells


def _player_row(structure: Structure, rating: Rating, index: int) -> tuple[str, ...]:
    mass, alpha = structure.mass, structure.alpha_mass
    shares = (mass.value, mass.low, mass.high, structure.supported_N)
    return (
        rating.player.name,
        *(_share(share_N[index]) for share_N in shares),
        f"{_whole(structure.score.value[index]):.3f}",
        *(_share(share_N[index]) for share_N in (alpha.value, alpha.low, alpha.high)),
        str(rating.rank),
        f"{rating.score:.2f}",
        str(rating.games),
        str(structure.clusters.cluster_N[index] + 1),
    )


def _cycle_row(structure: Structure, place: int) -> tuple[str, ...]:
    cycle, names = structure.cycles[place], structure.table.names
    first, second, third = (names[index] for index in cycle.players)
    one, two, three = (f"{100 * chance:.0f}%" for chance in cycle.chances)
    games = "/".join(map(str, cycle.games))
    return first, f"{second} {one}", f"{third} {two}", three, f"{cycle.p_value:.2g}", games


def _cluster_row(structure: Structure, number: int, members: Sequence[int]) -> tuple[str, ...]:
    names = [structure.table.names[index] for index in members]
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    mass = structure.cluster_mass
    shares = (_share(share_C[number]) for share_C in (mass.value, mass.low, mass.high))
    return (str(number + 1), *shares, str(len(names)), listed)


def _whole(value: float) -> float:
    """Without the sign of a zero that rounding leaves."""
    return 0.0 if abs(value) < 5e-4 else value
