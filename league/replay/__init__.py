"""Replays: a match in a few kB (its seed and what both seats did), played again bit for bit."""

from league.replay.file import SUFFIX, load_replay, save_replay
from league.replay.match import Contender, Recipe, Replay, final_digest
from league.replay.playback import Playback, verify
from league.replay.take import Take

__all__ = [
    "SUFFIX",
    "Contender",
    "Playback",
    "Recipe",
    "Replay",
    "Take",
    "final_digest",
    "load_replay",
    "save_replay",
    "verify",
]
