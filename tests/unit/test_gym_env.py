"""The game as a Gymnasium environment."""

from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

import league.games  # noqa: F401 (registers the environment)
from league.errors import ConfigError

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponent": "basd"}, "no bot 'basd'"),
        ({"seat": 2}, "no seat 2"),
        ({"reward": "x"}, "no reward preset 'x'"),
        ({"stage": "moon"}, "no stage 'moon'"),
        ({"frame_skip": 0}, "frame_skip is 0"),
        ({"render_mode": "film"}, "no render mode 'film': choose one of ansi, rgb_array"),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gymnasium.make(ID, **options)
