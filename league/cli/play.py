"""``league demo`` and ``replay``: a match drawn live on a terminal, as lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from league.cli.connection import League, RunDir, with_league
from league.cli.options import Blobs, GameName, Greedy, Seed, Speed, check_speed
from league.cli.output import Column, columns, is_terminal, print_table, say
from league.errors import DataCorrupt, InvalidInput, NotFound
from league.games.base import CHOICE, EXTERNAL

LONGEST_GAP_SECONDS = 0.1
TOTALS = (
    *("damage_dealt", "knockouts", "falls", "attacks", "hits", "jumps", "dodges"),
    *("payoff", "reward"),
)
"""Numbers of a match that its last lines show."""
REPLAYS = (
    *columns("match"),
    *(Column(name) for name in ("seat 0", "seat 1", "won by")),
    *columns("frames#"),
)
REPLAY_FOLDER = "replays"
"""In a run's folder; the evaluator fills it."""

MatchName = Annotated[
    str,
    typer.Argument(
        metavar="MATCH|FILE", help="A match id (bin/league replay lists them) or a file."
    ),
]


@with_league
def demo(
    league: League,
    players: Annotated[
        tuple[str, str],
        typer.Argument(metavar="PLAYER PLAYER", help="Bots, snapshots or .safetensors files."),
    ],
    blobs: Blobs = None,
    game: GameName = None,
    seed: Seed = 0,
    speed: Speed = 1.0,
    greedy: Greedy = False,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the match as a replay.")
    ] = None,
) -> None:
    """Plays a match of two members and shows it."""
    check_speed(speed)
    from league.cli.live_match import LiveMatch
    from league.cli.members import Finder, numbered
    from league.replay import Contender, MatchRecorder, Recipe, final_digest, save_replay

    finder = Finder(league, game, blobs)
    settings = finder.settings(players)
    members = numbered(finder.find(settings.spec(), players))
    if settings.name == "brawl":
        say("(brawl; the first match on a machine takes a moment to compile)")
    played = settings.make(1)
    match = LiveMatch(played, members, seed, greedy=greedy)
    if save is not None:
        first, second = (Contender(name=one.name, digest=one.digest) for one in members)
        bots = [EXTERNAL if one.bot is None else one.bot for one in members]
        match.recorder = MatchRecorder(
            recipe=Recipe.of(settings), seats=(first, second), bots=(bots[0], bots[1]), seed=seed
        )
    if show(match, speed) and save is not None and match.recorder is not None:
        outcome = float(played.outcomes_N[0])
        save_replay(save, match.recorder.finish(outcome, final_digest(played, 0)))
        say(f"kept in {save}: bin/league replay shows it again, bin/league render makes a film")


def replay(
    match: Annotated[
        str | None,
        typer.Argument(metavar="MATCH|FILE", help="A match id or a file; none lists replays."),
    ] = None,
    run_dir: RunDir = None,
    speed: Speed = 1.0,
) -> None:
    """Shows a recorded match again, or lists the replays of a run."""
    check_speed(speed)
    league = League(run_dir=run_dir)
    if match is None:
        print_table("Replays", REPLAYS, [_replay_row(path) for path in _replays(league)])
        return
    from league.cli.live_match import LiveMatch, RecordedActor
    from league.cli.members import Member
    from league.replay import Playback

    playback = Playback(find_replay(league, match))
    recorded, spec = playback.replay, playback.game.spec
    try:
        members = [
            Member(name=seat.name, bot=spec.bot_index(seat.bot) if seat.bot else None)
            for seat in recorded.seats
        ]
        actors = [RecordedActor(recorded.actions_T2A[:, seat]) for seat in (0, 1)]
        if show(LiveMatch(playback.game, members, recorded.seed, actors=actors), speed):
            playback.check_end()
    finally:
        playback.close()


