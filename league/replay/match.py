"""Describes a match by its seed and the actions of both seats.

Shape suffixes: T frames, 2 seats, A action width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.errors import VersionMismatch, plain
from league.games.base import BatchedGame
from league.games.registry import make_batched
from league.games.settings import GameSettings, check_game_of_file


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Describes a game by the arguments of `make_batched`, and the version of its rules.

    `is_allowed`: whether `make` may make the game without a check, because a run's settings name
    the game or because `load_replay` has already checked it.
    """

    name: str
    version: str
    max_frames: int | None = None
    options: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    is_allowed: bool = field(default=False, compare=False, repr=False)

    @classmethod
    def of(cls, settings: GameSettings) -> Recipe:
        """Returns the recipe of a run's settings."""
        return cls(
            name=settings.name,
            version=settings.spec().version,
            max_frames=settings.max_frames,
            options=settings.clean_options,
            is_allowed=True,
        )

    def make(self, num_matches: int = 1) -> BatchedGame:
        """Makes the batched game.

        Raises:
            InvalidInput: the game is not allowed. Without `is_allowed`, only built-in games that
                run no other code may be made.
            VersionMismatch: the game's rules have changed.
        """
        if not self.is_allowed:
            check_game_of_file(self.name, self.options)
        game = make_batched(self.name, num_matches, max_frames=self.max_frames, **self.options)
        if game.spec.version != self.version:
            game.close()
            raise VersionMismatch(
                f"the match was played under version {self.version} of the rules of {self.name}, "
                f"here they have version {game.spec.version}: use it with the Kumite that recorded "
                "it"
            )
        return game


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Describes the player in a seat.

    Attributes:
        digest: digest of the weights, "" for bots.
        bot: the name of a bot whose actions are not in the replay, so that the game has to play it
            again. "" if the replay has the actions of this seat.
    """

    name: str
    digest: str = ""
    bot: str = ""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Describes a whole match.

    Attributes:
        outcome: seat 0's outcome: 1 for a win, ½ for a draw, 0 for a loss.
        final: digest of the state in which the match ended.
        disturbed: the stretches of frames in which the recorder replaced a player's actions by
            mistakes, each as (seat, first frame, number of frames).
        stats: the totals of each seat's statistics. Only a new recording has them, because files
            don't store them.
        terms: the sums of each seat's reward terms. Files don't store them.
        free_T2: whether each seat had a choice in each frame. None means always. Files don't store
            it.
    """

    recipe: Recipe
    seats: tuple[Contender, Contender]
    seed: int
    actions_T2A: NDArray[np.uint8]
    outcome: float
    final: str
    match_id: str = ""
    disturbed: tuple[tuple[int, int, int], ...] = ()
    stats: tuple[Mapping[str, float], ...] = field(default=(), compare=False)
    terms: tuple[Mapping[str, float], ...] = field(default=(), compare=False)
    free_T2: NDArray[np.bool_] | None = field(default=None, compare=False)

    @property
    def names(self) -> tuple[str, str]:
        """Returns the players' names by seat, without control characters from a stranger's file."""
        return plain(self.seats[0].name), plain(self.seats[1].name)

    @property
    def winner(self) -> int | None:
        """The seat that won, None after a draw."""
        return None if self.outcome == 0.5 else int(self.outcome == 0.0)

    @property
    def frames(self) -> int:
        """Length in frames."""
        return len(self.actions_T2A)


def final_digest(game: BatchedGame, row: int) -> str:
    """Returns the digest of a match's end: outcome, length, last observations and statistics. Call
    it right after the match's last step.
    """
    parts = (
        game.outcomes_N,
        game.final_frames_N,
        game.final_observations_N2O,
        game.final_stats_N2S,
    )
    digest = hashlib.sha256()
    for array in parts:
        digest.update(np.ascontiguousarray(array[row]).tobytes())
    return digest.hexdigest()[:32]
