"""Replays of a gauntlet: against each opponent the first match, and the first that is lost.

Shape suffixes: N rows, 2 seats, A action width, B bytes of a row's packed actions.
"""

from __future__ import annotations

import logging
from collections import deque
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
class _Begun:
    """A match in progress: which of the noted decisions was its first, and whether it is kept
    anyway.
    """

    assignment: Assignment
    first: int
    is_first: bool


@dataclass
class Recorder:
    """Notes what an arena's rows do, and writes the telling matches of `player` into `folder`.

    All rows are noted at once, a few hundred bytes a decision; only what is kept is played again,
    to write down its bots' actions too. At most `most` replays stay in the folder, the newest.
    """

    folder: Path
    recipe: Recipe
    player: str
    frame_skip: int
    most: int
    _met: set[str] = field(default_factory=set)
    _lost_to: set[str] = field(default_factory=set)
    _rows: dict[int, _Begun] = field(default_factory=dict)
    _noted_NB: deque[NDArray[np.uint8]] = field(default_factory=deque)
    _forgotten: int = 0

    def begin(self, row: int, assignment: Assignment) -> None:
        """`assignment` begins in `row` with the next decision."""
        opponent = self._opponent(assignment)
        self._rows[row] = _Begun(
            assignment, self._forgotten + len(self._noted_NB), opponent not in self._met
        )
        self._met.add(opponent)

    def note(self, actions_N2A: NDArray[np.uint8]) -> None:
        """What all rows are about to do."""
        self._noted_NB.append(np.packbits(actions_N2A.reshape(len(actions_N2A), -1), axis=1))

    def end(self, row: int, game: BatchedGame) -> None:
        """The match in `row` ended in the last step. What can't be kept is logged and no more."""
        begun = self._rows.pop(row)
        if row not in game.failures and self._is_telling(begun, float(game.outcomes_N[row])):
            try:
                self._keep(row, begun, game)
            except (LeagueError, OSError) as error:
                _log.warning("no replay of match %s is kept: %s", begun.assignment.match_id, error)
        self._forget()

    def _opponent(self, assignment: Assignment) -> str:
        first, second = assignment.seats
        return second.name if first.name == self.player else first.name

    def _is_telling(self, begun: _Begun, outcome: float) -> bool:
        opponent = self._opponent(begun.assignment)
        own_outcome = outcome if begun.assignment.seats[0].name == self.player else 1.0 - outcome
        is_first_loss = own_outcome == 0.0 and opponent not in self._lost_to
        if is_first_loss:
            self._lost_to.add(opponent)
        return begun.is_first or is_first_loss

    def _keep(self, row: int, begun: _Begun, game: BatchedGame) -> None:
        assignment, shape = begun.assignment, (2, game.spec.action_size)
        first, second = (Contender(name=seat.name, digest=seat.digest) for seat in assignment.seats)
        bots = (int(game.bots_N2[row, 0]), int(game.bots_N2[row, 1]))
        recorder = MatchRecorder(
            recipe=self.recipe,
            seats=(first, second),
            bots=bots,
            seed=assignment.seed,
            match_id=assignment.match_id,
        )
        for place in range(begun.first - self._forgotten, len(self._noted_NB)):
            packed = self._noted_NB[place][row]
            recorder.note(
                np.unpackbits(packed, count=shape[0] * shape[1]).reshape(shape), self.frame_skip
            )
        replay = recorder.finish(float(game.outcomes_N[row]), final_digest(game, row))
        self.folder.mkdir(exist_ok=True)
        save_replay(self.folder / f"{assignment.match_id}{SUFFIX}", replay)
        self._prune()

    def _prune(self) -> None:
        """Makes room; the files are asked for their age only when there are too many."""
        kept = list(self.folder.glob(f"*{SUFFIX}"))
        if len(kept) > self.most:
            kept.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in kept[: len(kept) - self.most]:
                path.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Drops the decisions that no match in progress has in it."""
        oldest = min((begun.first for begun in self._rows.values()), default=None)
        while self._noted_NB and (oldest is None or self._forgotten < oldest):
            self._noted_NB.popleft()
            self._forgotten += 1
