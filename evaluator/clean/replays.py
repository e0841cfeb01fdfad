"""Records replays from batches: a player's first match, and its first loss to each opponent.

Shape suffixes: N rows, 2 seats, A action width.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from league.errors import LeagueError
from league.games.base import EXTERNAL, BatchedGame
from league.players import Assignment
from league.replay import SUFFIX, Contender, MatchRecorder, Recipe, final_digest, save_replay

_log = logging.getLogger("evaluator")


class _Match(NamedTuple):
    """A match in progress: its decisions, the player's seat, and both names, the player's first."""

    take: MatchRecorder
    seat: int
    pair: tuple[str, str]
    is_first: bool


@dataclass
class Recorder:
    """Writes replays of `players` into `folder`, and keeps only the newest `most` replays there.

    If `players` has the players of both seats, the match is recorded for the player in seat 0.
    """

    folder: Path
    recipe: Recipe
    players: frozenset[str]
    most: int
    _seen: set[str] = field(default_factory=set)
    _lost: set[tuple[str, str]] = field(default_factory=set)
    _rows: dict[int, _Match] = field(default_factory=dict)

    def begin(self, row: int, assignment: Assignment) -> None:
        """Begins to record a match of `players`. `row` plays it from the next decision on."""
        names = [seat.name for seat in assignment.seats]
        seat = next((seat for seat in (0, 1) if names[seat] in self.players), None)
        if seat is None:
            return
        first, second = (Contender(name=seat.name, digest=seat.digest) for seat in assignment.seats)
        take = MatchRecorder(
            recipe=self.recipe,
            seats=(first, second),
            bots=(EXTERNAL, EXTERNAL),
            seed=assignment.seed,
            match_id=assignment.match_id,
        )
        pair = names[seat], names[1 - seat]
        self._rows[row] = _Match(take, seat, pair, names[seat] not in self._seen)
        self._seen.add(names[seat])

    def note(self, actions_N2A: NDArray[np.uint8], frames: int) -> None:
        """Records the actions that all rows are about to hold for `frames` frames."""
        for row, match in self._rows.items():
            match.take.note(actions_N2A[row], frames)

    def end(self, row: int, game: BatchedGame) -> None:
        """Writes the replay of the match that ended in `row` if it is the player's first match or
        its first loss to the opponent. An error is only logged.
        """
        match = self._rows.pop(row, None)
        if match is None:
            return
        lost = float(game.outcomes_N[row]) == float(match.seat)
        is_first_loss = lost and match.pair not in self._lost
        if row in game.failures or not (match.is_first or is_first_loss):
            return
        if lost:
            self._lost.add(match.pair)
        try:
            self._keep(row, match, game)
        except (LeagueError, OSError) as error:
            _log.warning("no replay of match %s is kept: %s", match.take.match_id, error)

    def _keep(self, row: int, match: _Match, game: BatchedGame) -> None:
        """Plays the match again to write down its bots' actions, too."""
        first, second = game.bots_N2[row].tolist()
        take = replace(match.take, bots=(first, second))
        replay = take.finish(float(game.outcomes_N[row]), final_digest(game, row))
        self.folder.mkdir(exist_ok=True)
        save_replay(self.folder / f"{take.match_id}{SUFFIX}", replay)
        files = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[: max(0, len(files) - self.most)]:
            path.unlink(missing_ok=True)
