"""Defines ``league serve-game``, which plays matches of a slow game for learners elsewhere."""

from __future__ import annotations

import json
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from league.console.options import Assignments, Heading
from league.console.output import say

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command("serve-game")
def serve_game(
    game: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="pettingzoo:MODULE, ai2:FOLDER, python:MODULE:FACTORY…"),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A run whose game, tokens and certificates are used."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: a free one.")] = 0,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with the token that learners show (default: KUMITE_TOKEN, "
            "KUMITE_TOKEN_FILE, or the run's own).",
        ),
    ] = None,
    assignments: Assignments = None,
) -> None:
    """Plays matches for learners on other machines, which name this machine in game.workers.
    Ctrl-C ends the server.
    """
    from league.agent.rival_bundles import state_folder
    from league.games.settings import GameSettings
    from league.games.workers.server import WorkerServer
    from league.security.credentials import of_run
    from league.security.roles import AccessRole
    from league.security.settings import SecuritySettings
    from league.security.tokens import TokenFile
    from league.settings.base import resolve_run

    named = [] if game is None else [f"game.name={game}"]
    sections = resolve_run(run_dir, assignments=[*named, *(assignments or ())], default=None)
    settings, security = sections.of(GameSettings), sections.of(SecuritySettings)
    options = {"name": settings.name, "max_frames": settings.max_frames, **settings.options}
    token = of_run(token_file=token_file).token
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as temporary:
        own = run_dir or state_folder() / "game-worker"
        if security.tokens and token:
            own = Path(temporary)
            TokenFile(own).replace(AccessRole.WORKER, token)
        with WorkerServer(json.dumps(options), port, security=security, folder=own) as server:
            if security.tokens and not token:
                say(f"learners show the token in {own / 'tokens' / 'worker.token'}")
            say(
                f"{settings.name} is played at {server.address}: learners take --set "
                f"'game.workers=[\"{server.address}\"]'"
            )
            print(f"ready {server.port}", flush=True)
            while True:
                signal.pause()
