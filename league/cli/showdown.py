"""Defines ``bin/league showdown``, which installs the simulator and plays battles on a server."""

from __future__ import annotations

import asyncio
import time
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Assignments, Blobs, GameName, Heading, MatchName, RunDir, Seed
from league.contest.command import LeagueCommand, LeagueContext
from league.contest.league import League
from league.errors import InvalidInput, Unavailable
from league.runs.files import write_whole

if TYPE_CHECKING:
    from league.agent.contract import PlayingNetwork
    from league.replay import Replay

PAGE = """<!DOCTYPE html>
<meta charset="utf-8">
<title>{title}</title>
<div class="wrapper replay-wrapper" style="max-width:1180px;margin:0 auto">
<div class="battle"></div><div class="battle-log"></div>
<div class="replay-controls"></div><div class="replay-controls-2"></div>
<h1 style="font-weight:normal;text-align:center">{title}</h1>
<script type="text/plain" class="battle-log-data">
{log}
</script>
</div>
<script>
function asText() {{
  const log = document.createElement('pre');
  log.textContent = "Without Showdown's script from play.pokemonshowdown.com, the log:\\n\\n"
    + document.querySelector('.battle-log-data').textContent.trim();
  document.body.append(log);
}}
</script>
<script src="https://play.pokemonshowdown.com/js/replay-embed.js" onerror="asText()"></script>
"""
"""The page of a saved replay, in Showdown's own format. Showdown's script draws the log. If the
script can't be loaded, the page shows the log as text.
"""

LOGIN_SECONDS = 60
"""Seconds that a login may take. poke-env's own limit of five seconds is too short for a server
that has just started on a busy machine.
"""

app = typer.Typer(
    help="Pokémon Showdown: its simulator, replays as pages, and battles with people.",
    rich_help_panel=Heading.PLAY,
)


@app.callback()
def _group() -> None:
    pass


@app.command()
def install() -> None:
    """Installs or repairs Showdown's simulator (by npm, about 100 MB) and poke-env (by pip).

    To use another folder than the default in your cache, set the environment variable
    KUMITE_SHOWDOWN.
    """
    from league.games.showdown import install as installation

    where = installation.install()
    print(f"{installation.PACKAGE} {installation.version()} is in {where}")


@app.command()
def serve(
    port: Annotated[int, typer.Option(metavar="N", help="Port of the server.")] = 8000,
) -> None:
    """Runs a Showdown server on this machine until Ctrl-C."""
    from league.games.showdown.server import Server

    with Server(port) as server:
        print(f"Showdown's server listens on http://localhost:{port}; Ctrl-C ends it", flush=True)
        while server.is_up():
            time.sleep(0.5)
    raise Unavailable(f"the server on port {port} has ended, or a signal has stopped it")


@app.command(cls=LeagueCommand)
def play(
    context: LeagueContext,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose challenges it accepts.")],
    member: Annotated[
        str, typer.Option("--as", metavar="PLAYER", help="Who plays: a bot, a snapshot or a file.")
    ] = "heuristics",
    port: Annotated[int, typer.Option(metavar="N", help="Port of the server.")] = 8000,
    battles: Annotated[int, typer.Option(metavar="N", help="Battles before it leaves.")] = 1,
    name: Annotated[str, typer.Option(metavar="NAME", help="Its account.")] = "kumite",
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
    seed: Seed = 0,
) -> None:
    """Lets a player battle a person who challenges it on this machine's Showdown server."""
    from league.agent.snapshot import load_snapshot, read_card
    from league.cli.showdown_member import MemberOnServer
    from league.contest.members import Finder, check_plays
    from league.games.showdown import install as installation
    from league.games.showdown.simulator import teams_of

    game = game or (None if context.league.run_dir else "showdown:gen9randombattle")
    finder = Finder(context.league, game, blobs, assignments or ())
    settings = finder.settings([member])
    battle_format = settings.name.removeprefix("showdown:")
    (found,) = finder.find(settings.spec(), [member])
    if found.blobs is not None:
        check_plays(found.name, read_card(found.blobs, found.digest), settings.spec())

    def load(digest: str) -> PlayingNetwork:
        assert found.blobs is not None
        return load_snapshot(found.blobs, found.digest)[0]

    pool = str(settings.options.get("teams", ""))
    teams = teams_of(pool, battle_format, str(installation.installed())) if pool else ()
    team = teams[seed % len(teams)] if teams else None
    player = MemberOnServer(
        name, battle_format, port, bot=found.bot, load=load, team=team, seed=seed
    )

    async def wait_and_play() -> None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await player.ps_client.wait_for_login(wait_for=LOGIN_SECONDS)
        except (OSError, AssertionError):
            raise Unavailable(
                f"no Showdown server on port {port} lets {name} in: start one by "
                f"bin/league showdown serve --port {port}, or take another --name"
            ) from None
        print(f"{name} plays {found.name}: challenge it to {battle_format}, as {user}", flush=True)
        await player.accept_challenges(user, battles)
        await player.ps_client.stop_listening()

    asyncio.run(wait_and_play())
    won, lost = player.n_won_battles, player.n_lost_battles
    print(f"{name} has won {won}, drawn {battles - won - lost} and lost {lost} against {user}")


@app.command()
def replay(
    match: MatchName,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page (default: MATCH.html).")
    ] = None,
    run_dir: RunDir = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Writes a recorded battle as a page that Showdown's replay player shows."""
    from league.contest.recordings import find_replay

    found = find_replay(League(run_dir=run_dir), match, game, assignments or ())
    if not found.recipe.name.startswith("showdown:"):
        raise InvalidInput(f"{match} is a match of {found.recipe.name}: bin/league render draws it")
    path = out or Path(f"{Path(match).stem}.html")
    write_whole(path, page_of(found).encode())
    print(f"written: {path}")


def page_of(found: Replay) -> str:
    """Plays a battle again and returns its page."""
    from league.replay import Playback

    with Playback(found) as playback:
        for _ in playback.moments():
            pass
        end = playback.game.final_frame(0)
    log = str(end["text"] if end else "")
    for seat, name in enumerate(found.names, 1):
        plain = "".join(letter for letter in name if letter.isprintable() and letter not in "|<>")
        log = log.replace(f"|player|p{seat}|p{seat}|", f"|player|p{seat}|{plain}|")
        log = log.replace(f"|win|p{seat}", f"|win|{plain}")
    return PAGE.format(title=escape(" against ".join(found.names)), log=log.replace("</", "<\\/"))
