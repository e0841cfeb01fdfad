"""Pictures of matches for environments: images of a batch's rows, and a window."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import BatchedGame

if TYPE_CHECKING:
    from league.games.render import Painter


class Gallery:
    """A painter for each of the game's rows that is looked at.

    `begin` a row's match, `see` every step of it, `draw` at any time. Of a match that ended the
    last frame before is shown, with its end in words, for the game holds the next one already.
    """

    def __init__(self, game: BatchedGame, size: tuple[int, int]) -> None:
        from league.games.render.raster import check_size

        check_size(*size)
        self._game, self._size = game, size
        self._painters: dict[int, Painter] = {}
        self._frames: dict[int, tuple[dict[str, Any], str, int | None]] = {}
        self._names: dict[int, Sequence[str]] = {}

    def begin(self, row: int, names: Sequence[str]) -> None:
        """A new match, between these."""
        self._painters.pop(row, None)
        self._names[row] = names
        self._frames[row] = self._game.frame(row), "", None

    def see(self, row: int, outcome: float | None) -> None:
        """The frame after a step; `outcome` is seat 0's when the match ended in it."""
        if outcome is None:
            self._frames[row] = self._game.frame(row), "", None
            return
        winner = None if outcome == 0.5 else int(outcome == 0.0)
        words = "a draw" if winner is None else f"{self._names[row][winner]} wins"
        self._frames[row] = self._frames[row][0], words, winner

    def draw(self, row: int) -> NDArray[np.uint8]:
        """The row's newest picture, uint8 [H, W, 3]."""
        from league.games.render import Painter

        painter = self._painters.setdefault(row, Painter(*self._size, self._names[row]))
        return painter.draw(*self._frames[row])


class Window:
    """A window on the screen, which keeps to `fps` pictures a second. Closed by hand it stays
    closed.
    """

    def __init__(self, pygame: Any, size: tuple[int, int], fps: float) -> None:
        self._pygame, self._fps = pygame, fps
        pygame.display.init()
        if pygame.display.get_driver() == "offscreen" and "SDL_VIDEODRIVER" not in os.environ:
            pygame.display.quit()
            raise pygame.error("there is no screen")
        self._screen: Any = pygame.display.set_mode(size)
        pygame.display.set_caption("Warehouse Brawl")
        self._clock = pygame.time.Clock()

    def show(self, image: NDArray[np.uint8]) -> None:
        """Puts the picture, uint8 [H, W, 3], on the screen."""
        if self._screen is None:
            return
        if any(event.type == self._pygame.QUIT for event in self._pygame.event.get()):
            self.close()
            return
        height, width, _ = image.shape
        picture = self._pygame.image.frombuffer(image.tobytes(), (width, height), "RGB")
        self._screen.blit(picture, (0, 0))
        self._pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Twice is fine."""
        if self._screen is not None:
            self._screen = None
            self._pygame.display.quit()


def open_window(size: tuple[int, int], fps: float) -> Window:
    """Opens one; raises `ConfigError` where there is no pygame or no screen."""
    try:
        pygame = importlib.import_module("pygame")
    except ImportError:
        raise ConfigError(
            "render_mode='human' needs the package pygame-ce: run `.venv/bin/python -m pip install "
            "pygame-ce`, or take 'rgb_array'"
        ) from None
    try:
        return Window(pygame, size, fps)
    except pygame.error as error:
        raise ConfigError(
            f"no window can be opened ({error}): take render_mode 'rgb_array'"
        ) from None
