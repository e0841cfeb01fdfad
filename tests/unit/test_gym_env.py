"""The game as a Gymnasium environment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines
from stable_baselines3.common.env_util import make_vec_env

import league.games
from league.errors import ConfigError, InvalidInput

ID = "league/Brawl-v0"


@pytest.mark.parametrize(
    "options", [{"opponent": "based"}, {"opponent": lambda _: [0] * 10, "seat": 1}]
)
def test_both_checkers_pass_without_a_warning(options: dict) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ID, **options)
        check_env(env.unwrapped)
        check_for_stable_baselines(env)


def test_the_match_ends_with_an_outcome_and_the_reward_is_its_terms() -> None:
    env = gymnasium.make(ID, opponent="constant", match_seconds=2, reward="sparse")
    env.reset(seed=0)
    for frame in range(60):
        view, reward, terminated, _, info = env.step(np.zeros(10, np.int8))
        assert terminated == (frame == 59)
        assert reward == pytest.approx(sum(info["reward_terms"].values()))
        assert ("outcome" in info) == terminated
    assert info["outcome"] == 0.5
    assert env.observation_space.contains(view)


@pytest.mark.parametrize("seat", [0, 1])
def test_a_seat_plays_its_own_keys_and_gets_its_own_outcome(seat: int) -> None:
    env = gymnasium.make(ID, opponent=lambda _: np.zeros(10, np.int8), seat=seat)
    view, _ = env.reset(seed=1)
    outward = 3 if view[0] > 0 else 1
    keys = np.zeros(10, np.int8)
    keys[outward] = 1
    total = 0.0
    while True:
        view, reward, terminated, _, info = env.step(keys)
        total += float(reward)
        if terminated:
            break
    assert info["outcome"] == 0.0
    assert info["reward_terms"]["win"] == -50
    assert total < -50


def test_pictures_are_drawn_and_change() -> None:
    env = gymnasium.make(ID, render_mode="rgb_array", render_size=(320, 180), match_seconds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.reset(seed=1)
    images = [env.render()]
    for _ in range(30):
        *_, terminated, _, _ = env.step(np.ones(10, np.int8))
        images.append(env.render())
    assert terminated
    assert {image.shape for image in images} == {(180, 320, 3)}
    assert {image.dtype for image in images} == {np.dtype(np.uint8)}
    assert len({image.tobytes() for image in images}) == 31
    middle = [image[85:95].mean() for image in (images[-2], images[-1])]
    assert middle[1] < 0.7 * middle[0], "the verdict's dark band is drawn at the end"


HELD = (np.array([0.7] * 10), np.full(10, 0.51, np.float32), np.ones(10, bool), [1] * 10)
FREE = (np.array([-1] * 10), np.full(10, 0.5), np.full(10, -np.inf), [0] * 10)


def played(act: Callable[[Any], Any]) -> list[NDArray]:
    """Views of a match in which seat 0 does one thing, by each environment."""
    one = gymnasium.make(ID, opponent="constant").unwrapped
    many = gymnasium.make_vec(ID, num_envs=2, opponent="constant").unwrapped
    both = league.games.parallel_env()
    other = gymnasium.make(ID, opponent=act, seat=1).unwrapped
    for env in (one, many, both, other):
        env.reset(seed=3)
    idle = np.zeros(10, np.int8)
    for _ in range(5):
        seen = [
            one.step(act(None))[0],
            many.step(np.stack([act(None), idle]))[0][0],
            both.step({"player_0": act(None), "player_1": idle})[0]["player_0"],
            other.step(idle)[0],
        ]
    return seen


def test_a_key_is_pressed_above_one_half_in_every_environment() -> None:
    held, free = ([played(lambda _, keys=keys: keys) for keys in each] for each in (HELD, FREE))
    for same in (held, free):
        for views in same:
            assert all(np.array_equal(a, b) for a, b in zip(views, same[0], strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(held[0], free[0], strict=True))


@pytest.mark.parametrize("keys", [np.full(10, np.nan), np.array([1.0] * 9 + [np.nan]), 3, "w" * 10])
def test_keys_that_are_no_numbers_are_refused(keys: Any) -> None:
    with pytest.raises(InvalidInput, match="key"):
        played(lambda _: keys)


def test_a_match_is_begun_before_it_is_played_or_drawn() -> None:
    for mode in (None, "ansi", "rgb_array"):
        env, both = (
            gymnasium.make(ID, render_mode=mode),
            league.games.parallel_env(render_mode=mode),
        )
        for call in (env.unwrapped.render, both.render):
            with pytest.raises(InvalidInput, match="reset"):
                call()
        with pytest.raises(InvalidInput, match="reset"):
            env.unwrapped.step(np.zeros(10, np.int8))
    with pytest.raises(InvalidInput, match="reset"):
        gymnasium.make_vec(ID, num_envs=2).unwrapped.step(np.zeros((2, 10), np.int8))


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_a_batch_is_not_drawn(mode: str) -> None:
    assert gymnasium.make_vec(ID, num_envs=2, render_mode=None).num_envs == 2
    with pytest.raises(ConfigError, match=mode):
        gymnasium.make_vec(ID, num_envs=2, render_mode=mode)


def test_a_recurrent_policy_learns_on_the_multi_discrete_actions() -> None:
    envs = make_vec_env(ID, n_envs=2, env_kwargs={"actions": "multi_discrete", "match_seconds": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ID, actions="multi_discrete").unwrapped)
    model = RecurrentPPO("MlpLstmPolicy", envs, n_steps=16, batch_size=32, device="cpu")
    before = [part.clone() for part in model.policy.parameters()]
    model.learn(64)
    assert any((a != b).any() for a, b in zip(before, model.policy.parameters(), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponent": "basd"}, "no bot 'basd'"),
        ({"seat": 2}, "no seat 2"),
        ({"reward": "x"}, "'x'"),
        ({"stage": "moon"}, "no stage 'moon'"),
        ({"actions": "box"}, "'box'.*multi_binary.*multi_discrete"),
        ({"frame_skip": 0}, "frame_skip is 0"),
        ({"render_mode": "film"}, "'film'.*ansi, rgb_array"),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gymnasium.make(ID, **options)
