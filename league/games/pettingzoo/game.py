"""The batched game over PettingZoo environments.

Shape suffixes: N matches, 2 seats, A action width, O observation width, K reward terms, S stats.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.base import CHOICE, EXTERNAL, BatchedGame
from league.games.pettingzoo.draws import draws, random_choices, random_keys
from league.games.pettingzoo.history import History
from league.games.pettingzoo.matches import Matches, Played
from league.games.pettingzoo.memory import Memory, Sizes
from league.games.pettingzoo.pool import Pool, worker_count
from league.games.pettingzoo.saving import load, saved
from league.games.pettingzoo.spec import read

_ILLEGAL, _MOVES, _REWARD = range(3)


class PettingZooGame(BatchedGame):
    """N matches of one environment, played in worker processes that `reset` and `load` start.

    A seat's own part is which seat it is (2), whether it is to act (1) and its legal choices (A);
    the rest is what the environment shows it. Raises `ConfigError` for an environment that can't be
    taken.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        argument: str,
        options: Mapping[str, Any],
        max_frames: int | None,
        step_seconds: float,
        workers: int,
    ) -> None:
        if num_matches < 1:
            raise InvalidInput(f"{num_matches} matches can't be played: ask for at least 1")
        if max_frames is not None and max_frames < 1:
            raise InvalidInput(f"a match can't end after {max_frames} frames: allow at least 1")
        self.spec, face = read(argument, options, max_frames)
        self.num_matches = num_matches
        self.options, self._choices = dict(options), face.kind == CHOICE
        sizes = Sizes(
            matches=num_matches,
            actions=face.action_size,
            observation=self.spec.observation_size,
            own=self.spec.own_size,
            workers=worker_count(num_matches, workers),
        )
        self._memory = Memory(sizes)
        self._pool = Pool(
            self._memory, {"argument": argument, "options": self.options}, step_seconds
        )
        history = History(num_matches, face.kind, face.action_size)
        self.matches = Matches(self._memory, self._pool, history)
        self._closed = False
        self._allocate()
        self._finalizer = weakref.finalize(self, _end, self._pool, self._memory)

    def _allocate(self) -> None:
        n, memory = self.num_matches, self._memory
        self.observations_N2O = memory.observations_N2O
        self.final_observations_N2O = memory.final_observations_N2O
        self.seeds_N, self.next_seeds_N = memory.seeds_N, memory.next_seeds_N
        self.legal_N2A = memory.legal_N2A if self._choices else None
        self.reward_terms_N2K = np.zeros((n, 2, len(self.spec.reward_terms)), np.float32)
        self.ended_N = np.zeros(n, np.bool_)
        self.outcomes_N = np.full(n, 0.5, np.float32)
        self.frames_N = self.matches.frames_N
        self.final_frames_N = np.zeros(n, np.int32)
        self.stats_N2S = np.zeros((n, 2, len(self.spec.stats)), np.float32)
        self.final_stats_N2S = np.zeros_like(self.stats_N2S)
        self.bots_N2 = np.full((n, 2), EXTERNAL, np.int8)
        self.totals_N2 = np.zeros((n, 2))
        memory.legal_N2A[:, :, 0] = True
        for views_N2O in (self.observations_N2O, self.final_observations_N2O):
            views_N2O[:, :, :2] = np.eye(2)
            if self._choices:
                views_N2O[:, :, 3] = 1.0

    def reset(self, seeds: NDArray[np.uint64], where: NDArray[np.bool_] | None = None) -> None:
        """Begins a match from `seeds[n]` in every row, or in the rows where `where`.

        `next_seeds_N` of these rows becomes seed + 1. Raises `Unavailable` when no process can be
        started.
        """
        seeds_N = np.ascontiguousarray(seeds, np.uint64)
        where_N = (
            np.ones(self.num_matches, np.bool_) if where is None else np.asarray(where, np.bool_)
        )
        if seeds_N.shape != (self.num_matches,) or where_N.shape != (self.num_matches,):
            raise InvalidInput(
                f"seeds {seeds_N.shape} and where {where_N.shape} must both have shape ({self.num_matches},)"
            )
        self.seeds_N[where_N] = seeds_N[where_N]
        self.next_seeds_N[where_N] = seeds_N[where_N] + np.uint64(1)
        self.stats_N2S[where_N] = 0.0
        self.totals_N2[where_N] = 0.0
        self._closed = False
        self.matches.begin(where_N)
        self._show()

    def _show(self) -> None:
        """Writes the own parts of the observations."""
        self.observations_N2O[:, :, 2] = self._memory.acting_N2
        if self._choices:
            self.observations_N2O[:, :, 3 : self.spec.own_size] = self._memory.legal_N2A

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays `frames` frames; in games of choices exactly 1.

        An illegal choice ends the match as its maker's loss. Raises `InvalidInput` for a wrong
        shape or number of frames, and for a row without a choice where no bot plays.
        """
        actions_N2A = np.ascontiguousarray(actions_N2A, np.uint8)
        self._check(actions_N2A, frames)
        if self._closed:
            raise InvalidInput(
                "the game was closed: reset it, or load a saved state, before the next step"
            )
        # rows that nobody cares for are stepped before any match is begun there
        if not self._pool.pids:
            self.reset(self.seeds_N)
            actions_N2A = self.idle_actions()
        self.reward_terms_N2K[:] = 0.0
        self.ended_N[:] = False
        self.failures = {}
        for _ in range(frames):
            where_N = ~self.ended_N
            self._decide(actions_N2A)
            acting_N2 = self._memory.acting_N2 & where_N[:, None]
            last_N = self.frames_N + 1 >= self.spec.max_frames
            played = self.matches.play(where_N, last_N)
            self._count(played, acting_N2)
            self._finish(played)
        self._show()

    def _check(self, actions_N2A: NDArray[np.uint8], frames: int) -> None:
        wanted = (self.num_matches, 2, self.spec.action_size)
        if actions_N2A.shape != wanted:
            raise InvalidInput(f"actions have shape {actions_N2A.shape}: {wanted} is wanted")
        if frames < 1:
            raise InvalidInput(f"{frames} frames can't be played: ask for at least 1")
        if not self._choices:
            return
        if frames > 1:
            raise InvalidInput(
                f"{frames} frames can't be played at once: in {self.spec.name} one is a choice"
            )
        wrong_N2 = (self.bots_N2 == EXTERNAL) & ((actions_N2A != 0).sum(-1) != 1)
        if wrong_N2.any():
            n, seat = np.argwhere(wrong_N2)[0].tolist()
            names = np.array(self.spec.action_names)
            chosen = ", ".join(names[actions_N2A[n, seat] != 0]) or "nothing"
            raise InvalidInput(
                f"seat {seat} of match {n} chose {chosen}: exactly one choice is wanted"
            )

    def _decide(self, actions_N2A: NDArray[np.uint8]) -> None:
        memory, bots_N2 = self._memory, self.bots_N2 != EXTERNAL
        memory.actions_N2A[:] = actions_N2A
        if bots_N2.any():
            draws_N2 = draws(self.seeds_N, self.frames_N)
            chosen_N2A = (
                random_choices(draws_N2, memory.legal_N2A)
                if self._choices
                else random_keys(draws_N2, self.spec.action_size)
            )
            memory.actions_N2A[bots_N2] = chosen_N2A[bots_N2]

    def _count(self, played: Played, acting_N2: NDArray[np.bool_]) -> None:
        fine_N = np.ones(self.num_matches, np.bool_)
        fine_N[list(played.failures)] = False
        acting_N2 = acting_N2 & fine_N[:, None]
        self.reward_terms_N2K[:, :, 0] += played.rewards_N2
        self.totals_N2 += played.rewards_N2
        self.stats_N2S[:, :, _MOVES] += acting_N2
        self.stats_N2S[:, :, _ILLEGAL] += played.illegal_N2
        self.stats_N2S[:, :, _REWARD] += played.rewards_N2

    def _finish(self, played: Played) -> None:
        """Outcomes and last arrays of the matches that ended; their rows are in the next match
        already.
        """
        ended_N = played.ended_N
        if not ended_N.any():
            return
        lead_N = self.totals_N2[:, 0] - self.totals_N2[:, 1]
        blame_N = played.illegal_N2[:, 1].astype(int) - played.illegal_N2[:, 0]
        lead_N = np.where(played.illegal_N2.any(axis=1), blame_N, lead_N)
        outcomes_N = (0.5 + 0.5 * np.sign(lead_N)).astype(np.float32)
        outcomes_N[list(played.failures)] = 0.5
        self.failures = {**self.failures, **played.failures}
        self.ended_N |= ended_N
        self.outcomes_N[ended_N] = outcomes_N[ended_N]
        win_N = 2.0 * outcomes_N - 1.0
        self.reward_terms_N2K[ended_N, 0, 1] = win_N[ended_N]
        self.reward_terms_N2K[ended_N, 1, 1] = -win_N[ended_N]
        self.final_frames_N[ended_N] = played.frames_N[ended_N]
        self.final_stats_N2S[ended_N] = self.stats_N2S[ended_N]
        self.stats_N2S[ended_N] = 0.0
        self.totals_N2[ended_N] = 0.0

    def save(self) -> dict[str, NDArray]:
        """A copy of the whole state: the arrays, and every match as its seed and actions."""
        return saved(self)

    def load(self, state: dict[str, NDArray]) -> None:
        """Plays the saved matches anew, up to where they were saved, and goes on from there.

        Raises `DataCorrupt` when the arrays don't fit (nothing has changed then), or when the
        environment doesn't come to what was saved: it doesn't repeat a match by its seed, and
        `reset` is needed. A state of another environment or time limit is a `VersionMismatch`.
        """
        self.failures, self._closed = {}, False
        try:
            load(self, state)
        finally:
            self._show()

    def played_N2A(self) -> NDArray[np.uint8]:
        """What both seats did in the last frame played, [N, 2, A], bots' too."""
        return self._memory.actions_N2A.copy()

    def frame(self, match: int) -> dict:
        """Match `match` as text: the environment's own (ansi), or what the seat to act observes."""
        reason = self.matches.broken.get(match)
        return {
            "game": self.spec.name,
            "frame": int(self.frames_N[match]),
            "max_frames": self.spec.max_frames,
            "seats": [
                {"acts": bool(acts), "payoff": float(total)}
                for acts, total in zip(
                    self._memory.acting_N2[match], self.totals_N2[match], strict=True
                )
            ],
            "text": self._pool.text(match) if reason is None else reason,
        }

    def close(self) -> None:
        """Ends the worker processes; `reset` and `load` would start new ones. Twice is fine."""
        self._closed = True
        self._pool.close()


def _end(pool: Pool, memory: Memory) -> None:
    pool.close()
    memory.close()
