"""Plays assigned matches in parallel, with a compiled game and a few batched forward passes.

Shape suffixes: N rows (matches at once), 2 seats, A action width, O observation width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from evaluator.clean.replays import Recorder
from league.agent.contract import PlayingNetwork
from league.agent.rival_bundles import bundles
from league.agent.rivals import RivalSeats
from league.agent.snapshot import SnapshotCard, check_rules, load_snapshot, read_card
from league.contest.table import Table
from league.errors import NotFound
from league.games.base import EXTERNAL, BatchedGame, GameSpec, match_result
from league.players import Assignment, Book, MatchResult, Player, PlayerKind
from league.replay import Bout, Contender
from league.runs.blobs import BlobFolder

RESIDENT = 32
"""Number of networks kept in memory. The same few networks meet again and again."""


class Weights:
    """Loads networks and their cards (descriptions) by digest, and checks that the networks play
    the game `spec`. Recently used networks stay in memory.
    """

    def __init__(self, blobs: BlobFolder, spec: GameSpec) -> None:
        self._spec, self._blobs = spec, blobs
        self._bundles = bundles(blobs)
        self._load = lru_cache(RESIDENT)(partial(load_snapshot, blobs, device="cpu"))

    def card(self, player: Player) -> SnapshotCard:
        """Returns a snapshot's card (its description). Raises an error if the snapshot is damaged,
        or if it was trained on another game or under rules that no longer hold.
        """
        try:
            card = read_card(self._blobs, player.digest)
        except NotFound as error:
            raise NotFound(f"{player.name}: {error}") from None
        check_rules(player.name, card, self._spec)
        return card

    def check_bundle(self, player: Player) -> None:
        """Raises `NotFound` or `DataCorrupt` if a rival's bundle is missing or damaged."""
        self._bundles.get(player.digest)

    def network(self, digest: str) -> PlayingNetwork:
        """Returns the network of a digest. `BatchedPolicy` loads networks with this function."""
        return self._load(digest)[0]


class Arena:
    """Plays assigned matches in the rows of `game`.

    Args:
        load: returns the network of a digest.
        frame_skip: frames between the decisions of snapshots. Snapshots sample at temperature 1, or
            take the likeliest action in greedy matches. Rivals (other people's agents) and bots
            decide in every frame.
        recorder: receives every decision, and every frame in which rivals play.
        rivals: plays the seats of rivals.

    Attributes:
        frames_played: frames of all matches so far, over all rows.
    """

    def __init__(
        self,
        game: BatchedGame,
        load: Callable[[str], PlayingNetwork],
        *,
        frame_skip: int,
        seed: int,
        recorder: Recorder | None = None,
        device: str = "cpu",
        rivals: RivalSeats | None = None,
    ) -> None:
        self._game, self._frame_skip, self._recorder = game, frame_skip, recorder
        self._table = Table(game, load, seed=seed, device=device, rivals=rivals)
        self._matches: dict[int, Assignment] = {}
        self.frames_played = 0

    @property
    def rows(self) -> int:
        """Number of matches that can be played at once."""
        return self._game.num_matches

    @property
    def free(self) -> int:
        """Number of rows (places for a match) in which a match could begin."""
        return self._table.free

    @property
    def busy(self) -> int:
        """Number of matches in progress."""
        return len(self._matches)

    def seat(self, assignments: Sequence[Assignment]) -> None:
        """Begins these matches, at most `free` of them."""
        greedy = [assignment.book is Book.GREEDY for assignment in assignments]
        rows = self._table.seat(list(map(self._bout, assignments)), greedy)
        for row, assignment in zip(rows, assignments, strict=True):
            self._matches[row] = assignment
            if self._recorder is not None:
                self._recorder.begin(row, assignment)

    def _bout(self, assignment: Assignment) -> Bout:
        bots = [
            self._game.spec.bot_index(player.name) if player.kind is PlayerKind.BOT else EXTERNAL
            for player in assignment.seats
        ]
        first, second = (Contender(name=seat.name, digest=seat.digest) for seat in assignment.seats)
        return Bout(seats=(first, second), bots=(bots[0], bots[1]), seed=assignment.seed)

    def step(self) -> list[MatchResult]:
        """Plays all matches in progress until the snapshots' next decision. Returns the results of
        the matches that ended.
        """
        actions_N2A = self._table.decide()
        if not self._table.has_rivals:
            return self._play(actions_N2A, self._frame_skip)
        results = self._play(actions_N2A, 1)
        for _ in range(self._frame_skip - 1):
            self._table.decide_rivals(actions_N2A)
            results += self._play(actions_N2A, 1)
        return results

    def _play(self, actions_N2A: NDArray[np.uint8], frames: int) -> list[MatchResult]:
        """Plays frames, and returns the results of the matches that ended. The rows of these
        matches become idle.
        """
        game = self._game
        frames_before_N = game.frames_N.copy()
        if self._recorder is not None:
            self._recorder.note(actions_N2A, frames)
        game.step(actions_N2A, frames)
        self._table.fail_rivals()
        frames_N = np.where(game.ended_N, game.final_frames_N, game.frames_N) - frames_before_N
        self.frames_played += int(frames_N[~game.idle_N].sum())
        ended = np.flatnonzero(game.ended_N & ~game.idle_N)
        return [self._leave(int(row)) for row in ended]

    def _leave(self, row: int) -> MatchResult:
        failure = self._game.failures.get(row, "")
        late = self._table.late_in(row)
        result = match_result(self._matches.pop(row), self._game, row, failure=failure, late=late)
        if self._recorder is not None:
            self._recorder.end(row, self._game)
        self._table.leave(row)
        return result
