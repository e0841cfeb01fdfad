"""Defines the commands that write files: ``league export``, ``render``, ``film``, ``attention``
and ``curves``.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from league.console.options import (
    Assignments,
    Blobs,
    GameName,
    Greedy,
    Heading,
    MatchName,
    RunDir,
    check_png,
)
from league.console.output import print_table, progress, say
from league.contest.command import LeagueCommand, LeagueContext
from league.contest.league import League
from league.errors import InvalidInput, NotFound
from league.runs.files import write_whole
from league.runs.finding import CURVES

app = typer.Typer(rich_help_panel=Heading.WRITE, add_completion=False)

CHECKED = "Python numpy match opponent result stocks frames# ms_a_frame# 99_percent_ms# start_s#"
ATTENTION = "attention mean_age_seconds# 5_percent# 95_percent# entropy_share# fixed_share#"

Start = Annotated[
    float | None, typer.Option("--from", metavar="S", help="The first second (default: 0).")
]
Stop = Annotated[
    float | None, typer.Option("--to", metavar="S", help="The last second (default: the end).")
]

Fps = Annotated[
    float | None, typer.Option(metavar="N", help="Pictures a second (default: 30, gif: 12).")
]
Width = Annotated[int | None, typer.Option(metavar="PIXELS", help="Default: 1280, for a gif 480.")]


@app.command(cls=LeagueCommand)
def export(
    context: LeagueContext,
    snapshot: Annotated[
        str | None,
        typer.Argument(
            metavar="SNAPSHOT",
            help="A snapshot, a live player (its newest snapshot), or a .safetensors file; for ai2 "
            "also a mixture.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The file or folder to write.")
    ] = None,
    format: Annotated[
        Literal["sb3", "onnx", "folder", "ai2"] | None,
        typer.Option(
            "--format",
            "--for",
            help="sb3: a .zip for sb3_contrib.RecurrentPPO.load; onnx: one step as a graph; "
            "folder: plays with numpy and onnxruntime; ai2: the one file that UTMIST's AI² "
            "tournament takes (default: by the ending of PATH).",
        ),
    ] = None,
    greedy: Greedy = False,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Play a file for ai2 as the tournament does, or a folder or zip file with "
            "my_agent.py.",
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="You trust the author of the file to check.")
    ] = False,
    blobs: Blobs = None,
    game: GameName = None,
) -> None:
    """Exports a snapshot for Stable-Baselines3, ONNX, as a folder that plays without torch, or as a
    file for the AI² tournament.
    """
    if check is not None and snapshot is None:
        _check(check, game, trust)
        return
    if check is not None or snapshot is None or out is None:
        raise InvalidInput("name a SNAPSHOT and --out PATH, or a file to --check alone")
    from league.contest.exports import export as written
    from league.contest.members import Finder

    finder = Finder(context.league, game, blobs)
    exported = written(finder, snapshot, out, format or "", greedy=greedy)
    if exported.format == "ai2":
        from league.agent.export.ai2_check import MOST_BYTES, ms_a_frame
        from league.agent.rival_bundles import digest_of, packed
        from league.agent.rival_bundles import trust as note

        with suppress(InvalidInput):  # the trust can't be recorded
            note(digest_of(packed(out, MOST_BYTES)))
        say(f"{out}: {_megabytes(out)}, {ms_a_frame(out):.2f} ms a frame here")
    say(f"{out}: {exported.name} as {exported.format}, step {exported.step:,} of {exported.game}")


def _check(file: Path, game: str | None, trusted: bool) -> None:
    """Plays a file's test matches, and prints a line for each match."""
    from league.agent.export.ai2_check import MOST_BYTES, PYTHONS, check, pythons
    from league.agent.rival_bundles import digest_of, is_trusted, packed, trust
    from league.contest.rivals import require_trust
    from league.games.ai2.game import checkout_of

    kind, _, folder = (game or "").partition(":")
    if game and kind != "ai2":
        raise InvalidInput(f"a file is checked with ai2:FOLDER, a checkout, not with {game!r}")
    checkout = checkout_of(folder) if game else None
    if not file.exists():
        raise InvalidInput(f"there is no file {file}: write it with bin/league export --for ai2")
    if not is_trusted(digest := digest_of(packed(file, MOST_BYTES))):
        require_trust([str(file)], trust=trusted)
        trust(digest)
    words = {1.0: "won", 0.5: "drawn", 0.0: "lost"}
    rows = [
        (
            *(one.python, one.numpy, one.match, one.opponent, words[one.outcome]),
            "–".join(map(str, one.stocks)),
            f"{one.frames:,}",
            *(f"{number:.2f}" for number in (*one.ms, one.start_seconds)),
        )
        for one in check(file, checkout)
    ]
    print_table(str(file), CHECKED, rows, spared="opponent start_s frames 99_percent_ms numpy")
    for name in sorted({*PYTHONS} - pythons().keys()) if not checkout else ():
        say(f"({name} with numpy is not on the PATH: not tried)")
    size = f"{_megabytes(file)}; " if file.is_file() else ""
    say(f"{file}: {size}it played every match to its end")


