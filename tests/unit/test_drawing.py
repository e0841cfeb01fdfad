"""The drawing shows what a frame says, and Pillow paints the shapes where they belong."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from league.errors import InvalidInput
from league.games.brawl import moves, rules
from league.games.brawl.hits import capsules_overlap
from league.games.brawl.moves import all_moves
from league.games.drawing import moving_part, still_part, verdict
from league.games.drawing.painter import HEIGHT, MOST_PIXELS, Canvas, Painter, draw_frame
from league.games.registry import make_batched

BLACK = ["sky", ["#000000", "#000000"]]
STANDING = {"x": 4.0, "y": 0.35, "vx": 0.0, "vy": 0.0, "state": rules.STANDING, "grounded": True}


@pytest.fixture(scope="module")
def frame() -> dict[str, Any]:
    game = make_batched("brawl", 1)
    game.reset(np.array([3], np.uint64))
    game.step(game.idle_actions())
    return game.frame(0)


def changed(base: dict, one: dict, other: dict | None = None, **fields: Any) -> dict[str, Any]:
    """The frame with two fighters that stand, changed as given."""
    first, second = ({**player, **STANDING, "facing": 1} for player in base["players"])
    players = [first | one, second | {"x": 6.0} | (other or {})]
    return {**base, "players": players, **fields}


def shapes(*frames: dict[str, Any]) -> list[list[Any]]:
    """What is drawn of the last of these frames."""
    painter = Painter(1280, HEIGHT, ("one", "other"))
    for each in frames:
        painter.see(each)
    return painter.shapes()


def texts(drawn: list[list[Any]]) -> list[str]:
    return [shape[-1] for shape in drawn if shape[0] == "text"]


def in_units(drawn: list[list[Any]], frame: dict, x: float, y: float) -> tuple[float, float]:
    """The place of a pixel in units of the game, by the first ground."""
    left, top, scale = ground(drawn, frame)
    x0, y0, _, _ = frame["solids"][0]
    return x0 + (x - left) / scale, y0 + (y - top) / scale


def ground(drawn: list[list[Any]], frame: dict) -> tuple[float, float, float]:
    """Left and top of the first ground in pixels, and pixels a unit."""
    (_, _, left, top, width, _, _) = next(s for s in drawn if s[:2] == ["box", "#2c2f45"])
    x0, _, x1, _ = frame["solids"][0]
    return left, top, width / (x1 - x0)


# --- the fight


@pytest.mark.parametrize("width", [1280, 432])
def test_the_camera_never_loses_a_fighter(frame: dict, width: int) -> None:
    generator = np.random.default_rng(1)
    blast = np.array(frame["blast"])
    places = generator.uniform(-blast, blast, (2, 2))
    painter = Painter(width, HEIGHT, ("one", "other"))
    for number in range(60):
        places = np.clip(places + generator.normal(0, 1.5, (2, 2)), -blast, blast)
        spots = [{"x": float(x), "y": float(y)} for x, y in places]
        painter.see(changed(frame, *spots, frame=number))
        drawn = painter.shapes()
        for seat, name in enumerate(("one", "other")):
            *_, x, y, _, _ = [s for s in drawn if s[0] == "text" and s[-1] == name][-1]
            head = y + 0.86 * ground(drawn, frame)[2]
            assert 0 <= x <= width, (seat, number)
            assert 0 <= head <= HEIGHT * 1.05, (seat, number)


def extent(drawn: list[list[Any]], frame: dict, seat: int) -> list[tuple[float, ...]]:
    """What a seat hits: the capsules drawn, each (x, y, width, height)."""
    capsules = []
    for kind, colour, *numbers in drawn:
        if kind == "box" and colour == ("#ff5a4fff", "#2fc6ffff")[seat]:
            left, top, width, height, radius = numbers
            assert radius == pytest.approx(min(width, height) / 2, abs=0.11)
            (x, y), scale = in_units(drawn, frame, left, top), ground(drawn, frame)[2]
            width, height = width / scale, height / scale
            capsules.append((x + width / 2, y + height / 2, width, height))
    return capsules


@pytest.mark.parametrize(
    ("move_type", "number", "casts"),
    [
        (moves.NLIGHT, 0, {2: 0}),  # frame: cast
        (moves.NLIGHT, 1, {3: 0, 4: 0, 5: 0}),
        (moves.DSIG, 1, {3: 0, 5: 1, 6: 1, 12: 2, 14: 3}),
        (moves.DSIG, 0, {}),  # it is held back
    ],
)
def test_capsules_are_drawn_in_the_frames_in_which_they_hit(
    frame: dict, move_type: int, number: int, casts: dict[int, int]
) -> None:
    power = all_moves()[moves.UNARMED, move_type][number]
    first = moves.move_tables()["first_power"][0, moves.UNARMED, move_type]
    for now in range(20):
        attack = {"state": rules.ATTACK, "power": int(first) + number, "power_frame": now}
        at = changed(frame, attack | {"facing": -1})
        boxes = power.casts[casts[now]].boxes if now in casts else ()
        expected = [(4.0 - x, 0.35 + y, width, height) for x, y, width, height in boxes]
        assert extent(shapes(at), at, 0) == [pytest.approx(box, abs=0.01) for box in expected], now


def test_who_is_hit_stood_in_what_was_drawn() -> None:
    game = make_batched("brawl", 4, rules="fair")
    game.bots_N2[:] = [game.spec.bot_index(name) for name in ("weapon_seeker", "aggressive")]
    game.reset(np.arange(4, dtype=np.uint64))
    kinds = [power.kind for move in all_moves().values() for power in move]
    before, hits = [game.frame(match) for match in range(4)], 0
    for _ in range(600):
        game.step(game.idle_actions())
        now = [game.frame(match) for match in range(4)]
        for match, seat in np.ndindex(4, 2):
            old, new = before[match], now[match]
            attacker, victim = old["players"][seat], old["players"][1 - seat]
            again = kinds[attacker["power"]] & moves.HITS_AGAIN
            if new["players"][1 - seat]["damage"] > victim["damage"] and not again:
                hits += 1
                body = (victim["x"], victim["y"], rules.HURT_WIDTH + 0.02, rules.HURT_HEIGHT + 0.02)
                drawn = extent(shapes(old), old, seat)
                assert any(capsules_overlap(*capsule, *body) for capsule in drawn), new["frame"]
        before = now
    assert hits > 10


def test_a_hit_shows_its_damage_for_some_frames(frame: dict) -> None:
    before = changed(frame, {"damage": 20.0}, frame=10)
    hit = changed(frame, {"damage": 33.0, "state": rules.STUN}, frame=11)
    assert "13" in texts(shapes(before, hit))
    assert "13" not in texts(shapes(before, hit, {**hit, "frame": 30}))
    assert "13" not in texts(shapes(before, {**hit, "frame": 90})), "a gap: another match"


def test_a_knock_out_bursts_at_the_rim_and_the_fighter_is_gone(frame: dict) -> None:
    before = changed(frame, {"x": 13.9}, frame=10)
    out = changed(frame, {"x": 14.6, "state": rules.KO, "stocks": 2}, frame=11)
    drawn = shapes(before, out)
    assert "KO" in texts(drawn)
    assert texts(drawn).count("one") == texts(drawn).count("other") - 2, "no name over its head"
    (burst,) = [s for s in drawn if s[0] == "glow" and s[1].startswith("#fff3b0")]
    assert in_units(drawn, frame, burst[2], burst[3])[0] == pytest.approx(14.0, abs=0.02)
    assert "KO" not in texts(shapes(before, out, {**out, "frame": 60}))


def test_panels_show_damage_stocks_clock_and_keys(frame: dict) -> None:
    status = {"damage": 113.4, "stocks": 2, "keys": ["A", "space"]}
    drawn = shapes(changed(frame, status, {"damage": 7.0, "keys": []}, frame=2700 - 61 * 30))
    assert {"113", "7", "1:01", "warehouse", *rules.KEY_NAMES} <= set(texts(drawn))
    pressed = [s[-1] for s in drawn if s[0] == "text" and s[1] == "#0c0c18" and s[-1] != "one"]
    assert {"A", "space"} <= set(pressed)
    assert not set(pressed) & {"W", "S", "D", "G", "H", "J", "K", "L"}
    assert len([s for s in drawn if s[:2] == ["disc", "#ff5a4f"]]) == 2


@pytest.mark.parametrize("weapon", ["spear", "hammer"])
def test_weapons_show_in_hand_and_on_the_ground(frame: dict, weapon: str) -> None:
    bare = len(shapes(changed(frame, {})))
    assert len(shapes(changed(frame, {"weapon": weapon}))) > bare + 3
    lying = {"x": 3.0, "y": 0.7, "type": weapon, "dropped": False, "ready": True}
    counts = {
        len(shapes(changed(frame, {}, frame=now, weapons=[{**lying, "frames_left": 70}])))
        for now in range(8)
    }
    assert min(counts) == bare, "it blinks before it goes"
    assert max(counts) > bare + 3


def test_every_state_looks_different(frame: dict) -> None:
    extra = {rules.IN_AIR: {"grounded": False}, rules.AIR_TURNAROUND: {"grounded": False}}
    extra[rules.ATTACK] = {"move_frame": 6}
    looks = set()
    for state in range(len(rules.STATE_NAMES)):
        at = changed(frame, {"state": state, **extra.get(state, {})})
        looks.add(draw_frame(at, 320, 180).tobytes())
    # sprinting and the dash share a pose
    assert len(looks) == len(rules.STATE_NAMES) - 1


def test_a_frame_travels_as_small_json() -> None:
    game = make_batched("brawl", 1, stage="flat")
    game.bots_N2[0] = game.spec.bot_index("weapon_seeker"), game.spec.bot_index("based")
    game.reset(np.array([2], np.uint64))
    still, sizes = still_part(game.frame(0)), []
    for _ in range(600):
        game.step(game.idle_actions())
        frame = game.frame(0)
        moving = json.loads(json.dumps(moving_part(frame)))
        sizes.append(len(json.dumps(moving, separators=(",", ":"))))
        assert still_part(frame) == still
        for player, row in zip(frame["players"], moving["players"], strict=True):
            again = dict(zip(still["columns"]["player"], row, strict=True))
            assert again["x"] == pytest.approx(player["x"], abs=6e-4)
            assert still["states"][again["state"]] == rules.STATE_NAMES[player["state"]]
            keys = [k for bit, k in enumerate(still["columns"]["keys"]) if again["keys"] >> bit & 1]
            assert keys == player["keys"]
    assert np.mean(sizes) < 260
    assert (still_part({"pot": 3}), moving_part({"pot": 3})) == ({}, {"pot": 3})


# --- other games, sizes, and Pillow


def test_games_without_a_drawing_are_lines_of_text() -> None:
    game = make_batched("kuhn", 1)
    game.reset(np.array([1], np.uint64))
    painter = Painter(1280, HEIGHT, ("anna", "bob"))
    painter.see(game.frame(0), verdict(("anna", "bob"), None))
    words = texts(painter.shapes())
    assert {"anna", "bob", "played", "0 of at most 3", "a draw"} <= set(words)
    dealt = [f"card {seat['card']}" for seat in game.frame(0)["seats"]]
    assert [word.split(" · ")[0] for word in words if "card" in word] == dealt


@pytest.mark.parametrize("name", ["brawl", "kuhn"])
def test_words_lie_over_any_match(name: str) -> None:
    game = make_batched(name, 1)
    game.reset(np.array([1], np.uint64))
    painter = Painter(1280, HEIGHT)
    painter.see(game.frame(0), None, "after 5 steps", ["laptop-1", "Elo 1500", "x" * 200])
    *_, caption, shade, first, second, long = painter.shapes()
    assert (caption[-1], first[-1], second[-1]) == ("after 5 steps", "laptop-1", "Elo 1500")
    assert shade[0] == "box"
    assert shade[2:6] == [0, 0, 1280, HEIGHT]
    assert len(long[-1]) < 60
    assert first[2] > second[2]
    assert caption[4] > long[4] > second[4] > first[4]
    painter.see(game.frame(0))
    assert not {"after 5 steps", "laptop-1"} & {*texts(painter.shapes())}


@pytest.mark.parametrize("size", [(640, 360), (100, 100), (31, 77)])
def test_a_frame_becomes_pixels_of_any_size(frame: dict, size: tuple[int, int]) -> None:
    image = draw_frame(frame, *size)
    assert (image.shape, image.dtype) == ((size[1], size[0], 3), np.uint8)
    assert image.std() > 5
    assert np.array_equal(image, draw_frame(json.loads(json.dumps(frame)), *size))


@pytest.mark.parametrize("size", [(0, 10), (10, -1), (MOST_PIXELS + 1, 10)])
def test_impossible_sizes_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match=f"{size[0]} x {size[1]}"):
        Painter(*size)


@pytest.mark.parametrize(
    ("shape", "spot", "colour"),
    [
        (["disc", "#ff0000", 50, 50, 20], (50, 50), (255, 0, 0)),
        (["box", "#00ff00", 10, 10, 30, 30, 0], (25, 25), (0, 255, 0)),
        (["box", "#ffffff80", 10, 10, 30, 30, 5], (25, 25), (128, 128, 128)),
        (["polygon", "#0000ff", [0, 0, 60, 0, 0, 60]], (10, 10), (0, 0, 255)),
        (["line", "#ff00ff", 10, [0, 50, 100, 50]], (50, 50), (255, 0, 255)),
        (["line", "#ff00ff80", 10, [0, 50, 100, 50, 0, 50]], (50, 50), (128, 0, 128)),
        (["ring", "#ffff00", 6, 50, 50, 30], (80, 50), (255, 255, 0)),
        (["ring", "#ffff00", 6, 50, 50, 30], (50, 50), (0, 0, 0)),
        (["glow", "#ffffff", 50, 50, 30], (50, 50), (250, 250, 250)),
        (["sky", ["#000000", "#ffffff"]], (50, 98), (251, 251, 251)),
    ],
)
def test_each_shape_lands_where_it_should(shape: list, spot: tuple, colour: tuple) -> None:
    image = Canvas(HEIGHT, HEIGHT).paint([BLACK, scaled(shape)])
    x, y = (round(value * HEIGHT / 100) for value in spot)
    assert np.abs(image[y, x].astype(int) - colour).max() <= 6


def scaled(value: Any) -> Any:
    """Numbers of a shape on a picture 100 high, on one that is HEIGHT high."""
    if isinstance(value, list):
        return [scaled(each) for each in value]
    return value if isinstance(value, str) else value * HEIGHT / 100
