"""The planners: stronger with each step, the same in every batch, and without knowledge of the
future.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from league.games.brawl.game import BrawlGame
from league.games.brawl.spec import BOTS, PLANNERS


def seated(pairs: Sequence[tuple[str, str]], seeds: Sequence[int], **options: int) -> BrawlGame:
    game = BrawlGame(len(pairs), **options)
    game.bots_N2[:] = [[game.spec.bot_index(name) for name in pair] for pair in pairs]
    game.reset(np.array(seeds, np.uint64))
    return game


def points(first: str, second: str, seeds: int) -> float:
    """Share of the points that the first takes, each seed from both seats."""
    pairs = [(first, second), (second, first)] * seeds
    game = seated(pairs, np.repeat(np.arange(seeds), 2).tolist())
    scores_N = np.full(2 * seeds, np.nan)
    while np.isnan(scores_N).any():
        game.step(game.idle_actions(), 4)
        outcomes_N = np.where(np.arange(2 * seeds) % 2, 1 - game.outcomes_N, game.outcomes_N)
        scores_N[game.ended_N] = outcomes_N[game.ended_N]
        game.idle_N |= game.ended_N
    return float(scores_N.mean())


@pytest.mark.long
def test_each_planner_is_stronger_than_the_step_below() -> None:
    """The seeds are fixed, so the shares are always the same. docs/evaluation.md has more."""
    assert points("planner_16", "based", 4) > 0.9
    assert points("planner_64", "planner_16", 4) >= 0.6


@pytest.mark.parametrize(("frames", "threads"), [(1, 1), (3, 1), (4, 2)])
def test_a_match_is_the_same_in_every_batch_and_in_steps_of_any_length(
    frames: int, threads: int
) -> None:
    pairs = [("planner_16", "kiter"), ("kiter", "aerial"), ("aerial", "planner_64")]
    batch = seated(pairs, [5, 6, 7], threads=threads)
    alone = [seated([pair], [seed]) for pair, seed in zip(pairs, [5, 6, 7], strict=True)]
    for _ in range(120 // frames):
        batch.step(batch.idle_actions(), frames)
    for game in alone:
        for _ in range(10):
            game.step(game.idle_actions(), 12)
    batch.close()
    assert batch._players_N2.tobytes() == b"".join(one._players_N2.tobytes() for one in alone)
    assert batch.frames_N.tolist() == [120, 120, 120]


def test_a_saved_match_continues_in_the_middle_of_a_plan() -> None:
    game, other = seated([("planner_16", "based")], [3]), BrawlGame(1)
    game.step(game.idle_actions(), 50)
    other.load(game.save())
    for one in (game, other):
        one.step(one.idle_actions(), 40)
    assert other._players_N2.tobytes() == game._players_N2.tobytes()
    fresh = BrawlGame(1)
    assert "plans" not in fresh.save()
    game.load(fresh.save())
    assert "plans" not in game.save()


def test_a_planner_does_not_know_what_will_be_drawn() -> None:
    game, other = (seated([("planner_64", "drunk")], [4]) for _ in range(2))
    for _ in range(20):
        for one in (game, other):
            one.step(one.idle_actions(), 4)
        other.load(game.save())
        other._players_N2["random"][:, 1] += np.uint64(1)
        other._weapons_NP["random"] += np.uint64(1)
        for one in (game, other):
            one.step(one.idle_actions())
        assert game._matches_N["keys_0"] == other._matches_N["keys_0"]


def test_planners_play_only_where_they_are_named() -> None:
    assert all(planner.held_out for planner in PLANNERS)
    spec = BrawlGame(1).spec
    assert spec.bots == BOTS
    assert spec.all_bots == (*BOTS, *PLANNERS)
    assert [spec.bot_index(planner.name) for planner in PLANNERS] == list(
        range(len(BOTS), len(BOTS) + len(PLANNERS))
    )