def find_replay(league: League, name: str) -> Any:
    """The replay that `name` means: a file, or the beginning of a match id of the run."""
    from league.replay import SUFFIX, load_replay

    if name.endswith(SUFFIX) or Path(name).is_file():
        return load_replay(Path(name))
    if not name.isalnum():
        raise NotFound(f"there is no file {name}, and it is no match id: check the path")
    folder = league.folder() / REPLAY_FOLDER
    found = sorted(folder.glob(f"{name}*{SUFFIX}"))
    if not found:
        raise NotFound(
            f"there is no replay of match {name} in {folder}: the evaluator keeps the first match "
            "and the first loss of each gauntlet against each opponent; bin/league replay lists "
            "them"
        )
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} replays begin with {name}: give more of the match id")
    return load_replay(found[0])


def _replays(league: League) -> list[Path]:
    """The run's replays, the oldest first."""
    from league.replay import SUFFIX

    files = (league.folder() / REPLAY_FOLDER).glob(f"*{SUFFIX}")
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name))


def _replay_row(path: Path) -> tuple[str, ...]:
    from league.replay import load_replay

    try:
        found = load_replay(path)
    except DataCorrupt as error:
        return path.stem, "", "", f"unreadable: {error}", ""
    names = [seat.name for seat in found.seats]
    winner = "a draw" if found.outcome == 0.5 else names[0 if found.outcome == 1.0 else 1]
    return (path.stem, *names, winner, str(found.frames))


def show(match: Any, speed: float) -> bool:
    """Plays a `LiveMatch` to its end; False when Ctrl-C ended it.

    On a terminal it is drawn in real time (times `speed`), elsewhere events are printed as lines.
    """
    events: list[str] = []
    try:
        if is_terminal():
            events = _draw_live(match, speed)
        else:
            _print_live(match)
    except KeyboardInterrupt:
        return False
    _print_ending(match)
    for line in events:
        print(line)
    return True


def _clock(match: Any, frame: int) -> str:
    """The time of a frame, or the number of a choice."""
    spec = match.game.spec
    if spec.action_kind == CHOICE:
        return str(frame)
    seconds = frame / spec.frames_per_second
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def _print_live(match: Any) -> None:
    for moment in match.moments():
        for event in moment.events:
            print(f"{_clock(match, moment.frame['frame'])}\t{event}", flush=True)
        for line in _text(match, moment.frame):
            print(f"\t{line}", flush=True)


def _text(match: Any, frame: Mapping[str, Any]) -> list[str]:
    """A board as text; the last frame repeats the one before, so it has none."""
    if match.game.spec.action_kind != CHOICE or frame.get("ended"):
        return []
    return str(frame.get("text") or "").splitlines()


def _draw_live(match: Any, speed: float) -> list[str]:
    """Draws at the game's pace; when drawing is too slow, it drops frames.

    Returns:
        The events of a game of choices, whose screen is gone when it ends.
    """
    from rich.console import Console
    from rich.live import Live

    from league.views.match_view import draw

    console = Console()
    names = [member.name for member in match.members]
    events: list[str] = []
    frame_seconds = 1 / (match.game.spec.frames_per_second * speed)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        due, drawn_at = time.monotonic(), 0.0
        for moment in match.moments():
            clock = _clock(match, moment.frame["frame"])
            events += [f"{clock}  {event}" for event in moment.events]
            due += frame_seconds
            now = time.monotonic()
            if now < due or now - drawn_at > LONGEST_GAP_SECONDS:
                size = (console.size.width, console.size.height)
                live.update(draw(moment.frame, names, events, size), refresh=True)
                drawn_at = now
            due = max(due, now - LONGEST_GAP_SECONDS)  # after a halt it does not catch up
            time.sleep(max(0.0, due - time.monotonic()))
    return events if match.game.spec.action_kind == CHOICE else []


def _print_ending(match: Any) -> None:
    ending = match.ending
    names = [member.name for member in match.members]
    result = "a draw" if ending.winner is None else f"{names[ending.winner]} wins"
    pair = f"{names[0]} against {names[1]}, seed {match.seed}"
    print(f"{_clock(match, ending.frames)}\t{pair}: {result}")
    for name, stats in zip(names, ending.stats, strict=True):
        totals = [f"{key.replace('_', ' ')} {stats[key]:.0f}" for key in TOTALS if key in stats]
        print(f"{name}\t{', '.join(totals)}")
