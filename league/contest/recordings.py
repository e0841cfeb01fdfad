"""Finds a run's recorded matches, and plays and records many matches of a player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from league.console.output import say
from league.contest.league import League
from league.errors import InvalidInput, NotFound
from league.games.base import CHOICE
from league.games.settings import GameSettings
from league.replay import Bout, Recipe, Replay, load_replay, save_replay

if TYPE_CHECKING:
    from league.contest.members import Entrant

PLACES = ("both", "first", "second", "left", "right")
"""Groups of a player's matches by where the player starts: all matches, first or second seat, left
or right side.
"""
Played = tuple[float, Mapping[str, float]]
"""A match from a player's point of view: the outcome (1, ½ or 0), and the player's statistics."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Holds the matches of a player against an opponent.

    Attributes:
        places: the matches by starting place, in the order of `PLACES`. `both` holds all matches. A
            game without sides has no `left` and `right`.
        failures: the reasons why matches could not be finished.
    """

    player: str
    opponent: str
    places: dict[str, list[Played]]
    failures: tuple[str, ...]


def replays_of(league: League) -> list[Path]:
    """Returns the replay files that the evaluator has kept in a run's folder."""
    return sorted((league.folder() / "replays").glob("*.replay"))


def find_replay(
    league: League, name: str, game: str | None = None, assignments: Sequence[str] = ()
) -> Replay:
    """Returns a recorded match.

    Args:
        league: the run.
        name: a file, or the beginning of a match id of the run.
        game, assignments: the flags `--game` and `--set`. A game that is not built in, or that runs
            other code, must be named by these flags or by the run. It is not enough if only the
            replay file names it.

    Raises:
        NotFound: there is no such match.
        InvalidInput: several match ids begin with `name`.
        DataCorrupt: the file is damaged.
    """

    def own() -> GameSettings:
        from league.contest.members import Finder  # loads torch

        return Finder(league, game, assignments=assignments).settings(())

    if name.endswith(".replay") or Path(name).is_file():
        return load_replay(Path(name), own)
    found = [path for path in replays_of(league) if path.name.startswith(name)]
    if not found:
        raise NotFound(
            f"there is no file {name}, and no replay of match {name} in {league.folder()}: the "
            "evaluator keeps the first match and the first loss of each batch against each "
            "opponent; bin/league replay lists them"
        )
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} replays begin with {name}: give more of the match id")
    return load_replay(found[0], own)


def record(
    settings: GameSettings,
    player: Entrant,
    opponents: Sequence[Entrant],
    *,
    matches: int,
    seed: int = 0,
    pace: int = 1,
    disturb: float = 0.0,
    greedy: bool = False,
    out: Path | None = None,
) -> Iterator[Series]:
    """Plays a player against each opponent and keeps the matches.

    Args:
        settings: the game.
        player: the player. `pace` slows it down, and `disturb` makes it err.
        opponents: the player's opponents.
        matches: number of matches against each opponent, in pairs with swapped seats.
        seed, pace, disturb, greedy: as for `league.contest.matches.play`.
        out: folder for the replays. None keeps no replay.

    Yields:
        The matches against each opponent.

    Raises:
        InvalidInput: the folder can't be made, or `pace` or `disturb` doesn't suit the game.
    """

    changes_keys = bool(disturb) or pace > 1
    if changes_keys and settings.spec().action_kind == CHOICE:
        raise InvalidInput(
            f"--pace and --disturb change keys, and {settings.name} is a game of choices"
        )
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out {out} can't be a folder ({error.strerror}): name another place"
        ) from None
    for opponent in opponents:
        failures: dict[Bout, str] = {}
        places: dict[str, list[Played]] = {place: [] for place in PLACES}
        for seat, replay in meetings(
            settings,
            player,
            opponent,
            matches=matches,
            seed=seed,
            pace=pace,
            disturb=disturb,
            greedy=greedy,
            failures=failures,
        ):
            if out is not None:
                save_replay(out / f"{replay.match_id}.replay", replay)
            outcome = replay.outcome if seat == 0 else 1.0 - replay.outcome
            stats = replay.stats[seat]
            for place in _places(seat, stats):
                places[place].append((outcome, stats))
        yield Series(
            player=player.name,
            opponent=opponent.name,
            places={place: met for place, met in places.items() if met or place == "both"},
            failures=tuple(failures.values()),
        )


def meetings(
    settings: GameSettings,
    player: Entrant,
    opponent: Entrant,
    *,
    matches: int,
    seed: int,
    greedy: bool,
    failures: dict[Bout, str],
    pace: int = 1,
    disturb: float = 0.0,
) -> Iterator[tuple[int, Replay]]:
    """Plays a player against an opponent. Yields each match with the player's seat.

    Args:
        settings, player, matches, seed, greedy, pace, disturb: as for `record`.
        opponent: the opponent.
        failures: receives the reasons of failed matches.
    """
    from league.contest.matches import bouts_of, play

    bouts = bouts_of(player, opponent, matches, seed, errs=bool(disturb) or pace > 1)
    recipe = Recipe.of(settings)
    seat_of = {  # a member that meets itself counts in the first seat
        bout.match_id(recipe): number % 2 if bout.seats[0] != bout.seats[1] else 0
        for number, bout in enumerate(bouts)
    }
    for replay in play(
        settings,
        (*player.members, *opponent.members),
        bouts,
        seed=seed,
        greedy=greedy,
        pace=pace,
        disturb=disturb,
        failures=failures,
    ):
        yield seat_of[replay.match_id], replay


def say_failed(reasons: Sequence[str]) -> None:
    """Prints how many matches failed, if any."""
    if reasons:
        say(
            f"({len(reasons)} matches could not be finished and do not count, the first as "
            f"{reasons[0]})"
        )


def _places(seat: int, stats: Mapping[str, float]) -> Iterator[str]:
    yield PLACES[0]
    yield PLACES[1 + seat]
    if "spawn_side" in stats:
        yield "left" if stats["spawn_side"] < 0 else "right"
