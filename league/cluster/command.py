"""Defines ``league train``, which starts a league, as bin/start-league does."""

from __future__ import annotations

import typer

from league.console.options import Heading

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    }
)
def train(context: typer.Context) -> int:
    """Trains a league, as bin/start-league does, with the same flags."""
    from league.cluster.main import main

    return main(context.args)
