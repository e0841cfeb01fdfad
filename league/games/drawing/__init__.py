"""Draws a game's frames: `draw.js` decides what is drawn, a browser or Pillow paints it."""

from league.games.drawing.frames import drawable, is_fight, moving_part, still_part, verdict

__all__ = ["drawable", "is_fight", "moving_part", "still_part", "verdict"]
