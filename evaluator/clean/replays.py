"""Records replays of clean matches (both players frozen): a player's first match in a batch, its
first loss to each opponent, and the highlights of the run.

Shape suffixes: N rows, 2 seats, A action width.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import LeagueError
from league.games.base import EXTERNAL, BatchedGame
from league.players import Assignment, PlayerKind
from league.replay import (
    SUFFIX,
    Contender,
    MatchRecorder,
    Recipe,
    final_digest,
    load_replay,
    save_replay,
)
from league.replay.highlights import (
    CLOSEST,
    LIVE,
    LONGEST,
    RALLY,
    WIN,
    Highlight,
    add_highlights,
    read_highlights,
)

LIVE_SECONDS = 20.0
"""Shortest time between the ends of two live matches, in seconds. A live match is recorded for
people who watch the league, whoever the players are.
"""
KNOCKOUT = 100.0
"""In the search for the closest match (a highlight), a knock-out counts as much as this damage."""
_log = logging.getLogger("evaluator")


class _Match(NamedTuple):
    """A match in progress.

    Attributes:
        take: records the decisions.
        names: the players' names by seat.
        seat: the seat of the recorded player, None in a match of other players.
        is_first: whether this is the recorded player's first match in its batch.
        has_bot: whether a bot plays.
    """

    take: MatchRecorder
    names: tuple[str, str]
    seat: int | None
    is_first: bool
    has_bot: bool


@dataclass
class Recorder:
    """Writes replays of some players' matches. About every `LIVE_SECONDS` it also writes a match of
    any players, for people who watch the league.

    Each match is played again before its replay is written.

    Attributes:
        folder: the folder for replays, inside the run's folder. It keeps the newest `most` replays,
            and also the highlights and the matches of people.
        players: the players whose matches are recorded. If both players of a match are among them,
            the match is recorded for the player in seat 0.
        most: largest number of replays to keep, without highlights and matches of people.
        milestones: players whose win over a hard bot is a highlight.
        clock: returns Unix seconds.
        should_stop: called while a match is played again. If it returns True, the replay is not
            written.
    """

    folder: Path
    recipe: Recipe
    players: frozenset[str]
    most: int
    milestones: frozenset[str] = frozenset()
    clock: Callable[[], float] = time.time
    should_stop: Callable[[], bool] = lambda: False
    _seen: set[str] = field(default_factory=set)
    _lost: set[tuple[str, str]] = field(default_factory=set)
    _met: Counter[tuple[str, str]] = field(default_factory=Counter)
    _won: Counter[tuple[str, str]] = field(default_factory=Counter)
    _rows: dict[int, _Match] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._listed = {found.place: found for found in read_highlights(self.folder.parent)}
        lives = [found.at for found in self._listed.values() if found.kind == LIVE]
        self._live_at = lives[-1] if lives else -math.inf

    def begin(self, row: int, assignment: Assignment) -> None:
        """Begins to record the match that starts in `row` with the next decision. A match in which
        none of `players` plays is recorded only if no other match is being recorded.
        """
        names = assignment.seats[0].name, assignment.seats[1].name
        seat = next((seat for seat in (0, 1) if names[seat] in self.players), None)
        if seat is None and self._rows:
            return
        first, second = (Contender(name=seat.name, digest=seat.digest) for seat in assignment.seats)
        take = MatchRecorder(
            recipe=self.recipe,
            seats=(first, second),
            bots=(EXTERNAL, EXTERNAL),
            seed=assignment.seed,
            match_id=assignment.match_id,
        )
        is_first = seat is not None and names[seat] not in self._seen
        has_bot = any(player.kind is PlayerKind.BOT for player in assignment.seats)
        self._rows[row] = _Match(take, names, seat, is_first, has_bot)
        if seat is not None:
            self._seen.add(names[seat])

    def note(self, actions_N2A: NDArray[np.uint8], frames: int) -> None:
        """Records the actions that all rows are about to hold for `frames` frames."""
        for row, match in self._rows.items():
            match.take.note(actions_N2A[row], frames)

    def end(self, row: int, game: BatchedGame) -> None:
        """Ends the recording in `row`. Writes a replay if the match is the player's first match,
        the first loss to the opponent, or a highlight. An error is only logged.
        """
        match = self._rows.pop(row, None)
        if match is None or row in game.failures:
            return
        is_kept, outcome = match.is_first, float(game.outcomes_N[row])
        if match.seat is not None and outcome == float(match.seat):
            pair = match.names[match.seat], match.names[1 - match.seat]
            is_kept = is_kept or pair not in self._lost
            self._lost.add(pair)
        try:
            found = [
                one
                for one in self._highlights(row, match, game)
                if one.value > (self._listed[one.place].value if one.place in self._listed else 0.0)
            ]
            if not (is_kept or found):
                return
            if is_kept or len(found) > 1:
                update = {"value": 0.0}
                found = [one.model_copy(update=update) if one.is_passing else one for one in found]
            # Listed before the replay is written. So if writing fails, only a match that is a
            # better highlight is tried.
            self._listed |= {one.place: one for one in found}
            self.folder.mkdir(exist_ok=True)
            self._keep(row, match, game)
            old = list[Highlight]()
            if found:
                listed, old = add_highlights(self.folder.parent, found)
                self._listed = {one.place: one for one in listed}
            self._remove_old(old)
        except (LeagueError, OSError, ValueError) as error:  # totals may be NaN
            _log.warning("no replay of match %s is kept: %s", match.take.match_id, error)

    def _highlights(self, row: int, match: _Match, game: BatchedGame) -> Iterator[Highlight]:
        """Yields the match as a candidate for each kind of highlight that it can be."""
        frames, outcome = int(game.final_frames_N[row]), float(game.outcomes_N[row])
        stats = dict(zip(game.spec.stats, game.final_stats_N2S[row].T.tolist(), strict=True))
        winner = "" if outcome == 0.5 else match.names[int(outcome < 0.5)]

        def highlight(kind: str, value: float, words: str = "") -> Highlight:
            return Highlight(
                kind=kind,
                match_id=match.take.match_id,
                names=match.names,
                winner=winner,
                words=words,
                value=value,
                at=self.clock(),
            )

        if abs(self.clock() - self._live_at) >= LIVE_SECONDS:
            self._live_at = self.clock()
            yield highlight(LIVE, 1.0)
        if match.seat is None:
            return
        if "hits" in stats:
            first, second = stats["hits"]
            yield highlight(RALLY, min(first, second), f"{first:.0f} to {second:.0f} hits")
        else:
            yield highlight(LONGEST, float(frames), f"{frames:,} frames")
        if winner and {"damage_dealt", "knockouts"} <= stats.keys():
            knockouts, damage = stats["knockouts"], stats["damage_dealt"]
            done = [KNOCKOUT * knockouts[seat] + damage[seat] for seat in (0, 1)]
            words = f"{knockouts[0]:.0f} to {knockouts[1]:.0f} knock-outs"
            yield highlight(CLOSEST, 2.0 * min(done) - max(done), words)
        player, opponent = match.names[match.seat], match.names[1 - match.seat]
        if player in self.milestones and match.has_bot:
            self._met[player, opponent] += 1
            self._won[player, opponent] += winner == player
            met, won = self._met[player, opponent], self._won[player, opponent]
            if winner == player:
                hardness = 1.0 - (won + 1) / (met + 2)  # close to ½ after few matches
                words = f"over {opponent}, {won} of {met} matches won in its batch"
                yield highlight(WIN, hardness, words)

    def _keep(self, row: int, match: _Match, game: BatchedGame) -> None:
        """Plays the match again, which also records the actions of bots, and saves the replay."""
        first, second = game.bots_N2[row].tolist()
        take = replace(match.take, bots=(first, second))
        replay = take.finish(float(game.outcomes_N[row]), final_digest(game, row), self.should_stop)
        save_replay(self.folder / f"{take.match_id}{SUFFIX}", replay)

    def _remove_old(self, unlisted: list[Highlight]) -> None:
        """Removes the oldest replays, and live matches that are no longer listed as highlights.
        Other highlights and the matches of people stay.
        """
        passing = {one.match_id for one in unlisted if one.is_passing}
        listed = {
            one.match_id
            for one in read_highlights(self.folder.parent)
            if one.kind != LIVE or one.is_passing
        }
        files = list[Path]()
        for path in self.folder.glob(f"*{SUFFIX}"):
            if path.stem in passing and not _may_be_of_a_person(path):
                path.unlink(missing_ok=True)
            elif path.stem not in listed:
                files.append(path)
        if len(files) > self.most:
            files = [path for path in files if not _may_be_of_a_person(path)]
            files.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in files[: max(0, len(files) - self.most)]:
            path.unlink(missing_ok=True)


@cache
def _may_be_of_a_person(path: Path) -> bool:
    """Returns whether a person plays in the match. Returns True if the file can't be read."""
    try:
        replay = load_replay(path)
    except LeagueError:
        return True
    return PlayerKind.HUMAN.value in replay.names
