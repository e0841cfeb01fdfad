"""Pictures show what the frame says: who is where, hit by what, with which keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import WORLD, changed, first_frame, scene, shapes, texts

from league.games.brawl import moves, rules
from league.games.brawl.movesets import MOVES
from league.games.registry import make_batched
from league.games.render import draw_frame, hud
from league.games.render.armoury import SOON_GONE
from league.games.render.camera import Camera
from league.games.render.effects import HIT_FRAMES, LONGEST_GAP
from league.games.render.picture import HEIGHT
from league.games.render.scene import scene_for
from league.games.render.strikes import strike_of


@pytest.fixture(scope="module")
def frame() -> dict[str, Any]:
    return first_frame()


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
    attack = {
        "state": rules.ATTACK,
        "weapon": "spear",
        "move": "SSig",
        "move_frame": now,
        "facing": -1,
    }
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
    lying = {
        "x": 3.0,
        "y": 0.7,
        "type": weapon,
        "dropped": False,
        "ready": True,
        "frames_left": 300,
    }
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
    assert [word.split(" · ")[0] for word in words if "card" in word] == [
        f"card {card}" for card in dealt
    ]
    assert draw_frame(game.frame(0), 320, 180).std() > 3
