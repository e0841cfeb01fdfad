"""Games with an artificial step of some milliseconds a match, for game_workers.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from league.games.base import BatchedGame
from league.games.registry import make_batched


def _computes(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def _slowed(wait: Callable[[float], None]) -> Callable[..., BatchedGame]:
    def make(
        num_matches: int, *, max_frames: int | None = None, milliseconds: float = 5.0
    ) -> BatchedGame:
        game = make_batched("leduc", num_matches, max_frames=max_frames)
        step: Any = game.step

        def slow(actions_N2A: Any, frames: int = 1) -> None:
            for _ in range(num_matches):
                wait(milliseconds / 1000)
            step(actions_N2A, frames)

        game.step = slow  # pyrefly: ignore[bad-assignment]
        return game

    return make


sleeps, computes = _slowed(time.sleep), _slowed(_computes)
