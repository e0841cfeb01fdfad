"""A long wait told in few words: at once, then at growing intervals."""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 600.0
ANOTHER_SECONDS = 5.0
"""A wait that was silent for so long is another one, and is told at once again."""


class Reminders:
    """Hands a sentence that comes again and again on to `say`, each time after twice as long a
    pause.
    """

    def __init__(
        self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._pause = FIRST_SECONDS
        self._heard_at = self._due_at = -LONGEST_SECONDS

    def __call__(self, sentence: str) -> None:
        now = self._clock()
        if now - self._heard_at > ANOTHER_SECONDS:
            self._pause, self._due_at = FIRST_SECONDS, now
        self._heard_at = now
        if now >= self._due_at:
            self._say(sentence)
            self._due_at = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_SECONDS)
