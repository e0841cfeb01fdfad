"""Replays: a match in a few kB (its seed and what both seats did), played again bit for bit."""

from league.replay.batch import BatchTake, Bout
from league.replay.file import SUFFIX, load_replay, save_replay
from league.replay.match import Contender, Recipe, Replay, final_digest
from league.replay.playback import Playback, check_end, end_frame, verify
from league.replay.take import Take

__all__ = [
    "SUFFIX",
    "BatchTake",
    "Bout",
    "Contender",
    "Playback",
    "Recipe",
    "Replay",
    "Take",
    "check_end",
    "end_frame",
    "final_digest",
    "load_replay",
    "save_replay",
    "verify",
]
