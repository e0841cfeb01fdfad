"""Pictures of matches that an environment plays: images of a batch's rows, and a window."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import BatchedGame
from league.games.drawing.frames import verdict

if TYPE_CHECKING:
    from league.games.drawing.painter import Painter  # loads a JavaScript engine


class LivePictures:
    """Draws the rows of a game that are looked at, as uint8 [H, W, 3].

    Call `begin` for a row's match, `see` after every step, and `draw` at any time. When a match has
    ended, the game already holds the next one, so the last frame before is shown with the verdict.
    """

    def __init__(
        self, game: BatchedGame, size: tuple[int, int], window_fps: float | None = None
    ) -> None:
        """`window_fps` opens a window that shows row 0 at most so many times a second."""
        from league.games.drawing.painter import check_size

        check_size(*size)
        self._window = open_window(size, window_fps) if window_fps is not None else None
        self._game, self._size = game, size
        self._painters: dict[int, Painter] = {}
        self._frames: dict[int, tuple[dict[str, Any], dict[str, Any] | None]] = {}
        self._names: dict[int, Sequence[str]] = {}

    def begin(self, row: int, names: Sequence[str]) -> None:
        """A new match in `row`, between players of these names."""
        self._painters.pop(row, None)
        self._names[row] = names
        self._frames[row] = self._game.frame(row), None
        self._show()

    def see(self, row: int, outcome: float | None = None) -> None:
        """The frame after a step; `outcome` is seat 0's when the match ended in it."""
        if outcome is None:
            self._frames[row] = self._game.frame(row), None
        else:
            winner = None if outcome == 0.5 else int(outcome == 0.0)
            self._frames[row] = self._frames[row][0], verdict(self._names[row], winner)
        self._show()

    def _show(self) -> None:
        if self._window is not None:
            self._window.show(self.draw(0))

    def draw(self, row: int) -> NDArray[np.uint8]:
        """The row's newest picture, uint8 [H, W, 3]."""
        from league.games.drawing.painter import Painter

        painter = self._painters.setdefault(row, Painter(*self._size, self._names[row]))
        painter.see(*self._frames[row])
        return painter.paint()

    def close(self) -> None:
        """Closes the window, if there is one; safe to call again."""
        if self._window is not None:
            self._window.close()


class Window:
    """A window that shows at most `fps` pictures a second; after it is closed, it stays closed."""

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
        """Puts a picture, uint8 [H, W, 3], on the screen."""
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
        """Closes the window; safe to call again."""
        if self._screen is not None:
            self._screen = None
            self._pygame.display.quit()


def open_window(size: tuple[int, int], fps: float) -> Window:
    """Opens a window; raises `ConfigError` where there is no pygame or no screen."""
    try:
        pygame = importlib.import_module("pygame")
    except ImportError:
        raise ConfigError(
            "render_mode='human' needs the package pygame-ce: run `.venv/bin/python -m pip install "
            "pygame-ce`, or use 'rgb_array'"
        ) from None
    try:
        return Window(pygame, size, fps)
    except pygame.error as error:
        raise ConfigError(
            f"no window can be opened ({error}): use render_mode 'rgb_array'"
        ) from None
