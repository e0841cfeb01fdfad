"""Pictures show what the frame says: who is where, in which state, hit by what, with which keys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.film.gallery import STATES
from league.games.brawl import moves, rules
from league.games.brawl.movesets import MOVES
from league.games.registry import make_batched
from league.games.render import Painter, draw_frame, hud, raster
from league.games.render.armoury import SOON_GONE
from league.games.render.camera import Camera
from league.games.render.effects import HIT_FRAMES, LONGEST_GAP
from league.games.render.picture import HEIGHT, Brush, Layer, Picture, Transform, faded, mixed
from league.games.render.poses import pose_of
from league.games.render.raster import Canvas
from league.games.render.scene import FightScene, scene_for
from league.games.render.strikes import strike_of
from league.games.render.wire import joined, moving_part, still_part

PLAYER_JS = Path(__file__).resolve().parents[2] / "league" / "film" / "player.js"


@pytest.fixture(scope="module")
def frame() -> dict[str, Any]:
    game = make_batched("brawl", 1)
    game.reset(np.array([3], np.uint64))
    game.step(game.idle_actions())
    return game.frame(0)


def changed(
    frame: dict[str, Any], one: dict[str, Any], other: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The frame with two fighters that stand, changed as given."""
    still = {
        "x": 4.0,
        "y": 0.35,
        "vx": 0.0,
        "vy": 0.0,
        "state": rules.STANDING,
        "grounded": True,
        "facing": 1,
    }
    first, second = (dict(player) for player in frame["players"])
    return {**frame, "players": [first | still | one, second | still | {"x": 6.0} | (other or {})]}


def scene(frame: dict[str, Any]) -> FightScene:
    made = scene_for(frame, 1280.0, ("one", "other"))
    assert isinstance(made, FightScene)
    return made


def shapes(picture: Picture, layer: int) -> list[list[Any]]:
    drawn = picture.layers[layer].shapes
    assert isinstance(drawn, list)
    return drawn


def texts(picture: Picture, layer: int = -1) -> list[str]:
    return [shape[-1] for shape in shapes(picture, layer) if shape[0] == "t"]


WORLD = -3
"""The layer of fighters, weapons and effects."""


# --- pixels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(640, 360), (100, 100), (31, 77)])
def test_a_frame_becomes_pixels_of_any_size(frame: dict, size: tuple[int, int]) -> None:
    image = draw_frame(frame, *size)
    assert (image.shape, image.dtype) == ((size[1], size[0], 3), np.uint8)
    assert image.std() > 5
    assert np.array_equal(image, draw_frame(json.loads(json.dumps(frame)), *size))


def test_every_state_looks_different(frame: dict) -> None:
    looks = {draw_frame(changed(frame, pose), 320, 180).tobytes() for _, pose in STATES}
    assert len(looks) == len(STATES)
    held = [changed(frame, pose)["players"][0] for _, pose in STATES if pose["state"] != rules.ATTACK]
    assert len({pose_of({**player, "grounded": player["y"] > 0}, 137) for player in held}) == len(held)


def test_who_faces_the_other_way_is_drawn_mirrored(frame: dict) -> None:
    """The fighter's own shapes, in a brush of their own: x with the other sign."""
    from league.games.render.fighter import draw_fighter

    drawn = []
    for facing in (1, -1):
        brush = Brush(1000.0)
        draw_fighter(brush, changed(frame, {"x": 0.0, "y": 0.0, "facing": facing})["players"][0], 0, 40)
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
def test_each_shape_lands_where_it_should(shape: list, spot: tuple[int, int], colour: tuple) -> None:
    black = ["s", ["#000000", "#000000"]]
    layer = Layer(Transform(HEIGHT / 100, 0.0, 0.0), [black, shape])
    image = Canvas(100, 100).draw(Picture(HEIGHT, [layer]), [])
    assert np.abs(image[spot[1], spot[0]].astype(int) - colour).max() <= 6


@pytest.mark.parametrize(("side", "columns"), [(-1, (50, 100)), (0, (25, 75)), (1, (0, 50))])
def test_text_is_set_to_its_side(side: int, columns: tuple[int, int]) -> None:
    layer = Layer(
        Transform(HEIGHT / 100, 0, 0), [["s", ["#000000"] * 2], ["t", "#ffffff80", 20, 50, 50, side, "WW"]]
    )
    image = Canvas(100, 100).draw(Picture(HEIGHT, [layer]), [])
    lit = np.flatnonzero(image.max(axis=(0, 2)) > 60)
    assert lit.min() >= columns[0] - 1
    assert lit.max() <= columns[1] + 1
    assert 100 < image.max() < 140, "see-through as asked for"


