"""Every built-in game keeps the contract."""

from __future__ import annotations

from choice_contract import ChoiceContract
from game_contract import RestingContract

from league.games.base import BatchedGame
from league.games.registry import make_batched


class TestBrawl(RestingContract):
    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("brawl", num_matches, max_frames=max_frames)


class TestRockPaperScissors(ChoiceContract):
    timed = turns = False
    pace = 10

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("matrix:rps", num_matches, max_frames=max_frames, rounds=7)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched("matrix:brps", num_matches), make_batched("matrix:rps", num_matches)]


class TestKuhn(ChoiceContract):
    timed = False
    pace = 10

    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("kuhn", num_matches, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched(name, num_matches) for name in ("leduc", "matrix:rps")]


class TestLeduc(TestKuhn):
    def make(self, num_matches: int, max_frames: int | None = None) -> BatchedGame:
        return make_batched("leduc", num_matches, max_frames=max_frames)

    def strangers(self, num_matches: int) -> list[BatchedGame]:
        return [make_batched("kuhn", num_matches)]
