"""Spaces of PettingZoo's environments as numbers in [-1, 1] and as actions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from league.errors import ConfigError
from league.games.base import CHOICE, KEYS
from league.games.pettingzoo.environment import MOST_NAMED, MOST_NUMBERS, Face, observation_text


def face(seen: spaces.Space, done: spaces.Space | None = None) -> Face:
    """Of an environment whose agents both see and do the same."""
    env = SimpleNamespace(
        possible_agents=["a", "b"],
        observation_space=lambda _: seen,
        action_space=lambda _: done or spaces.Discrete(2),
    )
    return Face(env, "it")


@pytest.mark.parametrize(
    ("space", "value", "wanted"),
    [
        (spaces.Box(-2, 6, (2, 2)), np.array([[-2, 6], [2, 0]]), [-1, 1, 0, -0.5]),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0, 255], np.uint8), [-1, 1]),
        (spaces.Box(np.array([3.0, 0.0]), np.array([3.0, 2.0])), np.array([3.0, 2.0]), [0, 1]),
        (spaces.Box(-np.inf, np.inf, (3,)), np.array([0, 1, -50]), [0, np.tanh(1), -1]),
        (spaces.Discrete(3, start=-1), np.int64(-1), [1, -1, -1]),
        (spaces.MultiBinary((2, 2)), np.array([[0, 1], [1, 1]]), [-1, 1, 1, 1]),
        (
            spaces.Dict(
                {
                    "observation": spaces.Dict(
                        {"b": spaces.Discrete(2), "a": spaces.Box(0, 4, (1,))}
                    ),
                    "action_mask": spaces.MultiBinary(9),
                }
            ),
            {"observation": {"a": np.array([3]), "b": 0}, "action_mask": np.ones(9)},
            [0.5, 1, -1],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_observations_are_scaled_by_their_bounds(
    space: spaces.Space, value: Any, wanted: list
) -> None:
    made = face(space)
    out = np.full(made.view_size, np.nan, np.float32)
    made.write(1, value, out)
    assert out == pytest.approx(wanted)


def test_values_outside_their_bounds_are_counted_by_agent_and_number() -> None:
    low, high = np.array([-1, 0, 5, -np.inf]), np.array([1, 255, 5, np.inf])
    made = face(spaces.Box(low, high, dtype=np.float64))
    out = np.zeros(4, np.float32)
    for value in ([1, 255, 5, 1e9], [1 + 1e-7, 0, 5, -1e9], [-1, 1e-9 - 2e-9, 5, 0]):
        made.write(0, np.array(value, float), out)
    assert made.clipped() == {}, "values at a bound, or a rounding error beyond it, lose nothing"
    for value in ([1.5, 300, 5, 0], [-2, 3, 5, 0], [0, 3, 5.5, 0]):
        made.write(1, np.array(value, float), out)
    assert made.clipped() == {"b/0/-1/1": 2, "b/1/0/255": 1, "b/2/5/5": 1}
    assert made.clipped() == {}, "each is told once"


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (spaces.Discrete(3), -1),
        (spaces.Discrete(3, start=1), np.int64(4)),
        (spaces.MultiDiscrete([3, 4]), np.array([5, 1])),
        (spaces.Tuple((spaces.Discrete(2), spaces.MultiDiscrete([3, 4]))), (1, np.array([0, -1]))),
    ],
)
def test_a_choice_outside_its_space_is_refused_and_not_shown_as_another(
    space: spaces.Space, value: Any
) -> None:
    for seen, shown in ((space, value), (spaces.Dict({"a": space}), {"a": value})):
        made = face(seen)
        with pytest.raises(ValueError, match=r"holds .*Discrete"):
            made.write(0, shown, np.zeros(made.view_size, np.float32))


def test_only_the_numbers_clipped_most_often_are_named() -> None:
    made = face(spaces.Box(0, 1, (20,)))
    out = np.zeros(20, np.float32)
    for count in range(1, 21):
        made.write(0, np.where(np.arange(20) < count, 3.0, 0.5), out)
    told = made.clipped()
    assert list(told) == [f"a/{index}/0/1" for index in range(MOST_NAMED)]
    assert list(told.values()) == [20 - index for index in range(MOST_NAMED)]


def test_too_wide_and_unknown_spaces_are_refused() -> None:
    assert face(spaces.Box(0, 1, (MOST_NUMBERS,))).view_size == MOST_NUMBERS
    for seen, done, message in (
        (spaces.Box(0, 1, (MOST_NUMBERS + 1,)), None, f"it observes {MOST_NUMBERS + 1} numbers"),
        (spaces.Sequence(spaces.Discrete(2)), None, "observes a Sequence"),
        (spaces.Discrete(2), spaces.Box(-1, 1, (2,)), "played by a Box"),
    ):
        with pytest.raises(ConfigError, match=message):
            face(seen, done)


@pytest.mark.parametrize(
    ("space", "kind", "row", "wanted"),
    [
        (spaces.Discrete(3, start=5), CHOICE, [0, 1, 0], 6),
        (spaces.MultiBinary((2, 2)), KEYS, [1, 0, 1, 1], [[1, 0], [1, 1]]),
    ],
)
def test_actions_come_out_as_the_space_wants_them(
    space: spaces.Space, kind: str, row: list[int], wanted: Any
) -> None:
    made = face(spaces.Discrete(2), space)
    assert (made.kind, made.action_size) == (kind, len(row))
    action = made.action(0, np.array(row, np.uint8))
    assert space.contains(action)
    assert np.array_equal(action, wanted)


def test_masks_are_found_in_the_observation_or_in_the_info() -> None:
    made = face(spaces.Discrete(2))
    assert made.legal(0, {"action_mask": np.array([1, 0], np.int8)}, {}).tolist() == [True, False]
    assert made.legal(0, np.zeros(3), {"action_mask": [0, 1]}).tolist() == [False, True]
    assert made.legal(0, np.zeros(3), {}).tolist() == [True, True]
    for mask, message in (([1, 1, 1], "3 places for 2 choices"), ([0, 0], "allows nothing")):
        with pytest.raises(ValueError, match=message):
            made.legal(0, None, {"action_mask": mask})


def test_planes_of_marks_are_drawn_as_a_board() -> None:
    planes = np.zeros((2, 3, 2), np.int8)
    planes[0, 1, 0] = planes[1, 2, 1] = 1
    assert observation_text({"observation": planes, "action_mask": np.ones(3)}) == ". X .\n. . O"
    assert observation_text({"a": 1, "b": np.array([2])}) == "a: 1\nb: [2]"
