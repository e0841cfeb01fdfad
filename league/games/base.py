"""The game contract: N two-seat matches that step together over preallocated arrays.

Shape suffixes: N matches, 2 seats, A action width, O observation width, K reward terms, S stats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

EXTERNAL = -1
"""In `BatchedGame.bots`: this seat's actions come from the caller."""

KEYS, CHOICE = "keys", "choice"
"""What an action `[A]` is: any set of A keys that are down (MultiBinary), or a one-hot choice of
one of A (Discrete), of which a match may allow only some at a time.
"""


@dataclass(frozen=True, kw_only=True)
class BotSpec:
    """A scripted player that the game itself plays. Its place in `GameSpec.bots` is its index."""

    name: str
    summary: str
    held_out: bool = False


@dataclass(frozen=True, kw_only=True)
class GameSpec:
    """What a learner must know of a game. `version` changes with the rules.

    `observation[:own_size]` is one's own part; the rest, what one sees of the opponent, is what the
    agent's encoder keeps a history of. A game whose observations can't be split so puts the whole
    of them into the rest, and what is left (the seat, whose turn it is) into the own part.
    """

    name: str
    version: str
    frames_per_second: int
    observation_size: int
    own_size: int  # at least 1, less than observation_size
    action_size: int
    action_names: tuple[str, ...]
    reward_terms: tuple[str, ...]
    stats: tuple[str, ...]  # per seat and match: "damage_dealt", "knockouts", ...
    bots: tuple[BotSpec, ...]
    max_frames: int
    action_kind: str = KEYS
    # names of the numbers, for people; may be empty
    observation_names: tuple[str, ...] = ()
    reward_presets: Mapping[str, Mapping[str, float]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    """Weights by preset and term; every game has `dense` and `sparse` (the outcome alone)."""

    def bot_index(self, name: str) -> int:
        """Index of the bot called `name`; raises KeyError."""
        for index, bot in enumerate(self.bots):
            if bot.name == name:
                return index
        raise KeyError(name)


class BatchedGame(ABC):
    """N matches in step. The arrays below are allocated once and overwritten by `reset` and `step`.

    Attributes:
        observations_N2O: float32 in [-1, 1], seat s's own half first; after a match ended it is
            already the next match's first observation.
        final_observations_N2O: last observation of the match that ended in this step (rows where
            `ended_N`; others are stale).
        reward_terms_N2K: float32, raw (unweighted) value of each term over this step's frames.
        ended_N: bool, whether the match ended in this step.
        outcomes_N: float32, for seat 0: 1 win, 0.5 draw, 0 loss (rows where `ended_N`).
        frames_N: int32, frames played of the current match.
        final_frames_N: int32, length in frames of the match that ended in this step.
        stats_N2S, final_stats_N2S: float32, behaviour totals of the current and the ended match.
        bots_N2: int8, EXTERNAL or the index of the bot that plays the seat; write it at any time.
        next_seeds_N: uint64, seed with which the match restarts in place when it ends; write it at
            any time. After a restart it is replaced by a value derived from itself.
        legal_N2A: bool, which choices a seat has now; None in games of keys, where all are free. A
        seat
            with nothing to decide (it is the other's turn) has one, whose choice changes nothing.
        failures: by row, why a match that ended in this step could not be played to its end (an
            environment that hangs): it has no outcome and must not be rated. Emptied by `step`.
    """

    spec: GameSpec
    num_matches: int
    observations_N2O: NDArray[np.float32]
    final_observations_N2O: NDArray[np.float32]
    reward_terms_N2K: NDArray[np.float32]
    ended_N: NDArray[np.bool_]
    outcomes_N: NDArray[np.float32]
    frames_N: NDArray[np.int32]
    final_frames_N: NDArray[np.int32]
    stats_N2S: NDArray[np.float32]
    final_stats_N2S: NDArray[np.float32]
    bots_N2: NDArray[np.int8]
    next_seeds_N: NDArray[np.uint64]
    legal_N2A: NDArray[np.bool_] | None = None
    failures: Mapping[int, str] = MappingProxyType({})

    @abstractmethod
    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins a match from `seeds[n]` in every row, or in the rows where `where`."""

    @abstractmethod
    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames with the keys held (bots decide in every frame).

        A match that ends stops there and restarts in place from its next seed; the rest of the
        frames is not played in it. In games of choices a frame is one choice and `frames` is 1; a
        row without any choice made (all zero) is refused with `InvalidInput` unless a bot sits
        there.
        """

    @abstractmethod
    def save(self) -> dict[str, NDArray]:
        """A copy of the whole state, arrays by name, from which `load` continues bit for bit."""

    @abstractmethod
    def load(self, state: dict[str, NDArray]) -> None:
        """Continues from what `save` returned; raises `DataCorrupt` when it does not fit."""

    @abstractmethod
    def frame(self, match: int) -> dict:
        """One match's current state as a small JSON-able dict, for renderers."""

    def time_left_N(self) -> NDArray[np.float32]:
        """Share of the match still to come, 1 at the start and 0 at the time limit."""
        return (1.0 - self.frames_N / self.spec.max_frames).astype(np.float32)

    def idle_actions(self) -> NDArray[np.uint8]:
        """What unused seats do, [N, 2, A]: no key, or the first choice that is
        legal.
        """
        actions_N2A = np.zeros((self.num_matches, 2, self.spec.action_size), np.uint8)
        if self.legal_N2A is not None:
            np.put_along_axis(actions_N2A, self.legal_N2A.argmax(-1)[..., None], 1, -1)
        return actions_N2A

    def played_N2A(self) -> NDArray[np.uint8] | None:
        """What both seats did in the frame played last, [N, 2, A], the game's own bots too.

        None if the game doesn't report it; a replay then lets the bots play again.
        """
        return None

    def final_frame(self, match: int) -> dict | None:
        """How this row's last match ended, in the form of `frame`, with "ended": True; for pictures
        alone.

        None where the game keeps no frame of it.
        """
        return None

    def close(self) -> None:  # noqa: B027 (to override where something runs)
        """Ends what the game runs outside of this process (most run nothing). Twice is fine."""
