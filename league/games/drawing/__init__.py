"""Draws a game's frames: `draw.js` computes shapes, and a browser or Pillow paints them."""

from league.games.drawing.frames import drawable, is_fight, moving_part, still_part, verdict

__all__ = ["drawable", "is_fight", "moving_part", "still_part", "verdict"]
