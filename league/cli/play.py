"""Defines ``league demo``, ``replay`` and ``record``, which play, keep and show matches.

On a terminal the commands draw a match. Elsewhere they list its events. A demo is played to its end
before it is shown.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from league.console.options import (
    Assignments,
    Blobs,
    GameName,
    Greedy,
    Heading,
    RunDir,
    Seed,
    Speed,
)
from league.console.output import is_terminal, print_table, say
from league.contest.command import LeagueCommand, LeagueContext
from league.contest.league import League
from league.errors import DataCorrupt
from league.metrics import wilson_interval

if TYPE_CHECKING:  # these load numpy, numba and torch
    from league.replay import Bout, Playback, Replay

app = typer.Typer(rich_help_panel=Heading.PLAY, add_completion=False)
Pace = Annotated[
    int,
    typer.Option(
        min=1,
        max=30,
        metavar="N",
        help="PLAYER, a bot, holds its keys for N frames, as an agent with frame_skip N does.",
    ),
]
Disturb = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.5,
        metavar="SHARE",
        help="Share of the time that PLAYER errs, so that a clone learns how it recovers.",
    ),
]

LONGEST_GAP_SECONDS = 0.1
HARD_HIT = 12.0
"""Smallest damage in a frame, in points, for which a hit is shown as an event."""
TOTALS = (
    *("damage_dealt", "knockouts", "falls", "attacks", "hits", "jumps", "dodges"),
    *("payoff", "reward"),
)
"""Stats that are shown at the end of a match."""
SHORTEST_ID = 8
"""Fewest characters of a match id that a terminal shows."""
REPLAYS = ("match", "seat 0", "seat 1", "won by", "frames#", "highlight")
SCORES = "player opponent seat matches# wins# draws# losses# score# low# high#"
MEANS = ("damage_dealt", "damage_taken", "knockouts", "falls", "falls_unhit")
"""Stats of PLAYER whose means `record` prints, if the game has them."""


@app.command(cls=LeagueCommand)
def demo(
    context: LeagueContext,
    players: Annotated[
        tuple[str, str],
        typer.Argument(
            metavar="PLAYER PLAYER", help="Bots, snapshots, rivals, .safetensors files, mixtures."
        ),
    ],
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
    seed: Seed = 0,
    speed: Speed = 1.0,
    greedy: Greedy = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the match as a replay.")
    ] = None,
) -> None:
    """Plays a match of two members and shows it."""
    import numpy as np

    from league.contest.matches import play
    from league.contest.members import Finder, numbered
    from league.replay import Bout, save_replay

    finder = Finder(context.league, game, blobs, assignments or ())
    rng = np.random.default_rng([seed, 3])
    settings = finder.settings(players)
    entrants = finder.entrants(settings.spec(), players)
    first, second = numbered([entrant.draw(rng) for entrant in entrants])
    seats, bots = (first.contender, second.contender), (first.seated, second.seated)
    bout = Bout(seats=seats, bots=bots, seed=seed)
    failures: dict[Bout, str] = {}
    played = list(
        play(settings, (first, second), [bout], seed=seed, greedy=greedy, failures=failures)
    )
    if not played:
        raise DataCorrupt(f"the match of seed {seed} could not be finished: {failures[bout]}")
    if save is not None:
        save_replay(save, played[0])
    _show(played[0], speed)
    if save is not None:
        words = [str(save), *(["--game", settings.name] if game else [])]
        words += [word for one in assignments or () for word in ("--set", one)]
        words += ["--run-dir", str(context.league.run_dir)] if context.league.run_dir else []
        shows = shlex.join(["bin/league", "replay", *words])
        films = shlex.join(["bin/league", "render", *words, "--out", "film.html"])
        say(f"kept in {save}: {shows} shows it again, {films} makes a film")


@app.command()
def replay(
    match: Annotated[
        str | None,
        typer.Argument(metavar="MATCH|FILE", help="A match id or a file; none lists replays."),
    ] = None,
    run_dir: RunDir = None,
    speed: Speed = 1.0,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Shows a recorded match again, or lists the replays of a run."""
    from league.contest.recordings import find_replay, replays_of
    from league.replay.highlights import WORDS, read_highlights

    league = League(run_dir=run_dir)
    if match is not None:
        _show(find_replay(league, match, game, assignments or ()), speed)
        return
    oldest_first = sorted(replays_of(league), key=lambda path: (path.stat().st_mtime, path.name))
    shown = {one.match_id: WORDS.get(one.kind, "") for one in read_highlights(league.folder())}
    words = [shown.get(path.stem, "") for path in oldest_first]
    names, caption = [path.stem for path in oldest_first], ""
    if is_terminal():
        length = SHORTEST_ID
        while len({name[:length] for name in names}) < len(names):
            length += 1
        names = [name[:length] for name in names]
        caption = "each match by the beginning of its id, which commands take"
    rows = [
        (name, *_replay_cells(path), word)
        for name, path, word in zip(names, oldest_first, words, strict=True)
    ]
    print_table("Replays", REPLAYS, rows, caption=caption)


