"""From a game's frames to pictures: scenery, fighters, effects and figures put together.

One `Scene` draws one match; what it shares between pictures are its `stills`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from league.games.brawl import rules
from league.games.render import armoury, hud, palette, plain, scenery
from league.games.render.camera import Camera
from league.games.render.effects import Effects
from league.games.render.fighter import draw_fighter
from league.games.render.picture import (
    HEIGHT,
    Brush,
    Layer,
    Picture,
    Shape,
    Transform,
    faded,
    mixed,
)

KO_HELD_FRAMES = 26
"""Frames for which the camera stays with a fighter that was knocked out."""


class Scene(Protocol):
    """Draws the frames of one match, in their order."""

    stills: list[list[Shape]]

    def picture(
        self, frame: Mapping[str, Any], verdict: str = "", winner: int | None = None
    ) -> Picture:
        """The next picture; `verdict` is written over the last one."""
        ...


def scene_for(frame: Mapping[str, Any], width: float, names: Sequence[str] = ("", "")) -> Scene:
    """A scene for the match that `frame` belongs to, its pictures `width` by `HEIGHT`."""
    is_fight = "players" in frame and "solids" in frame and "blast" in frame
    return FightScene(frame, width, names) if is_fight else plain.PlainScene(width, names)


class FightScene:
    """A match of the fighter. Give it every frame in turn: it remembers hits for some frames."""

    def __init__(self, frame: Mapping[str, Any], width: float, names: Sequence[str]) -> None:
        self._width = width
        self._size = hud.size_for(width)
        self._names = [name or f"seat {seat}" for seat, name in enumerate(names)]
        self._effects = Effects()
        self._camera = Camera(width / HEIGHT, tuple(frame["blast"]))
        wide, tall = width / self._size, HEIGHT / self._size
        far, near = faded("#2a2250", 1.0), faded("#191634", 1.0)
        self.stills = [
            scenery.sky(),
            scenery.moon(),
            scenery.skyline(seed=3, colour=far, top=1.6, step=2.2, windows=False),
            scenery.skyline(seed=11, colour=near, top=3.4, step=2.6, windows=True),
            scenery.grounds(frame),
            hud.frames(wide, tall, self._names, frame["stage"]),
            scenery.platform(frame["platform"]),
        ]

    def picture(
        self, frame: Mapping[str, Any], verdict: str = "", winner: int | None = None
    ) -> Picture:
        self._effects.see(frame)
        self._camera.follow(self._watched(frame))
        world, over = self._world(frame), Brush(hud.GRAIN)
        wide, tall = self._width / self._size, HEIGHT / self._size
        hud.figures(over, wide, tall, frame)
        if verdict:
            hud.verdict(over, wide, tall, verdict, winner)
        backdrop = zip((0.0, 0.12, 0.3, 0.55), range(4), strict=True)
        near = self._transform(1.0, frame["frame"])
        flat = over.transform(self._size)
        layers = [Layer(self._transform(depth, frame["frame"]), still) for depth, still in backdrop]
        layers.append(Layer(near, 4))
        if frame["platform"]["half_width"] > 0:
            layers.append(Layer(_moved(near, frame["platform"]), 6))
        layers += [Layer(near, world.shapes), Layer(flat, 5), Layer(flat, over.shapes)]
        return Picture(self._width, layers)

    def _watched(self, frame: Mapping[str, Any]) -> list[tuple[float, float]]:
        """Where the camera must look: at everybody who is in play or was just knocked out."""
        return [
            (player["x"], player["y"])
            for seat, player in enumerate(frame["players"])
            if player["state"] != rules.KO
            or self._effects.knocked_out_since(seat, frame["frame"]) < KO_HELD_FRAMES
        ]

    def _transform(self, depth: float, frame: int) -> Transform:
        scale, dx, dy = self._camera.at_depth(depth)
        shake_x, shake_y = self._effects.shake(frame)
        shaken_x, shaken_y = dx + shake_x * scale * depth, dy + shake_y * scale * depth
        return Brush(scenery.UNIT).transform(scale, shaken_x, shaken_y)

    def _world(self, frame: Mapping[str, Any]) -> Brush:
        brush, now = Brush(scenery.UNIT), frame["frame"]
        for lying in frame.get("weapons", ()):
            armoury.on_the_ground(brush, lying, now)
        self._effects.draw_behind(brush, now)
        order = sorted((0, 1), key=lambda seat: frame["players"][seat]["state"] == rules.ATTACK)
        for seat in order:  # who strikes is drawn before who is struck
            player = frame["players"][seat]
            draw_fighter(brush, player, seat, now, flash=self._effects.flash(seat, now))
            _tag(brush, frame["players"], seat, self._names[seat])
        self._effects.draw_before(brush, now)
        return brush


def _moved(near: Transform, spot: Mapping[str, Any]) -> Transform:
    step = near.scale * scenery.UNIT
    return Transform(near.scale, near.dx + spot["x"] * step, near.dy + spot["y"] * step)


def _tag(brush: Brush, players: Sequence[Mapping[str, Any]], seat: int, name: str) -> None:
    """A small name over the head; of two who stand close, one name is above the other."""
    player, other = players[seat], players[1 - seat]
    if player["state"] == rules.KO:
        return
    close = abs(player["x"] - other["x"]) < 1.9 and abs(player["y"] - other["y"]) < 0.6
    x, y = player["x"], player["y"] - 0.86
    brush.polygon(palette.SEATS[seat], [(x - 0.1, y), (x + 0.1, y), (x, y + 0.12)])
    up = 0.47 if close and seat == 1 and other["state"] != rules.KO else 0.17
    shown = name if len(name) <= 14 else f"{name[:13]}…"
    brush.text(palette.INK, 0.27, x + 0.02, y - up + 0.02, shown)
    brush.text(mixed(palette.SEATS[seat], palette.WHITE, 0.6), 0.27, x, y - up, shown)
