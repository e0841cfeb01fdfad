"""Plays the original game from a user's own checkout of UTMIST/UTMIST-AI2: `ai2:FOLDER`."""
