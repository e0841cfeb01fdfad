"""A game whose steps never return."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from league.games.base import BatchedGame
from league.games.registry import make_batched


def make(num_matches: int, *, told: str, max_frames: int | None = None) -> BatchedGame:
    """In a step it first writes its process id to the file `told`."""
    game = make_batched("matrix:rps", num_matches, max_frames=max_frames)

    def step(*arguments: Any) -> None:
        Path(told).write_text(str(os.getpid()))
        while True:
            time.sleep(60)

    game.step = step  # type: ignore[method-assign]
    return game
