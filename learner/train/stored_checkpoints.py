"""Copies a learner's checkpoints to the league's object store, and continues from there on a
machine that does not have them.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from league.errors import DataCorrupt, LeagueError, NotFound, Unavailable
from league.rpc.channel import Reminders
from league.runs.store import Store
from learner.train.checkpoint import KEEP, CheckpointFolder, Values

RETRY_SECONDS = 5.0
WAIT_SECONDS = 600.0
CLOSE_SECONDS = 20.0
"""At its end, a learner waits this long for the upload of its last checkpoint."""
T = TypeVar("T")
_NAME = re.compile(r"(step_\d{12})\.([0-9a-f]{64})\.pt")
log = logging.getLogger(__name__)


class StoredCheckpoints(CheckpointFolder):
    """Keeps the newest checkpoints in a folder, and the same in the store.

    A checkpoint is first written to the folder. A thread then copies it, while the training goes
    on. While the store can't be reached, the thread tries again, and copies only the newest.

    Args:
        folder: the folder of this machine.
        store: the league's store.
        place: the folder in the store.
        keep: number of checkpoints to keep.
        should_stop: if it returns True, `read_newest` no longer waits for the store.
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        place: str,
        keep: int = KEEP,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(folder, keep)
        self._store, self._place, self._should_stop = store, place, should_stop
        self._stored: dict[Path, str] = {}  # names of the checkpoints in the store, by local path
        self._due: Path | None = None
        self._unfit_names = set[str]()
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._remind = Reminders(log.warning)

    def candidates(self) -> list[Path]:
        names = self._patiently(self._names)
        self._stored = {self.folder / f"{step}.pt": name for step, name in names}
        return sorted({*self.files(), *self._stored}, reverse=True)

    def read(self, path: Path) -> Values:
        name = self._stored.get(path)
        if name is not None and not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            log.info("fetching the checkpoint %s from the store", path.name)
            try:
                digest = name.split(".")[-2]
                self._patiently(lambda: self._store.download(name, digest, path))
            except NotFound as error:  # another process has just removed it
                raise DataCorrupt(str(error)) from None
        return super().read(path)

    def write(self, step: int, values: Values) -> Path:
        unfit = {self._stored[path] for path in self.unfit if path in self._stored}
        path = super().write(step, values)
        with self._lock:
            self._due, self._unfit_names = path, self._unfit_names | unfit
            if self._thread is None:
                self._thread = threading.Thread(target=self._copy, name="checkpoints", daemon=True)
                self._thread.start()
        return path

    def close(self) -> None:
        """Waits some seconds for the upload of the newest checkpoint."""
        self._closing.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_SECONDS)
            if self._due is not None or thread.is_alive():
                log.warning("the newest checkpoint is only in %s, not in the store", self.folder)

    def clear(self) -> None:
        super().clear()
        with contextlib.suppress(LeagueError):
            for _, name in self._names():
                self._store.delete(name)

    def _patiently(self, call: Callable[[], T]) -> T:
        """Repeats a call while the store can't be reached, because a learner that began without its
        checkpoint would lose it. Gives up after `WAIT_SECONDS`.
        """
        ends = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                return call()
            except Unavailable as error:
                if self._should_stop() or time.monotonic() > ends:
                    raise
                self._remind(f"waiting for the checkpoints: {error}")
                time.sleep(1.0)

    def _names(self) -> list[tuple[str, str]]:
        """Lists the checkpoints in the store, the oldest first: name of the file, full name."""
        names = self._store.names(self._place)
        found = ((_NAME.fullmatch(name.removeprefix(f"{self._place}/")), name) for name in names)
        return [(match[1], name) for match, name in found if match]

    def _copy(self) -> None:
        """Copies the newest checkpoint until there is no newer one."""
        while True:
            with self._lock:
                path, self._due = self._due, None
                if path is None:
                    self._thread = None
                    return
            try:
                self._upload(path)
            except FileNotFoundError:  # newer checkpoints have taken its place
                continue
            except (LeagueError, OSError) as error:
                self._remind(f"checkpoints wait in {self.folder}: {error}")
                with self._lock:
                    self._due = self._due or path
                if self._closing.wait(RETRY_SECONDS):
                    return

    def _upload(self, path: Path) -> None:
        mine = self._store.put_checkpoint(self._place, path)
        names, unfit = self._names(), set(self._unfit_names)
        gone = unfit | {name for step, name in names if step == path.stem} - {mine}
        kept = [name for _, name in names if name not in gone]
        for name in (*gone, *kept[: -self.keep]):
            self._store.delete(name)
        with self._lock:
            self._unfit_names -= unfit
