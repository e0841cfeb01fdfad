"""``league report``: a page, a picture and all numbers of a run, or of a player."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.console.options import Heading
from league.console.output import folded, say
from league.console.text import plain
from league.contest.command import LeagueContext, PastLeagueCommand
from league.runs.files import read_json

app = typer.Typer(rich_help_panel=Heading.WRITE, add_completion=False)


@app.command(cls=PastLeagueCommand)
def report(
    context: LeagueContext,
    player: Annotated[
        str | None,
        typer.Argument(metavar="[PLAYER]", help="A member of the league (default: the whole run)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for report.html, .json and .png (default: report in the run's folder).",
        ),
    ] = None,
) -> None:
    """Writes a report on a run, or on a player by its clean matches: HTML, JSON and PNG."""
    from evaluator.reports.contents import of_league_player, of_run
    from league.runs.exploits import FOLDER
    from league.views.report import write

    league = context.league
    run = league.address or league.folder().resolve().name
    # a certificate has no position in the log, so with --at it may be too new
    exploits = None if league.run_dir is None or league.at else league.run_dir / FOLDER
    game = str(read_json(league.run_dir / "run.json").get("game", "")) if league.run_dir else ""
    with league.connect() as client:
        if player is None:
            content = of_run(client, run, exploits, game)
        else:
            content = of_league_player(client, player, run, exploits, game)
    if out is None:
        out = Path("report") if league.address else league.folder() / "report"
    for path in write(content, out):
        say(f"written: {path}")
    about = content.numbers.get("newest", content.numbers)
    for name, words in about.get("headline", {}).items():
        print(folded(plain(f"{about['player']}, {name}: {words}"), indent=2))
