"""``league demo A B``: two members fight, drawn live on a terminal, told in lines elsewhere."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from league.cli import cast, connect
from league.cli.exhibition import Ending, Exhibition, Moment
from league.cli.output import is_terminal, say
from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL
from league.games.drawing import is_fight
from league.replay import Contender, Recipe, Take, final_digest, save_replay

LONGEST_GAP_SECONDS = 0.1
TOLD = (
    "damage_dealt",
    "knockouts",
    "falls",
    "attacks",
    "hits",
    "jumps",
    "dodges",
    "payoff",
    "reward",
)
"""Numbers of a match that are worth a word at its end."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "players", nargs=2, metavar="PLAYER", help="a bot, a snapshot, or a .safetensors file"
    )
    connect.add_arguments(parser)
    parser.add_argument(
        "--blobs", type=Path, metavar="DIR", help="weights, when the league is named by address"
    )
    parser.add_argument(
        "--game",
        metavar="NAME",
        help="for bots: kuhn, leduc, matrix:rps, … (default: the run's, or brawl)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the match and of the sampled keys (default 0)"
    )
    parser.add_argument(
        "--speed", type=float, default=1.0, help="times real time on a terminal (default 1)"
    )
    parser.add_argument(
        "--greedy", action="store_true", help="press each key by its likelier value"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="keep the match as a replay")


def run(args: argparse.Namespace) -> int:
    if args.speed <= 0:
        raise InvalidInput(f"--speed {args.speed:g}: a speed above 0 is wanted")
    if args.seed < 0:
        raise InvalidInput(f"--seed {args.seed}: a seed from 0 is wanted")
    settings = cast.game_settings(args, args.players)
    spec = settings.spec()
    members = cast.told_apart(cast.find_members(args, spec, args.players))
    if settings.name == "brawl":
        say("(brawl; the first match of a machine takes a moment to compile)")
    game = settings.make(1)
    match = Exhibition(game, members, args.seed, greedy=args.greedy)
    if args.save is not None:
        match.take = _take(Recipe.of(settings), match)
    shown = show(match, args.speed)
    if match.take is not None and shown:
        replay = match.take.finish(float(game.outcomes_N[0]), final_digest(game, 0))
        save_replay(args.save, replay)
        say(
            f"kept in {args.save}: bin/league replay shows it again, bin/league render makes a film of it"
        )
    return 0


def show(match: Exhibition, speed: float) -> bool:
    """Plays it to its end, live on a terminal and in lines elsewhere; False when Ctrl-C ended
    it.
    """
    course: list[str] = []
    try:
        if is_terminal():
            course = _draw_live(match, speed)
        else:
            _tell(match)
    except KeyboardInterrupt:
        return False
    assert match.ending is not None
    _print_ending(match, match.ending)
    for line in course:
        print(line)
    return True


def _take(recipe: Recipe, match: Exhibition) -> Take:
    first, second = (Contender(name=member.name, digest=member.digest) for member in match.members)
    bots = [EXTERNAL if member.bot is None else member.bot for member in match.members]
    return Take(recipe=recipe, seats=(first, second), bots=(bots[0], bots[1]), seed=match.seed)


def _clock(match: Exhibition, frame: int) -> str:
    """The time of a frame, the number of a choice."""
    if match.game.spec.action_kind == CHOICE:
        return str(frame)
    seconds = frame / match.game.spec.frames_per_second
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}"


def _tell(match: Exhibition) -> None:
    for moment in match.moments():
        for event in moment.happened:
            print(f"{_clock(match, moment.frame['frame'])}\t{event}", flush=True)
        for line in _text(match, moment.frame):
            print(f"\t{line}", flush=True)


def _text(match: Exhibition, frame: Mapping[str, Any]) -> list[str]:
    """What a game of choices shows as text (boards of PettingZoo); its frame of the end is the
    one before.
    """
    if match.game.spec.action_kind != CHOICE or frame.get("ended"):
        return []
    return str(frame.get("text") or "").splitlines()


def _draw_live(match: Exhibition, speed: float) -> list[str]:
    """Keeps to the game's pace; of pictures that come too late, a few a second are still drawn.

    Returns the course of a game of choices, whose screen is gone when it ends.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    said: list[str] = []
    frame_seconds = 1 / (match.game.spec.frames_per_second * speed)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        due, drawn_at = time.monotonic(), 0.0
        for moment in match.moments():
            said += [
                f"{_clock(match, moment.frame['frame'])}  {event}" for event in moment.happened
            ]
            due += frame_seconds
            now = time.monotonic()
            if now < due or now - drawn_at > LONGEST_GAP_SECONDS:
                live.update(_picture(match, moment, said, console.size), refresh=True)
                drawn_at = now
            # after a halt it goes on, it does not catch up
            due = max(due, now - LONGEST_GAP_SECONDS)
            time.sleep(max(0.0, due - time.monotonic()))
    return said if match.game.spec.action_kind == CHOICE else []


def _picture(match: Exhibition, moment: Moment, said: list[str], size: Any) -> Any:
    from league.cli import arena, table

    names = [member.name for member in match.members]
    draw = arena.draw if is_fight(moment.frame) else table.draw
    return draw(moment.frame, names, said, (size.width, size.height))


def _print_ending(match: Exhibition, ending: Ending) -> None:
    names = [member.name for member in match.members]
    result = "a draw" if ending.winner is None else f"{names[ending.winner]} wins"
    print(
        f"{_clock(match, ending.frames)}\t{names[0]} against {names[1]}, seed {match.seed}: {result}"
    )
    for name, stats in zip(names, ending.stats, strict=True):
        numbers = ", ".join(
            f"{stat.replace('_', ' ')} {stats[stat]:.0f}" for stat in TOLD if stat in stats
        )
        print(f"{name}\t{numbers}")
