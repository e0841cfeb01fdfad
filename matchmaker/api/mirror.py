"""Keeps the run's folder and the league's object store alike, so that commands and pages read the
run's folder, also for files that other machines have written.
"""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

from league.errors import DataCorrupt, NotFound, Unavailable
from league.players import Player, PlayerKind, PlayerState
from league.rpc.channel import Reminders
from league.runs.blobs import BlobFolder, BlobKind
from league.runs.files import write_whole
from league.runs.store import BLOBS, REPLAYS, Store, blob_name
from matchmaker.state.league import League

REPLAY_SECONDS = 20.0
"""Time between two looks for replays in the store."""
MISSING_SECONDS = 60.0
"""Time until a blob is looked for again that neither the store nor the folder has."""
MOST_REPLAY_BYTES = 2**26
_REPLAY = re.compile(rf"{REPLAYS}/([0-9a-zA-Z_-]+\.replay)")
_log = logging.getLogger(__name__)


class Mirror:
    """Copies missing blobs of the league's players both ways, and replays from the store.

    Args:
        league: the league.
        run_dir: the run's folder.
        store: the league's store.
    """

    def __init__(self, league: League, run_dir: Path, store: Store) -> None:
        self._league, self._run_dir, self._store = league, run_dir, store
        self._blobs = BlobFolder(run_dir / BLOBS)
        self._stored: set[str] | None = None  # names in the store
        self._done = set[str]()
        self._again_at: dict[str, float] = {}  # by digest
        self._replays: set[str] | None = None  # names in the store at the last look
        self._replays_at, self._listed = 0.0, run_dir / "stored_replays.txt"
        self._remind = Reminders(_log.warning)

    def look(self) -> None:
        """Copies what has come since the last look. What the store can't take now comes later."""
        try:
            self._copy_blobs()
            if time.monotonic() >= self._replays_at:
                self._copy_replays()
                self._replays_at = time.monotonic() + REPLAY_SECONDS
        except (NotFound, Unavailable) as error:  # NotFound: there is no bucket any more
            self._remind(f"{error}; it is tried again, and the run's folder keeps everything")

    def _copy_blobs(self) -> None:
        now = time.monotonic()
        with self._league.view.lock:
            players = list(self._league.view.players.values())
        for player in players:
            digest = player.digest
            if not digest or digest in self._done or player.state is PlayerState.RETIRED:
                continue
            if now < self._again_at.get(digest, 0.0):
                continue
            if self._stored is None:  # one listing costs less than a question for each blob
                self._stored = set(self._store.names(BLOBS))
            try:
                self._copy_blob(player)
                self._done.add(digest)
            except (NotFound, DataCorrupt) as error:
                self._again_at[digest] = now + MISSING_SECONDS
                _log.warning("the weights of %s are not copied: %s", player.name, error)

    def _copy_blob(self, player: Player) -> None:
        kind = BlobKind.RIVAL if player.kind is PlayerKind.RIVAL else BlobKind.WEIGHTS
        folder, name = self._blobs.of(kind), blob_name(player.digest, kind)
        assert self._stored is not None
        if not folder.has(player.digest):
            folder.put(self._store.get_blob(player.digest, kind))
        elif name not in self._stored and not self._store.has(name):
            self._store.put_blob(folder.get(player.digest), kind)

    def _copy_replays(self) -> None:
        """Fetches new replays, and removes those that their evaluator has removed. A file keeps the
        names, so that a start does not fetch replays again that the run's folder no longer keeps.
        """
        folder = self._run_dir / REPLAYS
        known = self._replays
        if known is None:
            known = set[str]()
            if self._listed.exists():
                known |= set(self._listed.read_text(errors="replace").split())
        found = {
            match[1] for name in self._store.names(REPLAYS) if (match := _REPLAY.fullmatch(name))
        }
        for name in sorted(found - known):
            if (folder / name).exists():
                continue
            try:
                content = self._store.get(f"{REPLAYS}/{name}", MOST_REPLAY_BYTES)
            except (NotFound, DataCorrupt) as error:  # just removed, or too large
                _log.warning("a replay is not copied: %s", error)
                continue
            folder.mkdir(exist_ok=True)
            write_whole(folder / name, content)
        for name in (self._replays or set()) - found:
            (folder / name).unlink(missing_ok=True)
        if found != known:
            write_whole(self._listed, "\n".join(sorted(found)))
        self._replays = found