def _megabytes(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.2f} MB"


@app.command()
def render(
    match: MatchName,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Its ending chooses: .mp4, .gif, .html (a page that plays it), .png (one "
            "picture), .json (the game's frames).",
        ),
    ],
    run_dir: RunDir = None,
    fps: Fps = None,
    width: Width = None,
    height: Annotated[
        int | None, typer.Option(metavar="PIXELS", help="Default: 9/16 of the width.")
    ] = None,
    start: Start = None,
    stop: Stop = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Renders a recorded match as a film, a picture, a page or data."""
    from league.contest.recordings import find_replay
    from league.views.film import Cut, write_film

    replay = find_replay(League(run_dir=run_dir), match, game, assignments or ())
    cut = Cut(start=start, stop=stop)
    write_film(out, replay, cut=cut, fps=fps, width=width, height=height)
    say(f"{out}: {out.stat().st_size / 1000:,.0f} kB")


@app.command()
def film(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Its ending chooses: .html (a page that plays it), .gif, .mp4 (default: film.html "
            "in the run's folder).",
        ),
    ] = None,
    run_dir: RunDir = None,
    seconds: Annotated[
        float, typer.Option(min=15, max=600, metavar="S", help="The longest duration.")
    ] = 60.0,
    fps: Fps = None,
    width: Width = None,
    most_megabytes: Annotated[
        float,
        typer.Option(
            "--max-mb", min=0.1, metavar="MB", help="A larger .gif gets smaller pictures."
        ),
    ] = 10.0,
) -> None:
    """Films a run's training: excerpts of kept matches from the first steps to the last, with
    numbers.
    """
    from league.views.film.run import film_run

    league = League(run_dir=run_dir)
    out = out or league.folder() / "film.html"
    most = most_megabytes * 1e6
    with progress() as show:
        matches = film_run(
            out, league, seconds=seconds, fps=fps, width=width, most_bytes=most, show=show
        )
    counted = "1 match" if matches == 1 else f"{matches} matches"
    say(f"{out}: {counted}, {out.stat().st_size / 1000:,.0f} kB")


@app.command()
def attention(
    match: MatchName,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The picture, a .png.")],
    run_dir: RunDir = None,
    seat: Annotated[
        int | None,
        typer.Option(min=0, max=1, help="Whose attention (default: the first seat with weights)."),
    ] = None,
    blobs: Blobs = None,
    start: Start = None,
    stop: Stop = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Draws what an agent looked at in a recorded match."""
    check_png(out)
    from league.agent.snapshot import load_snapshot
    from league.contest.recordings import find_replay
    from league.runs.blobs import BlobFolder
    from league.views.attention import agent_seat, draw, read_match, summary_of

    league = League(run_dir=run_dir)
    replay = find_replay(league, match, game, assignments or ())
    seat = agent_seat(replay, seat)
    contender = replay.seats[seat]
    folder = BlobFolder(blobs or league.folder() / "blobs")
    if not folder.has(contender.digest):
        raise NotFound(
            f"the weights of {contender.name} are not in {folder.root}: name the run with "
            "--run-dir, or the folder with --blobs"
        )
    reading = read_match(replay, seat, *load_snapshot(folder, contender.digest))
    write_whole(out, draw(reading, start or 0.0, stop))
    rows = []
    for name, weights_TP in (("latent", reading.latent_TP), ("context", reading.context_TP)):
        summary = summary_of(weights_TP, reading.age_P)
        if summary is not None:
            rows.append((name, *(f"{value:.3f}" for value in summary)))
    print_table(f"What {contender.name} looked at", ATTENTION, rows, spared="fixed_share")
    say(f"{out} shows {len(reading.frame_T)} decisions of {contender.name}")


@app.command()
def curves(
    run_dir: RunDir = None,
    learner: Annotated[
        str, typer.Option(metavar="NAME", help="The learner (default: main, or the first).")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Default: {CURVES} in the run's folder.")
    ] = None,
) -> None:
    """Draws a run's training curves from its files."""
    folder = League(run_dir=run_dir).folder()
    out = out or folder / CURVES
    check_png(out)
    from league.views.curves import draw, gather  # matplotlib takes a second to load

    history = gather(folder, learner)
    write_whole(out, draw(history))
    bots = len(history.trained) + len(history.others)
    say(f"{out} shows {len(history.scalars)} metrics and {bots} bots")
