"""What a clone learns from is what the player saw and did; replays that are no good are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import GAME, demos, recorded

from league.errors import DataCorrupt, InvalidInput, VersionMismatch
from league.games.registry import make_batched
from league.games.settings import GameSettings
from league.replay import Replay, save_replay
from learner.cloning.demonstrations import keys_of_decisions, read_replays

TAPPED = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0]], np.uint8)


@pytest.fixture(scope="module")
def plain() -> list[tuple[Path, Replay]]:
    return recorded()


@pytest.fixture(scope="module")
def disturbed() -> list[tuple[Path, Replay]]:
    return recorded(0.2)


@pytest.mark.parametrize(
    ("frame_skip", "keys"),
    [(4, [[1, 1], [0, 1]]), (2, [[1, 0], [0, 1], [1, 1]]), (1, TAPPED.tolist())],
)
def test_keys_of_decisions(frame_skip: int, keys: list[list[int]]) -> None:
    assert keys_of_decisions(TAPPED, frame_skip).tolist() == keys


@pytest.mark.parametrize("name", ["based", "random"])
def test_it_sees_what_the_player_saw(plain: list[tuple[Path, Replay]], name: str) -> None:
    found = demos(plain, name)
    assert len(found) == len(plain)
    for (_, replay), demonstration in zip(plain, found, strict=True):
        seat = [s.name for s in replay.seats].index(name)
        game = make_batched("brawl", 1, max_frames=150)
        game.reset(np.array([replay.seed], np.uint64))
        for frame, actions_2A in enumerate(replay.actions_T2A):
            if frame % 4 == 0:
                assert np.array_equal(
                    demonstration.obs_TO[frame // 4], game.observations_N2O[0, seat]
                )
            game.step(actions_2A[None])
        assert len(demonstration) == -(-replay.frames // 4)
        assert demonstration.own_T.all()


def test_a_disturbed_decision_is_not_the_players_own(disturbed: list[tuple[Path, Replay]]) -> None:
    for (_, replay), demonstration in zip(disturbed, demos(disturbed), strict=True):
        frames = {f for _, first, count in replay.disturbed for f in range(first, first + count)}
        for t, own in enumerate(demonstration.own_T):
            assert own == frames.isdisjoint(range(4 * t, 4 * t + 4))
    assert all(d.own_T.all() for d in demos(disturbed, "random"))


def folder_of(tmp_path: Path, replays: list[Replay]) -> Path:
    for n, replay in enumerate(replays):
        save_replay(tmp_path / f"{n}.replay", replay)
    return tmp_path


def test_replays_of_another_game_or_rules_are_named(
    tmp_path: Path, plain: list[tuple[Path, Replay]]
) -> None:
    good = plain[0][1]
    folder = folder_of(tmp_path, [good, replace(good, recipe=replace(good.recipe, version="0"))])
    with pytest.raises(VersionMismatch, match=r"1\.replay .* version 0 "):
        read_replays(folder, GAME)
    with pytest.raises(InvalidInput, match=r"0\.replay .*kuhn"):
        read_replays(folder, GameSettings(name="kuhn", reward="dense"))


def test_a_forged_replay_is_named(plain: list[tuple[Path, Replay]]) -> None:
    path, replay = plain[2]
    keys = replay.actions_T2A.copy()
    keys[-1, 0] ^= 1
    with pytest.raises(DataCorrupt, match=r"2\.replay: "):
        demos([*plain[:2], (path, replace(replay, actions_T2A=keys)), *plain[3:]])
    with pytest.raises(DataCorrupt, match=r"2\.replay: .*frames"):
        demos([*plain[:2], (path, replace(replay, actions_T2A=replay.actions_T2A[:-1]))])


def test_a_player_that_the_game_plays_anew_can_not_be_cloned(
    plain: list[tuple[Path, Replay]],
) -> None:
    path, replay = plain[0]
    seats = tuple(replace(s, bot=s.name) for s in replay.seats)
    with pytest.raises(InvalidInput, match="based"):
        demos([(path, replace(replay, seats=(seats[0], seats[1])))])
