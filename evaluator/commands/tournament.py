"""``league tournament``: a tournament of members and files, with a page of its results."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from evaluator.tournament.formats import Format
from league.console.options import Assignments, Blobs, GameName, Greedy, Heading, Seed
from league.console.output import print_table, progress, say
from league.console.text import long_duration
from league.contest.command import LeagueCommand, LeagueContext
from league.errors import InvalidInput

app = typer.Typer(rich_help_panel=Heading.MEASURE, add_completion=False)

TABLE = "rank# entrant kind points# elo# interval# wins# draws# losses# crashes# late# trueskill#"
SPARED = "kind trueskill late crashes draws losses wins interval"


@app.command(cls=LeagueCommand)
def tournament(
    context: LeagueContext,
    entrants: Annotated[
        list[str],
        typer.Argument(
            metavar="ENTRANT...",
            help="Members (main@5000000, based), files (a.py, b.zip, c.onnx, a folder with "
            "my_agent.py), or folders of files.",
        ),
    ],
    format: Annotated[Format, typer.Option(help="How entrants are paired.")] = Format.ROUND_ROBIN,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="Rounds of a round robin (default: 10), in which every pair meets once a round, "
            "or of a Swiss tournament (default: log2 of the entrants).",
        ),
    ] = None,
    matches: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=10_000,
            help="Matches each time that two meet, made even: seats are swapped (default: 2 in a "
            "round robin, else 10).",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, max=3600, help="Game time of a match (default: the game's)."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the results, which may be published.")
    ] = Path("tournament"),
    films: Annotated[
        int, typer.Option(min=0, max=1000, help="Most films, of the best pairs' last matches.")
    ] = 20,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes (default: one for each core).")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="You trust the authors of all files.")
    ] = False,
    greedy: Greedy = False,
    seed: Seed = 0,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Plays a tournament of members and files. Repeat a command to continue it after a kill."""
    from evaluator.tournament.entries import find_entries
    from evaluator.tournament.formats import swiss_rounds
    from evaluator.tournament.page import write_results
    from evaluator.tournament.playing import Plan, Tournament
    from evaluator.tournament.standings import judge
    from league.agent.rivals import PREFIX
    from league.contest.matches import pace_of
    from league.contest.members import Finder
    from league.runs.blobs import BlobFolder

    if rounds and format is Format.DOUBLE_ELIMINATION:
        raise InvalidInput("--rounds is for the other formats: an elimination ends with its winner")
    changes = [*(assignments or ()), *([f"game.match_seconds={seconds:g}"] if seconds else [])]
    finder = Finder(context.league, game, blobs, changes)
    # If this process is killed, a rival that starts later finds the folder by its name, and removes
    # it.
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as folder:
        settings, entries = find_entries(finder, entrants, BlobFolder(folder), trusted=trust)
        usual = 10 if format is Format.ROUND_ROBIN else swiss_rounds(len(entries))
        asked = matches or (2 if format is Format.ROUND_ROBIN else 10)
        plan = Plan(
            form=format,
            rounds=rounds or usual,
            matches=asked + asked % 2,
            seed=seed,
            greedy=greedy,
            frame_skip=pace_of(settings, [entry.member for entry in entries]),
        )
        played = Tournament(out, plan, settings, entries)
        with progress() as show:
            played.play(
                workers,
                lambda done, known, seconds: show(
                    f"{done:,} of {known:,} matches played, about {long_duration(seconds)} left"
                ),
            )
            outcome = judge(played)
            page = write_results(outcome, films, show)
    print_table(
        f"{settings.name}, {format.value}, {len(played.matches):,} matches",
        TABLE,
        [
            (
                *(str(one.rank), one.entrant, one.kind, f"{one.points:g}"),
                *(f"{one.elo:.0f}", f"{one.elo_low:.0f}–{one.elo_high:.0f}"),
                *map(str, (one.wins, one.draws, one.losses, one.crashes, one.late)),
                f"{one.mu:.2f}",
            )
            for one in outcome.standings
        ],
        caption="Elo has its 95 % interval, and 1500 is the mean; an entrant that crashes loses",
        spared=SPARED,
    )
    say(f"{outcome.lead}. All results: {page}")
