"""Replays of batches: a player's first match, and the first that it loses to each opponent.

Shape suffixes: N rows, 2 seats, A action width, B bytes of a row's packed actions.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.errors import LeagueError
from league.games.base import BatchedGame
from league.players import Assignment
from league.replay import SUFFIX, Contender, MatchRecorder, Recipe, final_digest, save_replay

_log = logging.getLogger("evaluator")


@dataclass(frozen=True)
class _Match:
    """A match in progress and its decisions so far, packed."""

    assignment: Assignment
    seat: int
    pair: tuple[str, str]
    is_first: bool
    decisions_B: list[NDArray[np.uint8]] = field(default_factory=list)


@dataclass
class Recorder:
    """Writes replays of `players` in an arena's rows into `folder`, where the newest `most` stay.

    Where both seats are theirs, the match is the one's in seat 0.
    """

    folder: Path
    recipe: Recipe
    players: frozenset[str]
    frame_skip: int
    most: int
    _seen: set[str] = field(default_factory=set)
    _lost: set[tuple[str, str]] = field(default_factory=set)
    _rows: dict[int, _Match] = field(default_factory=dict)

    def begin(self, row: int, assignment: Assignment) -> None:
        """`assignment` begins in `row` with the next decision."""
        names = [seat.name for seat in assignment.seats]
        seat = next((seat for seat in (0, 1) if names[seat] in self.players), None)
        if seat is not None:
            pair = names[seat], names[1 - seat]
            self._rows[row] = _Match(assignment, seat, pair, names[seat] not in self._seen)
            self._seen.add(names[seat])

    def note(self, actions_N2A: NDArray[np.uint8]) -> None:
        """The next decision of all rows."""
        packed_NB = np.packbits(actions_N2A.reshape(len(actions_N2A), -1), axis=1)
        for row, match in self._rows.items():
            match.decisions_B.append(packed_NB[row])

    def end(self, row: int, game: BatchedGame) -> None:
        """The match in `row` ended in the last step; a replay that can't be kept is logged."""
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
            _log.warning("no replay of match %s is kept: %s", match.assignment.match_id, error)

    def _keep(self, row: int, match: _Match, game: BatchedGame) -> None:
        """Plays the match again to write down its bots' actions, too."""
        assignment, shape = match.assignment, (2, game.spec.action_size)
        first, second = (Contender(name=seat.name, digest=seat.digest) for seat in assignment.seats)
        recorder = MatchRecorder(
            recipe=self.recipe,
            seats=(first, second),
            bots=(int(game.bots_N2[row, 0]), int(game.bots_N2[row, 1])),
            seed=assignment.seed,
            match_id=assignment.match_id,
        )
        for packed_B in match.decisions_B:
            actions_2A = np.unpackbits(packed_B, count=shape[0] * shape[1]).reshape(shape)
            recorder.note(actions_2A, self.frame_skip)
        replay = recorder.finish(float(game.outcomes_N[row]), final_digest(game, row))
        self.folder.mkdir(exist_ok=True)
        save_replay(self.folder / f"{assignment.match_id}{SUFFIX}", replay)
        kept = sorted(self.folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[: max(0, len(kept) - self.most)]:
            path.unlink(missing_ok=True)
