"""Draws a game's frames (`BatchedGame.frame`): into pixels here, through shapes a browser draws
as well.
"""

from league.games.render.still import Painter, draw_frame

__all__ = ["Painter", "draw_frame"]
