"""Every built-in game keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from choice_contract import ChoiceContract
from game_contract import KeysContract

from league.games.base import BatchedGame
from league.games.registry import make_batched


class TestBrawl(KeysContract):
    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("brawl", num_matches, max_frames=max_frames)


class TestRockPaperScissors(ChoiceContract):
    timed = turns = False

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("matrix:rps", num_matches, max_frames=max_frames, rounds=7)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched("matrix:brps", num_matches), make_batched("matrix:rps", num_matches)]


class TestTableOfPayoffs(TestRockPaperScissors):
    """Three choices against two, so that one of them is never legal for the second player."""

    @pytest.fixture(autouse=True)
    def _table(self, tmp_path: Path) -> None:
        self.path = tmp_path / "game.csv"
        self.path.write_text("left,right\n1,-2\n0,0.5\n-1,3\n")

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched(f"matrix:{self.path}", num_matches, max_frames=max_frames, rounds=3)


class TestKuhn(ChoiceContract):
    timed = False

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("kuhn", num_matches, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched(name, num_matches) for name in ("leduc", "matrix:rps")]


class TestLeduc(TestKuhn):
    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("leduc", num_matches, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched("kuhn", num_matches)]