def test_what_a_page_and_a_canvas_can_draw_is_the_same() -> None:
    in_page = set(re.findall(r"^    ([a-z])\(", PLAYER_JS.read_text(encoding="utf-8"), re.MULTILINE))
    assert in_page == set(Canvas(2, 2)._marks) == set("plcogbts")


def test_impossible_sizes_are_refused() -> None:
    from league.errors import InvalidInput

    for size in ((0, 10), (10, -1), (raster.MOST_PIXELS + 1, 10)):
        with pytest.raises(InvalidInput, match="a picture can't be"):
            Painter(*size)


# --- shapes ------------------------------------------------------------------------------------------


def test_a_picture_is_small_json_of_whole_numbers(frame: dict) -> None:
    made = scene(frame)
    picture = made.picture(changed(frame, {"state": rules.ATTACK, "move": "SLight", "move_frame": 8}))
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


# --- what is shown -----------------------------------------------------------------------------------


@pytest.mark.parametrize("aspect", [16 / 9, 1.0, 0.6])
def test_the_camera_never_loses_a_fighter(aspect: float) -> None:
    """Two points that dart about anywhere within the blast zone."""
    generator = np.random.default_rng(1)
    camera = Camera(aspect, (14.0, 8.0))
    places = generator.uniform((-14, -8), (14, 8), (2, 2))
    for _ in range(500):
        places = np.clip(places + generator.normal(0, 1.5, (2, 2)), (-14, -8), (14, 8))
        camera.follow([tuple(place) for place in places])
        scale, dx, dy = camera.at_depth(1.0)
        for x, y in places:
            assert 0 <= x * scale + dx <= HEIGHT * aspect
            assert 0 <= y * scale + dy <= HEIGHT


def test_the_camera_follows_softly_and_closes_in() -> None:
    camera = Camera(16 / 9, (14.0, 8.0))
    camera.follow([(-10.0, 0.0), (10.0, 0.0)])
    wide = camera.tall
    camera.follow([(-1.0, 0.0), (1.0, 0.0)])
    assert 0.9 * wide < camera.tall < wide
    for _ in range(300):
        camera.follow([(-1.0, 0.0), (1.0, 0.0)])
    assert camera.tall < 0.6 * wide


@pytest.mark.parametrize(("weapon", "move_type"), sorted(MOVES))
def test_the_extent_that_is_drawn_is_the_box_that_hits(weapon: int, move_type: int) -> None:
    move = MOVES[weapon, move_type]
    everything_hit = (1 << len(move.stages)) - 1
    for hit in (0, everything_hit):
        coming = [
            stage
            for index, stage in enumerate(move.stages)
            if not (stage.chained or stage.late) or bool(hit >> (index - 1) & 1) == stage.chained
        ]
        for now in range(move.lock):
            player = {
                "weapon": moves.WEAPON_NAMES[weapon],
                "move": moves.MOVE_NAMES[move_type],
                "move_frame": now,
                "stages_hit": hit,
                "keys": [],
            }
            strike = strike_of(player)
            assert strike is not None
            out = [stage for stage in coming if stage.start <= now < stage.end]
            assert (strike.part == "out") == bool(out), now
            if out:
                assert strike.box == out[-1].box
                assert strike.glow == 1.0
            if now < coming[0].start:
                assert strike.glow == 0.0


def test_the_whole_box_is_painted(frame: dict) -> None:
    near, far, top, bottom = MOVES[moves.SPEAR, moves.SSIG].stages[0].box
    now = MOVES[moves.SPEAR, moves.SSIG].stages[0].start
    attack = {"state": rules.ATTACK, "weapon": "spear", "move": "SSig", "move_frame": now, "facing": -1}
    drawn = shapes(scene(frame).picture(changed(frame, attack)), WORLD)
    boxes = [shape[2:6] for shape in drawn if shape[0] == "b"]
    x, y = 4000 - round(1000 * far), 350 + round(1000 * top)
    assert [x, y, round(1000 * (far - near)), round(1000 * (bottom - top))] in boxes


def test_a_hit_sparks_with_its_damage_and_fades(frame: dict) -> None:
    made = scene(frame)
    made.picture(changed({**frame, "frame": 10}, {"damage": 20.0}))
    hit = changed({**frame, "frame": 11}, {"damage": 33.0, "state": rules.STUN})
    assert "13" in texts(made.picture(hit), WORLD)
    whites = [shape for shape in shapes(made.picture(hit), WORLD) if "#ffffff" in str(shape[1])]
    later = made.picture({**hit, "frame": 11 + HIT_FRAMES})
    assert "13" not in texts(later, WORLD)
    assert len([s for s in shapes(later, WORLD) if "#ffffff" in str(s[1])]) < len(whites)


