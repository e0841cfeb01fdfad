"""Shows payoffs: the results of pairs of players, the Nash mixture, and the cyclic part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from league.console.text import percent
from league.metrics import wilson_interval
from league.players import Book, PayoffCell, PlayerKind, Rating
from league.stats.payoff import Stakes
from league.views.dashboard.blocks import Block, Chart, Filters, choice, filters, player_link
from league.views.dashboard.source import Source
from league.views.html import facts, section, table
from league.views.style import SCREEN_PALETTE

if TYPE_CHECKING:  # scipy takes half a second to load
    from league.stats.structure.study import Structure

PLAYERS = 24
"""Number of rows and columns of the map: the bots, the best and the newest players."""
BOOKS = {"eval": "clean matches", "train": "training"}
BLUE, GREY = SCREEN_PALETTE[0], SCREEN_PALETTE[8]
LOSS_WIN = ["#b3402e", "#e8b3a6", "#eef0f2", "#a8cbe6", "#1b6ca8"]
CYCLES, DRAWS = 5, 40
STRUCTURE_SECONDS = 30.0
"""Largest age of the Nash mixture and the cycles, which take a second to compute."""


def show(source: Source, parameters: Mapping[str, str]) -> Iterator[Block]:
    book = Book(parameters["book"]) if parameters.get("book") in BOOKS else Book.EVAL
    names = chosen(source.ratings(book))
    cells = source.payoff(book, names, names) if names else []
    yield Filters(section("Who beats whom", filters(choice("book", "matches", BOOKS, book.value))))
    if not cells:
        yield section("Nothing yet", words="No two players have met in these matches.")
        return
    yield _heat_map(names, cells)
    structure = source.kept(
        ("structure", book),
        STRUCTURE_SECONDS,
        lambda: _study(cells, source.ratings(book), names),
        behind=True,
    )
    yield from _structure(structure)


def chosen(ratings: Sequence[Rating], most: int = PLAYERS) -> tuple[str, ...]:
    """Chooses the players that the map shows: all bots, then the newest and the best of the rest.

    Args:
        ratings: the players, best first.
        most: the largest number of players. Half of them may be others, however many the bots are.

    Returns:
        The players' names, best first.
    """
    bots = [rating for rating in ratings if rating.player.kind is PlayerKind.BOT]
    others = [rating for rating in ratings if rating.player.kind is not PlayerKind.BOT]
    room = max(most - len(bots), most // 2)
    newest = sorted(others, key=lambda rating: -rating.player.step)[: room // 2]
    names = {rating.player.name for rating in (*bots, *newest)}
    for rating in others:
        if len(names) >= len(bots) + room:
            break
        names.add(rating.player.name)
    return tuple(rating.player.name for rating in ratings if rating.player.name in names)


def _study(
    cells: Sequence[PayoffCell], ratings: Sequence[Rating], names: Sequence[str]
) -> Structure:
    from league.stats.structure.study import study
    from league.stats.structure.table import table_of

    shown = [rating for rating in ratings if rating.player.name in names]
    return study(table_of(cells, shown, 1), cycles=CYCLES, draws=DRAWS)


def _heat_map(names: Sequence[str], cells: Sequence[PayoffCell]) -> Chart:
    rows, columns = list(names)[::-1], list(names)
    data: list[dict[str, Any]] = []
    stakes = Stakes.of(cells)
    for cell in cells:
        if not cell.games or cell.row == cell.column:
            continue
        won, drawn, lost = stakes.counted(cell)
        score = (won + drawn / 2) / (won + drawn + lost)
        interval = wilson_interval(cell.wins, cell.games)
        counts = f"{cell.wins:,} won, {cell.draws:,} drawn, {cell.losses:,} lost"
        bounds = f"wins {percent(interval.low)} to {percent(interval.high)}"
        if paid := stakes.mean(cell):
            bounds = f"paid {paid.value:+.2f} per match ({paid.low:+.2f} to {paid.high:+.2f})"
        data.append(
            {
                "value": [columns.index(cell.column), rows.index(cell.row), round(100 * score)],
                "label": {"color": "#fff" if abs(score - 0.5) > 0.3 else "#1b1f27"},
                "name": f"{cell.row} against {cell.column}: {counts}; {bounds}",
            }
        )
    labels = {"interval": 0, "width": 110, "overflow": "truncate", "fontSize": 11, "color": GREY}
    options = {
        "grid": {"left": 130, "right": 10, "top": 10, "bottom": 120},
        "xAxis": {"type": "category", "data": columns, "axisLabel": {**labels, "rotate": 50}},
        "yAxis": {"type": "category", "data": rows, "axisLabel": labels},
        "visualMap": {
            "show": False, "min": 0, "max": 100, "inRange": {"color": LOSS_WIN},
        },
        "tooltip": {"trigger": "item", "renderMode": "richText", "formatter": "{b}"},
        "series": [
            {
                "type": "heatmap",
                "data": data,
                "label": {"show": True, "fontSize": 10},
            }
        ],
    }  # fmt: skip
    words = (
        "The row's share of the points, in percent: blue wins, red loses. In games with payoffs a "
        "win of a mean stake is a point. Point at a field for its "
        f"counts and interval. The {len(names)} shown are the bots, the newest and the best."
    )
    return Chart(
        title="Points of the row",
        words=words,
        options=options,
        height=180 + 22 * len(names),
        wide=True,
        painted=True,
    )


def _structure(structure: Structure) -> list[Block]:
    names, mass = structure.table.names, structure.mass
    held = [index for index in structure.order if mass.value[index] >= 0.005]
    rows = [
        (
            player_link(names[index]),
            percent(float(mass.value[index])),
            f"{percent(float(mass.low[index]))} to {percent(float(mass.high[index]))}",
        )
        for index in held
    ]
    sure = any(mass.low[index] >= 0.005 for index in held)
    cyclic = structure.cyclicity
    share = "unknown" if np.isnan(cyclic.share) else percent(cyclic.share)
    numbers = {
        "of the payoff is cyclic": f"{share} ({percent(cyclic.low)} to {percent(cyclic.high)})",
        "three-cycles that are sure": f"{structure.sure_cycles:,}",
        "players": f"{len(names)}",
        "pairs that met": f"{structure.pairs_met:,}",
    }
    words = "What an opponent who knows everybody's counts can't beat on average."
    if not sure:
        words += " Which players belong to it is not sure yet: it takes more matches."
    blocks: list[Block] = [
        section(
            "Nash mixture",
            table(("player", "share#", "95 %#"), rows),
            facts(numbers),
            words=words,
            half=True,
        )
    ]
    if structure.cycles:
        blocks.append(_cycles(structure))
    return blocks


def _cycles(structure: Structure) -> Chart:
    names = structure.table.names
    members: dict[str, None] = {}
    edges = []
    for cycle in structure.cycles:
        trio = [names[index] for index in cycle.players]
        members |= dict.fromkeys(trio)
        for first, second in zip(trio, trio[1:] + trio[:1], strict=True):
            edges.append({"source": first, "target": second})
    options = {
        "tooltip": {"renderMode": "richText"},
        "series": [
            {
                "type": "graph",
                "layout": "circular",
                "data": [{"name": name, "symbolSize": 14} for name in members],
                "edges": edges,
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 9,
                "label": {"show": True, "position": "right", "fontSize": 11, "color": GREY},
                "lineStyle": {"curveness": 0.15, "width": 2, "color": BLUE},
                "left": 90, "right": 110, "top": 30, "bottom": 30,
            }
        ],
    }  # fmt: skip
    sure = f"{structure.sure_cycles:,} are sure" if structure.sure_cycles else "none is sure"
    words = f"Three that beat each other in a ring; arrows point to the loser. Of all rings {sure}."
    return Chart(title="Three-cycles", words=words, options=options, height=360)