def _replay_cells(path: Path) -> tuple[str, ...]:
    from league.replay import load_replay

    try:
        replay = load_replay(path)
    except DataCorrupt as error:
        return "", "", f"unreadable: {error}" if not is_terminal() else "unreadable", ""
    winner = "a draw" if replay.winner is None else replay.names[replay.winner]
    return (*replay.names, winner, str(replay.frames))


def _show(played: Replay, speed: float) -> None:
    """Shows a match to its end or until Ctrl-C. A terminal shows it at `speed` times real time."""
    from league.games.base import CHOICE
    from league.replay import Playback

    names = played.names
    events: list[str] = []
    with Playback(played) as playback:
        game = playback.game
        is_choice = game.spec.action_kind == CHOICE

        def clock(frame: int) -> str:
            """Returns the time of a frame, or the number of a choice."""
            seconds = frame / game.spec.frames_per_second
            return str(frame) if is_choice else f"{int(seconds // 60)}:{seconds % 60:04.1f}"

        try:
            if is_terminal():
                events = _draw(playback, names, clock, speed)
            else:
                _print_moments(playback, names, clock, boards=is_choice)
        except KeyboardInterrupt:
            return
    result = "a draw" if played.winner is None else f"{names[played.winner]} wins"
    pair = f"{names[0]} against {names[1]}, seed {played.seed}"
    print(f"{clock(played.frames)}\t{pair}: {result}")
    for name, stats_S in zip(names, game.final_stats_N2S[0], strict=True):
        stats = dict(zip(game.spec.stats, map(float, stats_S), strict=True))
        shown = {key: f"{round(stats[key], 2) + 0.0:.12g}" for key in TOTALS if key in stats}
        totals = [f"{key.replace('_', ' ')} {value}" for key, value in shown.items()]  # no -0
        print(f"{name}\t{', '.join(totals)}")
    for line in events if is_choice else ():  # the screen that showed the events is gone
        print(line)


def _print_moments(
    playback: Playback, names: Sequence[str], clock: Callable[[int], str], *, boards: bool
) -> None:
    """Prints the events of each frame. If `boards` is true, it also prints the game's text, such as
    a board.
    """
    for frame, happened in _moments(playback, names):
        for event in happened:
            print(f"{clock(frame['frame'])}\t{event}", flush=True)
        if boards and not frame.get("ended"):
            for line in str(frame.get("text") or "").splitlines():
                print(f"\t{line}", flush=True)


def _draw(
    playback: Playback, names: Sequence[str], clock: Callable[[int], str], speed: float
) -> list[str]:
    """Draws at the game's pace, and skips frames if drawing is too slow. Returns the events."""
    from rich.console import Console
    from rich.live import Live

    from league.views.match_view import MatchView

    console, events, view = Console(), list[str](), MatchView(names)
    frame_seconds = 1 / (playback.game.spec.frames_per_second * speed)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        due, drawn_at = time.monotonic(), 0.0
        for frame, happened in _moments(playback, names):
            events += [f"{clock(frame['frame'])}  {event}" for event in happened]
            view.see(frame)
            due += frame_seconds
            now = time.monotonic()
            if now < due or now - drawn_at > LONGEST_GAP_SECONDS:
                size = (console.size.width, console.size.height)
                live.update(view.draw(events, size), refresh=True)
                drawn_at = time.monotonic()
            due = max(due, now - LONGEST_GAP_SECONDS)  # doesn't hurry after an interruption
            time.sleep(max(0.0, due - time.monotonic()))
    return events


