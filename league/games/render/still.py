"""Pixels of frames: one by itself, or a match's in turn. Shape suffixes: H height, W width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.games.render.raster import Canvas
from league.games.render.scene import Scene, scene_for


class Painter:
    """Draws one match's frames in their order, with what only a sequence tells: hits, trails, a
    soft camera.

    `clear` it before another match. Raises `InvalidInput` for a size that can't be.
    """

    def __init__(self, width: int, height: int, names: Sequence[str] = ("", "")) -> None:
        self._canvas = Canvas(width, height)
        self._names = names
        self._scene: Scene | None = None

    def clear(self) -> None:
        """The next frame is another match's first."""
        self._scene = None

    def draw(
        self, frame: Mapping[str, Any], verdict: str = "", winner: int | None = None
    ) -> NDArray[np.uint8]:
        """The next frame as uint8 [H, W, 3]."""
        if self._scene is None:
            self._scene = scene_for(frame, self._canvas.picture_width, self._names)
        return self._canvas.draw(self._scene.picture(frame, verdict, winner), self._scene.stills)


def draw_frame(frame: Mapping[str, Any], width: int, height: int) -> NDArray[np.uint8]:
    """One frame by itself as uint8 [H, W, 3]; what depends on earlier frames (sparks, trails) is
    left out.
    """
    return Painter(width, height).draw(frame)
