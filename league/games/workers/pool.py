"""Keeps a learner's connections to its game workers, and waits for workers."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from league.games.hosted import WAIT_SECONDS
from league.games.workers.links import Link
from league.rpc.channel import Reminders

PAUSE_SECONDS = 0.05
log = logging.getLogger(__name__)


@dataclass
class Share:
    """Holds the rows that a worker plays.

    Attributes:
        is_present: whether the worker plays the matches of these rows.
        lost: the reason why these matches fail in the next step, "" if they don't.
    """

    link: Link
    rows: slice
    is_present: bool = False
    lost: str = ""


class Workers:
    """Holds the links to the workers, and the functions that are called during waits.

    Attributes:
        should_stop: called often while no worker plays. If it returns True, the wait ends.
        wait_seconds: longest wait while no worker plays.
        on_wait: called with the reason of a wait, and with "" after it.
    """

    should_stop: Callable[[], bool] = staticmethod(lambda: False)
    wait_seconds = WAIT_SECONDS
    on_wait: Callable[[str], None] = staticmethod(lambda reason: None)

    def __init__(self, links: Sequence[Link]) -> None:
        edges = itertools.accumulate((link.matches for link in links), initial=0)
        rows = itertools.starmap(slice, itertools.pairwise(edges))
        self.shares = [Share(link, part) for link, part in zip(links, rows, strict=True)]
        self._remind = Reminders(log.warning)

    def poll(self, share: Share) -> bool:
        """Connects to a worker, without waiting. Returns whether it can begin matches."""
        link, before = share.link, share.link.problem
        is_open = link.poll()
        if link.problem and link.problem != before:
            self._remind(link.problem)
        return is_open

    def wait(self, are_enough: Callable[[], bool], seconds: float) -> None:
        """Waits until enough workers are there, or for some seconds, or until the program stops."""
        began, told = time.monotonic(), False
        while not are_enough() and not self.should_stop():
            waited = time.monotonic() - began
            if waited >= seconds:
                break
            if waited > 1.0:
                told = True
                reasons = [share.link.problem for share in self.shares if share.link.problem]
                self.on_wait(next(iter(reasons), "waiting for the game's workers to start"))
            time.sleep(PAUSE_SECONDS)
        if told:
            self.on_wait("")

    def close(self) -> None:
        """Ends all connections, and the workers of this machine."""
        for share in self.shares:
            share.link.close()
            share.is_present = False
