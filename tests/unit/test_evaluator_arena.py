"""The arena on the real game: who sits where, what the books mean, what comes back."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
import torch

from evaluator.clean.arena import Arena
from league.agent.config import AgentConfig, AgentSettings
from league.agent.network import AgentNetwork
from league.games.base import BatchedGame
from league.games.registry import game_spec, make_batched
from league.players import Assignment, Book, MatchResult, Player, PlayerKind

SPEC = game_spec("brawl")
ROWS = 8
ME = Player(name="main@1", game="brawl", kind=PlayerKind.SNAPSHOT, digest="1" * 64, step=1)
OTHER = Player(name="main@2", game="brawl", kind=PlayerKind.SNAPSHOT, digest="2" * 64, step=2)
BASED = Player(name="based", game="brawl", kind=PlayerKind.BOT)
CONSTANT = Player(name="constant", game="brawl", kind=PlayerKind.BOT)


def load(digest: str) -> AgentNetwork:
    torch.manual_seed(int(digest[0]))
    settings = AgentSettings(size="tiny", sequence_length=17)
    return AgentNetwork(AgentConfig.of(settings, SPEC)).eval()


@pytest.fixture(scope="module")
def game() -> BatchedGame:
    """Ten seconds: enough to see who presses what."""
    return make_batched("brawl", ROWS, max_frames=300)


def assignment(
    number: int, first: Player, second: Player, book: Book = Book.EVAL, seed: int = 7
) -> Assignment:
    return Assignment(
        match_id=str(number),
        ordinal=number,
        lease_token=f"token {number}",
        lease_deadline=0.0,
        seats=(first, second),
        learner_seat=-1,
        book=book,
        seed=seed,
        category="gauntlet",
    )


def play(
    game: BatchedGame, matches: Sequence[Assignment], seed: int = 0
) -> tuple[list[MatchResult], Arena]:
    arena = Arena(game, load, frame_skip=4, seed=seed)
    arena.seat(matches)
    results: list[MatchResult] = []
    while arena.busy:
        results += arena.step()
    return sorted(results, key=lambda r: int(r.match_id)), arena


def test_the_named_bot_plays_the_named_seat() -> None:
    game = make_batched("brawl", ROWS)
    pairs = [(ME, BASED), (BASED, ME)] * 2
    began = time.time()
    results, arena = play(game, [assignment(i, *pair, seed=i) for i, pair in enumerate(pairs)])
    based_wins = [r.outcome == float(r.seats[0].player == "based") for r in results]
    assert sum(based_wins) >= 3, "the bot beats an untrained network from either seat"
    for result, pair in zip(results, pairs, strict=True):
        assert [s.player for s in result.seats] == [p.name for p in pair]
        assert [s.digest for s in result.seats] == [p.digest for p in pair]
        assert [s.step_end for s in result.seats] == [p.step for p in pair]
        assert all(
            set(s.stats) == set(SPEC.stats) and s.stats["keys_pressed"] > 0.0 for s in result.seats
        )
        assert result.seats[0].stats["damage_dealt"] == pytest.approx(
            result.seats[1].stats["damage_taken"], abs=0.1
        )
        assert result.lease_token == f"token {result.match_id}"
        assert began <= result.finished_at <= time.time()
    assert arena.frames_played == sum(r.frames for r in results), "idle rows are no progress"


def same(first: MatchResult, second: MatchResult) -> bool:
    return first.frames == second.frames and [dict(s.stats) for s in first.seats] == [
        dict(s.stats) for s in second.seats
    ]


def test_greedy_play_repeats_itself_and_sampled_play_does_not(game: BatchedGame) -> None:
    for book, repeats in ((Book.GREEDY, True), (Book.EVAL, False)):
        (first,), _ = play(game, [assignment(0, ME, CONSTANT, book)], seed=1)
        (second,), _ = play(game, [assignment(0, ME, CONSTANT, book)], seed=2)
        assert same(first, second) is repeats, book


def test_a_row_that_is_used_again_starts_clean(game: BatchedGame) -> None:
    """A greedy match is the same in a fresh arena and in a row where another match was just
    played.
    """
    (alone,), _ = play(game, [assignment(0, ME, CONSTANT, Book.GREEDY, seed=3)])
    arena = Arena(game, load, frame_skip=4, seed=0)
    arena.seat([assignment(i, BASED, OTHER, seed=i) for i in range(ROWS)])
    assert arena.free == 0
    while not arena.free:
        arena.step()
    arena.seat([assignment(99, ME, CONSTANT, Book.GREEDY, seed=3)])
    results: list[MatchResult] = []
    while "99" not in {r.match_id for r in results}:
        results += arena.step()
    assert same(alone, next(r for r in results if r.match_id == "99"))
