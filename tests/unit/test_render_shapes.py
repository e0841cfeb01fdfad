"""A picture is small JSON of shapes; a brush turns, mirrors and scales; a frame travels in two
parts.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from drawing import changed, first_frame, scene

from league.games.brawl import rules
from league.games.registry import make_batched
from league.games.render import draw_frame
from league.games.render.picture import Brush, faded, mixed
from league.games.render.wire import joined, moving_part, still_part


@pytest.fixture(scope="module")
def frame() -> dict[str, Any]:
    return first_frame()


def test_a_picture_is_small_json_of_whole_numbers(frame: dict) -> None:
    made = scene(frame)
    picture = made.picture(
        changed(frame, {"state": rules.ATTACK, "move": "SLight", "move_frame": 8})
    )
    assert len(json.dumps(picture.as_json(), separators=(",", ":"))) < 6000
    for drawn in (
        *made.stills,
        *(layer.shapes for layer in picture.layers if not isinstance(layer.shapes, int)),
    ):
        for kind, *rest in drawn:
            assert kind in "plcogbts"
            for value in (v for part in rest for v in (part if isinstance(part, list) else [part])):
                assert (
                    isinstance(value, int)
                    or re.fullmatch(r"#[0-9a-f]{6}([0-9a-f]{2})?", value)
                    or kind == "t"
                )


def test_a_brush_turns_mirrors_and_scales() -> None:
    brush = Brush(10.0)
    brush.at(5, 5, turn=np.pi / 2, size=2.0).line("#000000", 1.0, (0, 0), (1, 0))
    brush.at(5, 5, side=-1).at(1, 0).disc("#000000", 1, 2, 3)
    brush.at(5, 5, side=-1).box("#000000", 1, 1, 2, 3)
    assert brush.shapes == [
        ["l", "#000000", 20, [50, 50, 50, 70]],
        ["c", "#000000", 30, 70, 30],
        ["b", "#000000", 20, 60, 20, 30, 0],
    ]


def test_a_lean_is_forward_whichever_way_one_faces() -> None:
    for side in (1, -1):
        brush = Brush(10.0)
        brush.at(0, 0, side=side, turn=0.5).disc("#000000", 0, -1, 1)  # the head
        assert np.sign(brush.shapes[0][2]) == side


def test_colours_mix_and_fade() -> None:
    assert mixed("#000000", "#ffffff", 0.5) == "#808080"
    assert mixed("#102030", "#ffffff", -1) == "#102030"
    assert faded("#102030", 0.5) == "#10203080"
    assert faded("#102030ff", 2.0) == "#102030ff"


def test_a_frame_in_parts_is_the_frame_and_looks_the_same() -> None:
    game = make_batched("brawl", 1, stage="flat")
    game.bots_N2[0] = game.spec.bot_index("weapon_seeker"), game.spec.bot_index("based")
    game.reset(np.array([2], np.uint64))
    still, sizes = still_part(game.frame(0)), []
    armed = 0
    for _ in range(600):
        game.step(game.idle_actions())
        frame = game.frame(0)
        moving = json.loads(json.dumps(moving_part(frame)))
        sizes.append(len(json.dumps(moving, separators=(",", ":"))))
        assert still_part(frame) == still
        again = joined(json.loads(json.dumps(still)), moving)
        assert again.keys() == frame.keys()
        for old, new in zip(frame["players"], again["players"], strict=True):
            assert new == {
                k: pytest.approx(v, abs=6e-4) if isinstance(v, float) else v for k, v in old.items()
            }
        assert again["weapons"] == [
            {k: pytest.approx(v, abs=6e-4) if isinstance(v, float) else v for k, v in lying.items()}
            for lying in frame["weapons"]
        ]
        armed += bool(frame["weapons"])
    assert armed > 0
    assert np.mean(sizes) < 260
    assert np.abs(draw_frame(frame, 160, 90).astype(int) - draw_frame(again, 160, 90)).mean() < 0.2


def test_frames_of_other_games_pass_whole() -> None:
    assert still_part({"pot": 3}) == {}
    assert moving_part({"pot": 3}) == joined({}, {"pot": 3}) == {"pot": 3}