def test_nothing_is_seen_to_happen_over_a_gap(frame: dict) -> None:
    made = scene(frame)
    made.picture(changed({**frame, "frame": 10}, {"damage": 0.0}))
    much_later = changed({**frame, "frame": 11 + LONGEST_GAP}, {"damage": 33.0})
    assert "33" not in texts(made.picture(much_later), WORLD)


def test_a_knock_out_bursts_at_the_rim_and_the_fighter_is_gone(frame: dict) -> None:
    made = scene(frame)
    made.picture(changed({**frame, "frame": 10}, {"x": 13.9}))
    out = changed({**frame, "frame": 11}, {"x": 14.6, "state": rules.KO, "stocks": 2})
    picture = made.picture(out)
    assert "KO" in texts(picture, WORLD)
    assert "one" not in texts(picture, WORLD)
    assert "other" in texts(picture, WORLD)
    glows = [shape for shape in shapes(picture, WORLD) if shape[0] == "g"]
    assert [shape[2] for shape in glows] == [14000], "the burst lies on the rim"
    assert "KO" not in texts(made.picture({**out, "frame": 60}), WORLD)


def test_damage_stocks_clock_and_keys(frame: dict) -> None:
    status = {"damage": 113.4, "stocks": 2, "keys": ["A", "space"]}
    picture = scene(frame).picture(
        changed({**frame, "frame": 2700 - 61 * 30}, status, {"damage": 7.0, "keys": []})
    )
    assert texts(picture) == ["113", "A", "space", "7", "1:01"]
    full = [shape for shape in shapes(picture, -1) if shape[0] == "c" and shape[1] == "#ff5a4f"]
    assert len(full) == 2
    assert len([shape for shape in shapes(picture, -1) if shape[0] == "o"]) == 1


def test_every_key_has_a_cap_and_none_covers_another() -> None:
    assert set(hud.KEY_BOXES) == set(rules.KEY_NAMES)
    boxes = list(hud.KEY_BOXES.values())
    for i, (x, y, w, h) in enumerate(boxes):
        for left, top, wide, tall in boxes[i + 1 :]:
            assert x + w <= left or left + wide <= x or y + h <= top or top + tall <= y


@pytest.mark.parametrize("weapon", ["spear", "hammer"])
def test_weapons_show_in_hand_and_on_the_ground(frame: dict, weapon: str) -> None:
    bare = len(shapes(scene(frame).picture(changed(frame, {})), WORLD))
    assert len(shapes(scene(frame).picture(changed(frame, {"weapon": weapon})), WORLD)) > bare + 3
    lying = {"x": 3.0, "y": 0.7, "type": weapon, "dropped": False, "ready": True, "frames_left": 300}
    there = {**changed(frame, {}), "weapons": [lying]}
    assert len(shapes(scene(frame).picture(there), WORLD)) > bare + 3
    counts = set()
    for now in range(8):
        soon_gone = {**there, "frame": now, "weapons": [{**lying, "frames_left": SOON_GONE - 1}]}
        counts.add(len(shapes(scene(frame).picture(soon_gone), WORLD)))
    assert bare in counts, "it blinks"
    assert len(counts) > 1


def test_the_platform_is_drawn_where_it_is(frame: dict) -> None:
    made = scene(frame)
    lefts = []
    for x in (0.0, 1.0):
        picture = made.picture({**frame, "platform": {**frame["platform"], "x": x}})
        (layer,) = [layer for layer in picture.layers if layer.shapes == len(made.stills) - 1]
        lefts.append(layer.transform.dx - picture.layers[4].transform.dx)
        unit = layer.transform.scale * 1000
    assert lefts[1] - lefts[0] == pytest.approx(unit, rel=0.01)


def test_the_verdict_is_written_over_the_end(frame: dict) -> None:
    assert "one wins" in texts(scene(frame).picture(frame, "one wins", 0))


def test_games_without_a_scene_are_lines_of_text() -> None:
    game = make_batched("kuhn", 1)
    game.reset(np.array([1], np.uint64))
    picture = scene_for(game.frame(0), 1280.0, ("anna", "bob")).picture(game.frame(0), "a draw")
    words = texts(picture)
    assert {"anna", "bob", "played", "0 of at most 3", "a draw"} <= set(words)
    dealt = [seat["card"] for seat in game.frame(0)["seats"]]
    assert [word.split(" · ")[0] for word in words if "card" in word] == [f"card {card}" for card in dealt]
    assert draw_frame(game.frame(0), 320, 180).std() > 3


# --- the frame as small JSON -------------------------------------------------------------------------


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
