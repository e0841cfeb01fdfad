"""How often Python's collector runs in the project's processes."""

from __future__ import annotations

import atexit
import gc


def collect_rarely() -> None:
    """Lets the collector run after 50,000 new objects instead of 700, and not at the exit.

    A starting process makes a million objects and hardly any garbage. Frequent searches for garbage
    would take a sixth of the time to start, and the last search, with torch, a third of a second at
    the exit.
    """
    gc.set_threshold(50_000, 10, 10)
    atexit.register(gc.freeze)
