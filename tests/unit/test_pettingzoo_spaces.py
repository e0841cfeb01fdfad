"""Spaces of PettingZoo's environments as numbers in [-1, 1] and as actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from league.errors import ConfigError
from league.games.base import CHOICE, KEYS
from league.games.pettingzoo.environment import observation_text
from league.games.pettingzoo.spaces import MOST_NUMBERS, actions, encoder, mask


def encoded(space: spaces.Space, value: Any) -> list[float]:
    form = encoder(space, "it")
    out = np.full(form.width, np.nan, np.float32)
    form.write(value, out)
    return np.round(out.astype(float), 4).tolist()


@pytest.mark.parametrize(
    ("space", "value", "wanted"),
    [
        (spaces.Box(-2, 6, (2, 2)), np.array([[-2, 6], [2, 0]]), [-1, 1, 0, -0.5]),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0, 255], np.uint8), [-1, 1]),
        (spaces.Box(np.array([3.0, 0.0]), np.array([3.0, 2.0])), np.array([3.0, 2.0]), [0, 1]),
        (
            spaces.Box(-np.inf, np.inf, (3,)),
            np.array([0, 1, -50]),
            [0, round(float(np.tanh(1)), 4), -1],
        ),
        (spaces.Box(0, np.inf, (1,)), np.array([0.5]), [round(float(np.tanh(0.5)), 4)]),
        (spaces.Discrete(3), 2, [0, 0, 1]),
        (spaces.Discrete(3, start=-1), np.int64(-1), [1, 0, 0]),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 0]), [0, 1, 1, 0, 0]),
        (spaces.MultiBinary((2, 2)), np.array([[0, 1], [1, 1]]), [0, 1, 1, 1]),
        (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))), (1, np.array([1])), [0, 1, 1]),
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
            [0.5, 1, 0],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_observations_are_scaled_by_their_bounds(
    space: spaces.Space, value: Any, wanted: list
) -> None:
    assert encoded(space, value) == wanted


def leaves() -> st.SearchStrategy[spaces.Space]:
    bounds = st.floats(-1e6, 1e6, width=32)
    return st.one_of(
        st.tuples(bounds, bounds, st.integers(1, 4)).map(
            lambda b: spaces.Box(min(b[:2]), max(b[:2]), (b[2],))
        ),
        st.integers(1, 5).map(lambda n: spaces.Box(-np.inf, np.inf, (n,))),
        st.integers(1, 6).map(spaces.Discrete),
        st.lists(st.integers(1, 4), min_size=1, max_size=3).map(spaces.MultiDiscrete),
        st.integers(1, 5).map(spaces.MultiBinary),
    )


nested = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
        st.dictionaries(st.text("abc", min_size=1), inner, min_size=1, max_size=3).map(spaces.Dict),
    ),
    max_leaves=6,
)


@given(nested, st.integers(0, 2**31))
def test_whatever_a_space_holds_fills_its_width_within_bounds(
    space: spaces.Space, seed: int
) -> None:
    space.seed(seed)
    form = encoder(space, "it")
    out = np.full(form.width, np.nan, np.float32)
    form.write(space.sample(), out)
    assert np.abs(out).max() <= 1.0 + 1e-5


def test_too_wide_and_unknown_observations_are_refused() -> None:
    assert encoder(spaces.Box(0, 1, (MOST_NUMBERS,)), "it").width == MOST_NUMBERS
    with pytest.raises(
        ConfigError, match=f"it observes {MOST_NUMBERS + 1} numbers: 1 to {MOST_NUMBERS}"
    ):
        encoder(spaces.Box(0, 1, (MOST_NUMBERS + 1,)), "it")
    with pytest.raises(ConfigError, match="observes a Sequence"):
        encoder(spaces.Tuple((spaces.Sequence(spaces.Discrete(2)),)), "it")
    with pytest.raises(ConfigError, match="observes 0 numbers"):
        encoder(spaces.Dict({"action_mask": spaces.MultiBinary(3)}), "it")


@pytest.mark.parametrize(
    ("space", "kind", "row", "wanted"),
    [
        (spaces.Discrete(3), CHOICE, [0, 0, 1], 2),
        (spaces.Discrete(3, start=5), CHOICE, [0, 1, 0, 0], 6),
        (spaces.MultiDiscrete([2, 3]), CHOICE, [0, 0, 0, 0, 1, 0], [1, 1]),
        (spaces.MultiBinary(3), KEYS, [1, 0, 1, 0], [1, 0, 1]),
        (spaces.MultiBinary((2, 2)), KEYS, [1, 0, 1, 1], [[1, 0], [1, 1]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_actions_come_out_as_the_space_wants_them(
    space: spaces.Space, kind: str, row: list[int], wanted: Any
) -> None:
    form = actions(space, "it")
    assert form.kind == kind
    assert len(form.names) == form.size
    action = form.decode(np.array(row, np.uint8))
    assert space.contains(action)
    assert np.array_equal(action, wanted)


def test_every_combination_of_a_multi_discrete_is_a_choice() -> None:
    space = spaces.MultiDiscrete([3, 2, 2])
    form = actions(space, "it")
    assert form.size == 12
    assert len({tuple(form.decode(row).tolist()) for row in np.eye(12, dtype=np.uint8)}) == 12
    with pytest.raises(ConfigError, match="100000000 choices"):
        actions(spaces.MultiDiscrete([100] * 4), "it")
    with pytest.raises(ConfigError, match="played by a Box"):
        actions(spaces.Box(-1, 1, (2,)), "it")


def test_masks_are_found_in_the_observation_or_in_the_info() -> None:
    assert mask({"action_mask": np.array([1, 0], np.int8)}, {}, 2).tolist() == [True, False]  # type: ignore[union-attr]
    assert mask(np.zeros(3), {"action_mask": [0, 1]}, 2).tolist() == [False, True]  # type: ignore[union-attr]
    assert mask(np.zeros(3), {}, 2) is None
    parts = mask(None, {"action_mask": (np.array([1, 0]), np.array([0, 1, 1]))}, 6)
    assert parts.tolist() == [False, True, True, False, False, False]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="3 places for 2 choices"):
        mask(None, {"action_mask": [1, 1, 1]}, 2)


def test_planes_of_marks_are_drawn_as_a_board() -> None:
    planes = np.zeros((2, 3, 2), np.int8)
    planes[0, 1, 0] = planes[1, 2, 1] = 1
    assert observation_text({"observation": planes, "action_mask": np.ones(3)}) == ". X .\n. . O"
    assert observation_text(np.array([1.0, 0.25])) == "[1.   0.25]"
    assert observation_text({"a": 1, "b": np.array([2])}) == "a: 1\nb: [2]"
