"""Games with a fault, named `python:profiled_games:FACTORY` by the profile's tests."""

from __future__ import annotations

import os
import signal
import time

from league.games.registry import make_batched

NAP = 0.02


def slow(num_matches, *, max_frames=None):
    """Kuhn poker whose every step sleeps."""
    game = make_batched("kuhn", num_matches)
    step = game.step

    def sleepy(actions_N2A, frames=1):
        time.sleep(NAP)
        step(actions_N2A, frames)

    game.step = sleepy
    return game


def deadly(num_matches, *, max_frames=None):
    """Kuhn poker that ends its process, as Linux does when memory runs out, with more than 8
    matches.
    """
    if num_matches > 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return make_batched("kuhn", num_matches)
