"""Every built-in game keeps the contract."""

from __future__ import annotations

from game_contract import GameContract

from league.games.base import BatchedGame
from league.games.registry import make_batched


class TestBrawl(GameContract):
    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("brawl", num_matches, max_frames=max_frames)
