"""``league structure``: who is worth playing, how cyclic it is, who is a copy of whom."""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from league.cli import books, connect
from league.cli.output import say
from league.cli.structure_tables import print_structure
from league.errors import InvalidInput
from league.players import Rating
from league.runs.files import write_whole

if TYPE_CHECKING:  # scipy and numpy take half a second to load
    from league.stats.structure.study import Structure


def add_arguments(parser: argparse.ArgumentParser) -> None:
    connect.add_arguments(parser)
    connect.add_moment(parser)
    books.add_arguments(parser)
    parser.add_argument(
        "--games-at-least",
        type=_count,
        default=1,
        metavar="N",
        help="leave out who has fewer (default: 1)",
    )
    parser.add_argument(
        "--top",
        type=_count,
        default=15,
        metavar="K",
        help="lines of each table (default: 15)",
    )
    parser.add_argument(
        "--payoff",
        choices=("margins", "logits"),
        default="margins",
        help="what the Nash mixture is one of: margins, wins less losses (default), or log odds",
    )
    parser.add_argument(
        "--alpha",
        type=_positive,
        metavar="A",
        help="α-rank at this α (default: the limit of large α)",
    )
    parser.add_argument(
        "--within",
        type=_positive,
        default=10.0,
        metavar="P",
        help="near-copies differ by at most P percentage points (default: 10)",
    )
    parser.add_argument(
        "--versus",
        nargs=2,
        action="append",
        default=[],
        metavar=("GROUP", "GROUP"),
        help="compare two groups at their best, such as --versus 'main@*' based; repeatable",
    )
    parser.add_argument(
        "--draws",
        type=_count,
        default=0,
        metavar="D",
        help="draws behind the intervals (default: 20 to 200)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write every figure of every player"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw it, a .png")


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def run(args: argparse.Namespace) -> int:
    if args.plot is not None and args.plot.suffix != ".png":
        raise InvalidInput(f"{args.plot} can't be drawn: name a file that ends in .png")
    book = books.chosen(args)
    with connect.connect(args) as client:
        cells, ratings = client.payoff(book), client.ratings(book)
    from league.stats.structure.study import Choices, study
    from league.stats.structure.table import table_of

    table = table_of(cells, ratings, args.games_at_least)
    ratings = [rating for rating in ratings if rating.player.name in table.names]
    structure = study(
        table,
        Choices(
            payoff=args.payoff,
            draws=args.draws,
            cycles=args.top,
            within=args.within / 100,
            alpha=args.alpha,
        ),
        [
            (_members(ours, table.names), _members(theirs, table.names))
            for ours, theirs in args.versus
        ],
    )
    print_structure(structure, ratings, top=args.top, versus=args.versus)
    _write(structure, ratings, args)
    return 0


def _members(pattern: str, names: Sequence[str]) -> list[int]:
    found = [index for index, name in enumerate(names) if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise InvalidInput(
            f"nobody with enough matches is called {pattern!r}: bin/league ratings lists the players"
        )
    return found


def _write(structure: Structure, ratings: Sequence[Rating], args: argparse.Namespace) -> None:
    if args.json is not None:
        from league.stats.structure.study import as_json

        content = as_json(structure) | {
            "book": args.book,
            "versus": _versus(structure, args.versus),
        }
        for player, rating in zip(content["players"], ratings, strict=True):
            player |= {"rank": rating.rank, "rating": rating.score}
        write_whole(args.json, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        say(f"{args.json} holds all of it")
    if args.plot is not None:
        from league.views.structure_figure import draw  # matplotlib takes a second to load

        title = f"Structure of the league, book {args.book}"
        write_whole(args.plot, draw(structure, [rating.score for rating in ratings], title))
        say(f"{args.plot} shows {len(ratings)} players")


def _versus(structure: Structure, patterns: Sequence[Sequence[str]]) -> list[dict[str, object]]:
    return [
        {
            "first": ours,
            "second": theirs,
            "value": float(one.value),
            "low": float(one.low),
            "high": float(one.high),
        }
        for (ours, theirs), one in zip(patterns, structure.performances, strict=True)
    ]
