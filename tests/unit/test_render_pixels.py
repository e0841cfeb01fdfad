"""A frame becomes pixels: of any size, each state its own, each shape where it belongs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import changed, first_frame

from league.games.brawl import rules
from league.games.render import Painter, draw_frame, raster
from league.games.render.picture import HEIGHT, Brush, Layer, Picture, Transform
from league.games.render.poses import pose_of
from league.games.render.raster import Canvas
from league.views.film.gallery import STATES

PLAYER_JS = Path(__file__).resolve().parents[2] / "league" / "film" / "player.js"


@pytest.fixture(scope="module")
def frame() -> dict[str, Any]:
    return first_frame()


@pytest.mark.parametrize("size", [(640, 360), (100, 100), (31, 77)])
def test_a_frame_becomes_pixels_of_any_size(frame: dict, size: tuple[int, int]) -> None:
    image = draw_frame(frame, *size)
    assert (image.shape, image.dtype) == ((size[1], size[0], 3), np.uint8)
    assert image.std() > 5
    assert np.array_equal(image, draw_frame(json.loads(json.dumps(frame)), *size))


def test_every_state_looks_different(frame: dict) -> None:
    looks = {draw_frame(changed(frame, pose), 320, 180).tobytes() for _, pose in STATES}
    assert len(looks) == len(STATES)
    held = [
        changed(frame, pose)["players"][0] for _, pose in STATES if pose["state"] != rules.ATTACK
    ]
    assert len({pose_of({**player, "grounded": player["y"] > 0}, 137) for player in held}) == len(
        held
    )


def test_who_faces_the_other_way_is_drawn_mirrored(frame: dict) -> None:
    """The fighter's own shapes, in a brush of their own: x with the other sign."""
    from league.games.render.fighter import draw_fighter

    drawn = []
    for facing in (1, -1):
        brush = Brush(1000.0)
        draw_fighter(
            brush, changed(frame, {"x": 0.0, "y": 0.0, "facing": facing})["players"][0], 0, 40
        )
        drawn.append([shape[-1] for shape in brush.shapes if shape[0] == "l"])
    assert [[-x if i % 2 == 0 else x for i, x in enumerate(flat)] for flat in drawn[0]] == drawn[1]


@pytest.mark.parametrize(
    ("shape", "spot", "colour"),
    [
        (["c", "#ff0000", 50, 50, 20], (50, 50), (255, 0, 0)),
        (["b", "#00ff00", 10, 10, 30, 30, 0], (25, 25), (0, 255, 0)),
        (["b", "#ffffff80", 10, 10, 30, 30, 5], (25, 25), (128, 128, 128)),
        (["p", "#0000ff", [0, 0, 60, 0, 0, 60]], (10, 10), (0, 0, 255)),
        (["l", "#ff00ff", 10, [0, 50, 100, 50]], (50, 50), (255, 0, 255)),
        (["l", "#ff00ff80", 10, [0, 50, 100, 50, 0, 50]], (50, 50), (128, 0, 128)),
        (["o", "#ffff00", 6, 50, 50, 30], (80, 50), (255, 255, 0)),
        (["o", "#ffff00", 6, 50, 50, 30], (50, 50), (0, 0, 0)),
        (["g", "#ffffff", 50, 50, 30], (50, 50), (250, 250, 250)),
        (["s", ["#000000", "#ffffff"]], (50, 98), (251, 251, 251)),
    ],
)
def test_each_shape_lands_where_it_should(
    shape: list, spot: tuple[int, int], colour: tuple
) -> None:
    black = ["s", ["#000000", "#000000"]]
    layer = Layer(Transform(HEIGHT / 100, 0.0, 0.0), [black, shape])
    image = Canvas(100, 100).draw(Picture(HEIGHT, [layer]), [])
    assert np.abs(image[spot[1], spot[0]].astype(int) - colour).max() <= 6


@pytest.mark.parametrize(("side", "columns"), [(-1, (50, 100)), (0, (25, 75)), (1, (0, 50))])
def test_text_is_set_to_its_side(side: int, columns: tuple[int, int]) -> None:
    layer = Layer(
        Transform(HEIGHT / 100, 0, 0),
        [["s", ["#000000"] * 2], ["t", "#ffffff80", 20, 50, 50, side, "WW"]],
    )
    image = Canvas(100, 100).draw(Picture(HEIGHT, [layer]), [])
    lit = np.flatnonzero(image.max(axis=(0, 2)) > 60)
    assert lit.min() >= columns[0] - 1
    assert lit.max() <= columns[1] + 1
    assert 100 < image.max() < 140, "see-through as asked for"


def test_what_a_page_and_a_canvas_can_draw_is_the_same() -> None:
    in_page = set(
        re.findall(r"^    ([a-z])\(", PLAYER_JS.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert in_page == set(Canvas(2, 2)._marks) == set("plcogbts")


def test_impossible_sizes_are_refused() -> None:
    from league.errors import InvalidInput

    for size in ((0, 10), (10, -1), (raster.MOST_PIXELS + 1, 10)):
        with pytest.raises(InvalidInput, match="a picture can't be"):
            Painter(*size)
