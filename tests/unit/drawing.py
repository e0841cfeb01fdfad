"""A frame to change at will and what is drawn of it, for the tests of pictures."""

from __future__ import annotations

from typing import Any

import numpy as np

from league.games.brawl import rules
from league.games.registry import make_batched
from league.games.render.picture import Picture
from league.games.render.scene import FightScene, scene_for


def first_frame() -> dict[str, Any]:
    """Of a match of brawl."""
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
