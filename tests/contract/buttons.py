"""Matches of small environments with buttons, each of which does one thing wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from small_environments import PASS

from league.games.base import BatchedGame
from league.games.pettingzoo.game import PettingZooGame
from league.games.registry import make_batched


def buttons(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    options.setdefault("step_seconds", 0.5)
    game = make_batched(
        "pettingzoo:small_environments:Buttons", matches, workers=workers, **options
    )
    assert isinstance(game, PettingZooGame)
    return game


def pressed(game: BatchedGame, where: dict[int, int]) -> NDArray[np.uint8]:
    """Seat 0 presses a button in some rows; all else passes."""
    actions_N2A = np.zeros((game.num_matches, 2, 7), np.uint8)
    actions_N2A[:, :, PASS] = 1
    for row, button in where.items():
        actions_N2A[row, 0] = np.eye(7, dtype=np.uint8)[button]
    return actions_N2A


def begun(matches: int = 6, workers: int = 1, **options: Any) -> PettingZooGame:
    game = buttons(matches, workers, **options)
    game.reset(np.arange(matches, dtype=np.uint64))
    return game
