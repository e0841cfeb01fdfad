"""Records matches as seed and actions, in a few kB each, and plays them again bit for bit."""

from league.replay.file import SUFFIX, load_replay, save_replay
from league.replay.match import Contender, Recipe, Replay, final_digest
from league.replay.playback import Playback, end_frame, verify
from league.replay.recorder import BatchRecorder, Bout, MatchRecorder

__all__ = [
    "SUFFIX",
    "BatchRecorder",
    "Bout",
    "Contender",
    "MatchRecorder",
    "Playback",
    "Recipe",
    "Replay",
    "end_frame",
    "final_digest",
    "load_replay",
    "save_replay",
    "verify",
]
