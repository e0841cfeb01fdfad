"""Defines ``league dashboard``, which shows a league in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from league.console.options import Heading
from league.contest.command import LeagueCommand, LeagueContext

app = typer.Typer(rich_help_panel=Heading.LOOK, add_completion=False)


@app.command(cls=LeagueCommand)
def dashboard(
    context: LeagueContext,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Where to listen; if other machines reach it, visitors need a token of the run.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: any free.")] = 0,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="A name under which a proxy serves it; visitors then need a token of the run.",
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Folder of a run to compare curves with, only read; repeatable."
        ),
    ] = None,
) -> None:
    """Shows a league in the browser, running or finished. Ctrl-C ends it."""
    from league.views.dashboard.main import run  # NiceGUI takes a second to load

    league = context.league
    with league.connect() as client:
        run(
            client,
            None if league.address else league.folder(),
            host,
            port,
            name or (),
            beside or (),
        )
