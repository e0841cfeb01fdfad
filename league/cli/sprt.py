"""``league sprt``: whether results decide between two hypotheses, and how many more it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from league.cli.options import AsJson
from league.cli.output import print_pairs, say

RESULTS = "Results: counts, or a file; none to forecast how many it takes"
Share = Annotated[float | None, typer.Option(metavar="P", help="Share of the points, as 0.55.")]
Elo = Annotated[float | None, typer.Option(metavar="ELO", help="Elo difference.")]
Count = Annotated[int | None, typer.Option(metavar="N", help="Matches.", rich_help_panel=RESULTS)]


def sprt(
    p0: Share = None,
    p1: Share = None,
    elo0: Elo = None,
    elo1: Elo = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="logistic|normalised", help="Model of Elo (default: logistic)."),
    ] = None,
    alpha: Annotated[float, typer.Option(help="How often the weak may pass.")] = 0.05,
    beta: Annotated[float, typer.Option(help="How often the strong may fail.")] = 0.05,
    pentanomial: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C,D,E",
            help="Pairs that scored 0, ½, 1, 1½ and 2 points.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    wins: Count = None,
    draws: Count = None,
    losses: Count = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="One match a word, w, d or l, in the order of assignment (- reads stdin); with "
            "Elo, two matches in turn are a pair.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Check what a gate has decided.", rich_help_panel=RESULTS
        ),
    ] = None,
    truth: Annotated[
        list[float] | None,
        typer.Option(metavar="X", help="Forecast the test at this value too; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tests a null hypothesis (p0 or elo0) against an alternative (p1 or elo1)."""
    from league.cli import sprt_report  # scipy takes half a second to load

    request = sprt_report.Request(
        shares=(p0, p1),
        elos=(elo0, elo1),
        model=model,
        alpha=alpha,
        beta=beta,
        pentanomial=pentanomial,
        counts=(losses, draws, wins),
        results=results,
        certificate=certificate,
        truths=tuple(truth or ()),
    )
    counted = sprt_report.count(request)
    report = sprt_report.report_of(counted)
    if as_json:
        print(json.dumps(report))
    else:
        print_pairs(sprt_report.lines_of(counted.gate, report))
    for note in sprt_report.notes_of(counted):
        say(note)
