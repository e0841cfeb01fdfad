"""The original's observations as `brawl`'s (docs/game.md names the numbers)."""

import numpy as np
import pytest

from league.games.ai2.observation import converted
from league.games.registry import game_spec

RAW = [
    *(-7.0, 2.374, 6.459, -8.306, 0.0, 0.0, 1.0, 1.0, 6.0, 1.0, 5.0, 34.0, 0.25, 2.0, 3.0, 2.0),
    *(3.5, 0.7, 1.0, -4.2, 2.7, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    *(-1.0, 2.0, 0.5, -0.5),
]
WANTED = {
    **{"x": -0.5, "y": 0.29675, "vx": np.tanh(6.459 / 12), "vy": np.tanh(-8.306 / 12)},
    **{"facing": -1, "grounded": 0, "aerial": 1, "air_jumps": 0.5, "state": 0.5, "recoveries": 1},
    **{"dodge_left": 0.5, "stun_left": 1, "damage": 0.25, "stocks": 2 / 3, "move": 0.25},
    **{"weapon": 1, "slot0_x": 0.25, "slot0_y": 0.0875, "slot0_type": 1 / 3},
    **{"slot1_x": -0.3, "slot1_y": 0.3375, "slot1_type": 1, "slot3_type": 0},
    **{"platform_x": -1 / 14, "platform_y": 0.25, "platform_vx": 0.25, "platform_vy": -0.25},
}


@pytest.mark.parametrize("half", ["own", "opponent"])
def test_each_number_stands_where_brawl_has_it(half):
    seen = converted(np.array([[RAW, RAW]] * 3).reshape(3, 1, 64))
    assert seen.shape == (3, 1, 64)
    assert seen.dtype == np.float32
    names = game_spec("brawl").observation_names[:64]
    by_name = dict(zip(names, seen[1, 0].tolist(), strict=True))
    found = {name: by_name[f"{half} {name}"] for name in WANTED}
    assert found == pytest.approx(WANTED, abs=1e-6)


def test_numbers_beyond_the_stage_stay_within_one():
    raw = np.array(RAW)
    raw[:2] = 18.0, -7.5
    raw[4] = 1.0
    assert converted(raw)[[0, 4]].tolist() == [1.0, 1.0]
    assert np.abs(converted(raw)).max() == 1.0
