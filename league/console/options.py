"""Defines headings and flags that commands share, and a class for flags with several values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from league.errors import InvalidInput
from league.players import Book


class Heading(StrEnum):
    """Lists the headings of commands in ``bin/league --help``, in order."""

    TRAIN = "Train"
    LOOK = "Look at a league"
    MEASURE = "Measure players"
    PLAY = "Play"
    WRITE = "Write files"
    CHANGE = "Change a league"
    LOG = "Look after a run's log"


RUN_HELP = "A run, running or finished (default: the newest in runs/)."
RunDir = Annotated[Path | None, typer.Option(metavar="DIR", help=RUN_HELP)]
MatchName = Annotated[
    str,
    typer.Argument(
        metavar="MATCH|FILE", help="A match id (bin/league replay lists them) or a file."
    ),
]
BookName = Annotated[
    Book,
    typer.Option(
        help="eval: clean matches with sampled keys; greedy: the likelier keys; train: matches "
        "of learners."
    ),
]
Blobs = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The folder of the weights (default: the run's)."),
]
GameName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="brawl, kuhn, matrix:rps, … (default: the run's game)."),
]
Greedy = Annotated[
    bool, typer.Option("--greedy", help="Take the likeliest keys or choices instead of samples.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with all digits.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it to a .png file.")]
Speed = Annotated[float, typer.Option(min=0.01, help="Speed on a terminal; 1 is real time.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the first match and of sampled keys.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="One setting; repeatable."),
]


class SeveralValues(TyperCommand):
    """Lets repeatable options take several values: ``--players a b`` means ``--players a --players
    b``.
    """

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyrefly: ignore[bad-override]
        repeatable = {
            flag for one in self.params if getattr(one, "multiple", False) for flag in one.opts
        }
        spread: list[str] = []
        flag, is_first = "", False
        for word in args:
            if word in repeatable:
                flag, is_first = word, True
            elif word.startswith("--"):
                flag = ""
            elif flag and not is_first:
                spread.append(flag)
            else:
                is_first = False
            spread.append(word)
        return super().parse_args(ctx, spread)


def check_png(file: Path | None) -> None:
    """Raises `InvalidInput` if a picture's file name doesn't end in .png."""
    if file is not None and file.suffix != ".png":
        raise InvalidInput(f"{file} can't be drawn: name a file that ends in .png")