def _moments(
    playback: Playback, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Yields each frame for drawing, with the events since the previous frame.

    In a game of choices the last frame shows how the match ended.
    """
    from league.games.base import CHOICE
    from league.games.drawing.lines import seat_text
    from league.replay import end_frame

    game, before, legal_2A = playback.game, dict[str, Any](), None

    def choices() -> list[str]:
        """Lists the last frame's choices of the seats that had several legal choices."""
        done_N2A = game.played_N2A()
        if legal_2A is None or done_N2A is None:
            return []
        return [
            f"{name}: {game.spec.action_names[done_A.argmax()]}"
            for name, done_A, legal_A in zip(names, done_N2A[0], legal_2A, strict=True)
            if legal_A.sum() > 1
        ]

    for frame in playback.frames():
        if before:
            yield frame, [*choices(), *_hits(before, frame, names)]
        else:
            dealt = zip(names, frame.get("seats", ()), strict=False)
            yield frame, [f"{name} has {text}" for name, seat in dealt if (text := seat_text(seat))]
        before, legal_2A = frame, None if game.legal_N2A is None else game.legal_N2A[0].copy()
    if game.spec.action_kind == CHOICE:
        yield end_frame(game, before), choices()


def _hits(before: dict[str, Any], now: dict[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Yields knock-outs and hard hits, in games whose players have stocks and damage."""
    players = zip(before.get("players", ()), now.get("players", ()), strict=True)
    for name, other, (old, new) in zip(names, reversed(names), players, strict=False):
        hit = new["damage"] - old["damage"]
        if hit >= HARD_HIT:
            yield f"{other} hits {name} for {hit:.0f} (damage {new['damage']:.0f})"
        if new["stocks"] < old["stocks"]:
            left = "1 stock" if new["stocks"] == 1 else f"{new['stocks']} stocks"
            yield f"{name} is knocked out at damage {old['damage']:.0f}, {left} left"


@app.command(cls=LeagueCommand)
def record(
    context: LeagueContext,
    player: Annotated[
        str,
        typer.Argument(
            metavar="PLAYER", help="A bot, a snapshot, a .safetensors file or a mixture."
        ),
    ],
    opponents: Annotated[list[str], typer.Argument(metavar="OPPONENT...", help="One or more.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the replays (default: none).")
    ] = None,
    matches: Annotated[
        int, typer.Option(min=1, max=100_000, help="Matches per opponent, in both seats.")
    ] = 100,
    seed: Seed = 0,
    pace: Pace = 1,
    disturb: Disturb = 0.0,
    greedy: Greedy = False,
    blobs: Blobs = None,
    game: GameName = None,
    assignments: Assignments = None,
) -> None:
    """Plays many matches of PLAYER against each OPPONENT, and keeps them as replays."""
    from league.contest.members import Finder
    from league.contest.recordings import record as recorded
    from league.contest.recordings import say_failed

    finder, names = Finder(context.league, game, blobs, assignments or ()), [player, *opponents]
    settings = finder.settings(names)
    first, *others = finder.entrants(settings.spec(), names)
    rows, means = [], [name for name in MEANS if name in settings.spec().stats]
    for series in recorded(
        settings,
        first,
        others,
        matches=matches,
        seed=seed,
        pace=pace,
        disturb=disturb,
        greedy=greedy,
        out=out,
    ):
        say_failed(series.failures)
        for place, played in series.places.items():
            rows.append((series.player, series.opponent, place, *_scores(played, means)))
    print_table("Matches", [*SCORES.split(), *(f"{name}#" for name in means)], rows)
    if "falls_unhit" in means:
        say("(falls_unhit: knock-outs of a player that was not hit in the 3 s before)")
    if out is not None:
        say(f"kept in {out}: bin/league replay FILE shows one, bin/learner clone learns from all")


def _scores(
    played: Sequence[tuple[float, Mapping[str, float]]], means: Sequence[str]
) -> Iterator[str]:
    """Yields the cells of a table row. `played` has the outcome and totals of each match."""
    outcomes = [outcome for outcome, _ in played]
    total, matches = sum(outcomes), len(outcomes)
    yield str(matches)
    yield from (str(outcomes.count(value)) for value in (1.0, 0.5, 0.0))
    interval = wilson_interval(total, matches)
    yield f"{100 * total / matches:.1f}%" if matches else ""
    yield from (f"{100 * bound:.1f}%" for bound in (interval.low, interval.high))
    for name in means:
        yield f"{sum(stats[name] for _, stats in played) / matches:.2f}" if matches else ""
