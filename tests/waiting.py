"""Waits for what other threads and processes do.

No wait of a test has a limit of its own: how long something takes depends on the machine's load.
The test's timeout ends a wait in vain, and shows where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds for waits that would outlive the timeout: of threads, and while a test is cleaned up."""


def wait_for(condition: Callable[[], T]) -> T:
    """What `condition` returns once that is true. Looks less often the longer it takes: a look
    often is a call, whose two sides take 2 ms.
    """
    begun = time.monotonic()
    while not (value := condition()):
        time.sleep(min(max(0.02, 0.05 * (time.monotonic() - begun)), 0.3))
    return value
