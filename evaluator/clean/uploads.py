"""Copies the evaluator's replays to the league's object store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from league.errors import LeagueError
from league.replay import SUFFIX
from league.rpc.channel import Reminders
from league.runs.store import REPLAYS, Store

LOOK_SECONDS = 5.0
_log = logging.getLogger("evaluator")


class ReplayUploads:
    """Makes the store's replays follow a folder: new files are uploaded, removed files are removed.

    The folder may also have replays of other evaluators, which the matchmaker has copied from the
    store. Only replays that this process has uploaded are removed from the store.

    Args:
        folder: the folder of replays.
        store: the league's store.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder, self._store = folder, store
        self._stored: set[str] | None = None  # files of the folder that the store has
        self._uploaded = set[str]()
        self._remind = Reminders(_log.warning)

    def look(self) -> None:
        """Uploads and removes what has changed. What the store can't take now comes later."""
        try:
            here = {path.name for path in self._folder.glob(f"*{SUFFIX}")}
            if self._stored is None:
                self._stored = {Path(name).name for name in self._store.names(REPLAYS)}
            self._stored &= here
            for name in sorted(here - self._stored):
                if self._store.create(f"{REPLAYS}/{name}", (self._folder / name).read_bytes()):
                    self._uploaded.add(name)
                self._stored.add(name)
            for name in sorted(self._uploaded - here):
                self._store.delete(f"{REPLAYS}/{name}")
                self._uploaded.remove(name)
        except FileNotFoundError:
            return  # the recorder has just removed an old replay
        except (LeagueError, OSError) as error:
            self._remind(f"replays wait in {self._folder}: {error}")

    @contextmanager
    def running(self, seconds: float = LOOK_SECONDS) -> Iterator[None]:
        """Looks every few seconds while the block runs, and again at its end."""
        ended = threading.Event()

        def work() -> None:
            while not ended.wait(seconds):
                self.look()
            self.look()

        thread = threading.Thread(target=work, name="uploads", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(2.0)
