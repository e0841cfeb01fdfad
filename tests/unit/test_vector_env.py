"""The batch of environments: what one environment does, many do alike, whatever their number."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import league.games  # noqa: F401 (registers the environment)
from league.errors import ConfigError, InvalidInput
from league.games.vector_env import BrawlVectorEnv

ID = "league/Brawl-v0"
SHORT = {"match_seconds": 2.0}


def vector(num_envs: int, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return gymnasium.make_vec(ID, num_envs=num_envs, **{**SHORT, **options})


def keys(seed: int, steps: int, num_envs: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (steps, num_envs, 10), np.int8)


def test_make_vec_gives_the_native_one_with_its_mode_and_spaces() -> None:
    envs = vector(256)
    assert isinstance(envs.unwrapped, BrawlVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.observation_space.shape == (256, 74)
    assert envs.action_space.shape == (256, 10)
    views, infos = envs.reset(seed=1)
    assert envs.observation_space.contains(views)
    assert infos == {}
    views, rewards, ended, cut, _ = envs.step(envs.action_space.sample())
    assert envs.observation_space.contains(views)
    assert rewards.shape == ended.shape == cut.shape == (256,)
    assert not cut.any()
    envs.close()
    envs.close()


def test_one_environment_is_the_same_alone_and_among_256() -> None:
    """Over several matches: what restarts in place is the same as well."""
    actions = keys(3, 150, 256)
    many, one = vector(256, opponent="random"), vector(1, opponent="random")
    first_many, _ = many.reset(seed=40)
    first_one, _ = one.reset(seed=[40 + 77])
    assert np.array_equal(first_many[77], first_one[0])
    ends = 0
    for step in range(150):
        views, rewards, ended, _, _ = many.step(actions[step])
        view, reward, end, _, _ = one.step(actions[step, 77:78])
        assert np.array_equal(views[77], view[0]), step
        assert (rewards[77], ended[77]) == (reward[0], end[0])
        ends += int(end[0])
    assert ends == 2
    assert len(np.unique(views, axis=0)) > 200


@pytest.mark.parametrize("seat", [0, 1])
def test_it_does_what_the_single_environment_does(seat: int) -> None:
    options = {**SHORT, "seat": seat, "opponent": "based", "reward": "dense", "frame_skip": 2}
    envs, single = vector(3, **options), gymnasium.make(ID, **options)
    views, _ = envs.reset(seed=9)
    for n in range(3):
        envs.reset(seed=9)
        view, _ = single.reset(seed=9 + n)
        assert np.array_equal(views[n], view)
        for step in range(30):
            action = keys(n, 30, 3)[step]
            many = envs.step(action)
            view, reward, ended, _, info = single.step(action[n])
            assert many[1][n] == pytest.approx(reward, abs=1e-6)
            assert many[2][n] == ended == (step == 29)
            for term, value in info["reward_terms"].items():
                assert many[4]["reward_terms"][term][n] == value
            assert np.array_equal(many[4]["final_obs"][n] if ended else many[0][n], view)
        assert many[4]["final_info"]["outcome"][n] == info["outcome"]


def test_a_match_that_ends_begins_anew_in_the_same_step() -> None:
    envs = vector(4, opponent="constant")
    envs.reset(seed=0)
    for step in range(60):
        views, _, ended, _, infos = envs.step(np.zeros((4, 10), np.int8))
        assert ended.all() == (step == 59)
        assert ("final_obs" in infos) == ended.any()
    assert infos["_final_obs"].all()
    assert abs(views[0][0]) == pytest.approx(5 / 14)  # on its spawn again
    assert not np.array_equal(infos["final_obs"][0], views[0])
    assert list(infos["final_info"]["outcome"]) == [0.5] * 4


def test_final_infos_hold_the_terms_of_all_environments_and_one_mask_a_key() -> None:
    envs = vector(2, opponent="based", reward="dense")
    envs.reset(seed=0)
    actions = keys(1, 60, 2)
    for step in range(60):
        if step == 20:  # environment 1 ends 20 steps after environment 0
            envs.reset(options={"reset_mask": np.array([False, True])})
        _, _, ended, _, infos = envs.step(actions[step])
    assert ended.tolist() == [True, False]
    assert set(infos) == {"reward_terms", "final_obs", "_final_obs", "final_info", "_final_info"}
    assert infos["final_obs"][1] is None
    final = infos["final_info"]
    assert set(final) == {"outcome", "_outcome", "reward_terms", "_reward_terms"}
    assert set(final["reward_terms"]) == set(infos["reward_terms"])
    for term, values in infos["reward_terms"].items():
        assert np.array_equal(final["reward_terms"][term], values), term
    for mask in (infos["_final_obs"], infos["_final_info"], final["_outcome"]):
        assert mask.tolist() == [True, False]
    assert final["_reward_terms"].tolist() == [True, False]


def test_opponents_by_environment() -> None:
    envs = vector(3, opponent=["constant", "based", "constant"])
    envs.reset(seed=[7, 7, 7])
    for _ in range(40):
        views = envs.step(np.zeros((3, 10), np.int8))[0]
    assert np.array_equal(views[0], views[2])
    assert not np.array_equal(views[0], views[1])


def test_an_opponent_by_function_sees_its_own_side() -> None:
    seen: list[np.ndarray] = []

    def outward(views: np.ndarray) -> np.ndarray:
        seen.append(views)
        pressed = np.zeros((len(views), 10), np.int8)
        pressed[:, 3], pressed[:, 1] = views[:, 0] > 0, views[:, 0] < 0
        return pressed

    envs = vector(8, opponent=outward, match_seconds=4.0)
    first, _ = envs.reset(seed=3)
    for _ in range(100):
        _, rewards, _, _, infos = envs.step(np.zeros((8, 10), np.int8))
        if rewards.any() and infos["reward_terms"]["knockout"].any():
            break
    assert np.array_equal(seen[0][:, :32], first[:, 32:64])
    assert (infos["reward_terms"]["knockout"] >= 0).all()  # they walked off, we did not
    assert infos["reward_terms"]["knockout"].any()
    assert seen[0].shape == (8, 74)


def test_without_a_seed_matches_differ_and_with_one_they_repeat() -> None:
    envs = vector(32, opponent="random")
    drawn = [envs.reset(seed=seed)[0] for seed in (2, None, None, 2, None)]
    assert not np.array_equal(drawn[1], drawn[2])
    assert np.array_equal(drawn[0], drawn[3])
    assert np.array_equal(drawn[1], drawn[4])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opponent": ["based"]}, r"\b1 .*\b2\b"),
        ({"opponent": ["based", "basd"]}, "no bot 'basd'"),
    ],
)
def test_mistakes_are_named(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        vector(2, **options)


def test_wrong_seeds_and_masks_are_named() -> None:
    envs = vector(2)
    with pytest.raises(InvalidInput, match=r"\b3 .*\b2\b"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(InvalidInput, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})
