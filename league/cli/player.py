"""Defines ``league player``, which serves a file or a snapshot to other people's leagues."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from league.console.options import Assignments, Blobs, Heading
from league.console.output import say
from league.contest.command import LeagueCommand, LeagueContext

app = typer.Typer(rich_help_panel=Heading.PLAY, add_completion=False)


@app.command(cls=LeagueCommand)
def player(
    context: LeagueContext,
    member: Annotated[
        str,
        typer.Argument(
            metavar="FILE|MEMBER",
            help="An agent for the AI² tournament, a folder or a model as for `add`, or a snapshot "
            "or rival of a run.",
        ),
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: a free one.")] = 0,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run its Python with your rights, without asking.")
    ] = False,
    blobs: Blobs = None,
    assignments: Assignments = None,
) -> None:
    """Serves a player to other people's leagues. They receive the keys that it presses, but not its
    code. Ctrl-C ends the server.
    """
    from league.agent.rival_bundles import state_folder
    from league.contest.members import Finder
    from league.contest.player_server import PlayerServer, find_player  # this loads torch
    from league.security.settings import SecuritySettings
    from league.settings.base import resolve

    security = resolve(assignments=assignments or ()).of(SecuritySettings)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        seated = find_player(Finder(context.league, blobs=blobs), member, Path(folder), trust=trust)
        own = state_folder() / "player"
        try:
            with PlayerServer(seated, port, security=security, folder=own) as server:
                if security.tokens:
                    say(f"leagues need the token in {own / 'tokens' / 'read.token'}")
                say(
                    f"{seated.name} plays at {server.address}: others add it to their league with "
                    f"bin/league add {server.address} --as NAME"
                )
                print(f"ready {server.port}", flush=True)
                while True:
                    signal.pause()
        except KeyboardInterrupt:
            return
