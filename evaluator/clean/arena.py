"""Plays assigned matches next to each other: one compiled game, a few batched forward passes.

Shape suffixes: N rows (matches at once), 2 seats, A action width, O observation width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from evaluator.clean.replays import Recorder
from league.agent.batched_policy import BatchedPolicy
from league.agent.contract import PlayingNetwork
from league.agent.snapshot import SnapshotCard, check_rules, load_snapshot, read_card
from league.errors import NotFound
from league.games.base import EXTERNAL, BatchedGame, GameSpec, match_result
from league.players import Assignment, Book, MatchResult, Player, PlayerKind
from league.runs.blobs import BlobFolder

RESIDENT = 32
"""Networks kept in memory: the same few meet again and again."""


class Weights:
    """Networks and cards by digest, for the game `spec`; the last used stay in memory."""

    def __init__(self, blobs: BlobFolder, spec: GameSpec) -> None:
        self._spec, self._blobs = spec, blobs
        self._load = lru_cache(RESIDENT)(partial(load_snapshot, blobs, device="cpu"))

    def card(self, player: Player) -> SnapshotCard:
        """The card of a snapshot whose file is whole and fits the game."""
        try:
            card = read_card(self._blobs, player.digest)
        except NotFound as error:
            raise NotFound(f"{player.name}: {error}") from None
        check_rules(player.name, card, self._spec)
        return card

    def network(self, digest: str) -> PlayingNetwork:
        """The network itself, as `BatchedPolicy` asks for it."""
        return self._load(digest)[0]


class Arena:
    """The rows of `game`, each idle or playing one assigned match.

    One `BatchedPolicy` acts for snapshots every `frame_skip` frames, sampled at temperature 1, or
    greedily in the greedy book; the game plays bots itself. Networks run on `device`. `recorder`
    sees every decision.
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
    ) -> None:
        self._game = game
        self._frame_skip = frame_skip
        self._recorder = recorder
        self._batched_policy = BatchedPolicy(
            2 * game.num_matches,
            load,
            seed=seed,
            action_size=game.spec.action_size,
            action_kind=game.spec.action_kind,
            device=device,
        )
        self._rows: list[Assignment | None] = [None] * game.num_matches
        game.idle_N[:] = True
        self._actions_shape = (game.num_matches, 2, game.spec.action_size)
        self.frames_played = 0  # by matches in progress, over all rows
        game.bots_N2[:] = EXTERNAL

    @property
    def rows(self) -> int:
        """Matches that can be played at once."""
        return len(self._rows)

    @property
    def free(self) -> int:
        """Rows that could take a match."""
        return int(self._game.idle_N.sum())

    @property
    def busy(self) -> int:
        """Matches in progress."""
        return len(self._rows) - self.free

    def seat(self, assignments: Sequence[Assignment]) -> None:
        """Begins these matches, at most `free` of them."""
        rows = np.flatnonzero(self._game.idle_N)[: len(assignments)]
        if len(rows) < len(assignments):
            raise ValueError(f"{len(assignments)} matches don't fit in {len(rows)} free rows")
        if not assignments:
            return
        seeds_N = np.zeros(self._game.num_matches, dtype=np.uint64)
        where_N = np.zeros(self._game.num_matches, dtype=np.bool_)
        for row, assignment in zip(rows, assignments, strict=True):
            self._rows[row] = assignment
            seeds_N[row], where_N[row] = assignment.seed, True
            greedy = assignment.book is Book.GREEDY
            for seat, player in enumerate(assignment.seats):
                is_bot = player.kind is PlayerKind.BOT
                bot = self._game.spec.bot_index(player.name) if is_bot else EXTERNAL
                self._game.bots_N2[row, seat] = bot
                if not is_bot:
                    self._batched_policy.seat(2 * int(row) + seat, player.digest, greedy=greedy)
            if self._recorder is not None:
                self._recorder.begin(int(row), assignment)
        self._game.idle_N[rows] = False
        self._game.reset(seeds_N, where_N)

    def step(self) -> list[MatchResult]:
        """One decision of every match in progress; returns the matches that ended."""
        game = self._game
        frames_before_N = game.frames_N.copy()
        seats = 2 * game.num_matches
        legal_SA = None if game.legal_N2A is None else game.legal_N2A.reshape(seats, -1)
        actions_SA = self._batched_policy.act(game.observations_N2O.reshape(seats, -1), legal_SA)
        actions_N2A = actions_SA.reshape(self._actions_shape)
        if self._recorder is not None:
            self._recorder.note(actions_N2A)
        game.step(actions_N2A, self._frame_skip)
        frames_N = np.where(game.ended_N, game.final_frames_N, game.frames_N) - frames_before_N
        self.frames_played += int(frames_N[~game.idle_N].sum())
        ended = np.flatnonzero(game.ended_N & ~game.idle_N)
        return [self._leave(int(row)) for row in ended]

    def _leave(self, row: int) -> MatchResult:
        assignment = self._rows[row]
        assert assignment is not None
        failure = self._game.failures.get(row, "")
        result = match_result(assignment, self._game, row, failure=failure)
        if self._recorder is not None:
            self._recorder.end(row, self._game)
        for seat in (0, 1):
            self._batched_policy.vacate(2 * row + seat)
        self._rows[row] = None
        self._game.idle_N[row] = True
        return result
