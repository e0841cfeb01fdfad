"""Fetches and uploads blobs (files named by their digests, such as weights) of a league whose
folder is on another machine, or that has an object store.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from league.errors import DataCorrupt, LeagueError, NotFound, Unavailable
from league.rpc.channel import Reminders
from league.rpc.client import MatchmakerClient
from league.runs.blobs import SUFFIX, BlobFolder, BlobKind
from league.runs.store import Store, store_of
from league.settings.base import JOINED

CACHE_BYTES = 8 * 2**30
"""Largest size of the cache on disk. A larger cache loses its least recently used blobs."""
_log = logging.getLogger(__name__)


class RemoteBlobs(BlobFolder):
    """Fetches missing blobs from the league's store or from the matchmaker, and uploads new weights
    there. The matchmaker also helps out while the store can't be reached.

    Args:
        path: folder for the blobs of this machine. Several processes may use it at once.
        client: connection to the matchmaker.
        suffix: ending of the files' names.
        store: the league's store, if it has one.
        is_cache: whether the folder may lose its least recently used blobs. A run's own folder
            keeps all.
    """

    def __init__(
        self,
        path: Path | str,
        client: MatchmakerClient,
        suffix: str = SUFFIX,
        *,
        store: Store | None = None,
        is_cache: bool = True,
    ) -> None:
        super().__init__(path, suffix)
        self._client, self._kind = client, BlobKind(suffix)
        self._store, self._is_cache = store, is_cache
        self._remind = Reminders(_log.warning)

    def of(self, kind: BlobKind) -> RemoteBlobs:
        options = {"store": self._store, "is_cache": self._is_cache}
        return RemoteBlobs(self.root, self._client, kind.value, **options)

    def has(self, digest: str) -> bool:
        """Returns whether the league has the blob. If it has, the blob is fetched."""
        here = [kind for kind in BlobKind if BlobFolder(self.root, kind.value).has(digest)]
        if here:
            return self._kind in here
        with contextlib.suppress(NotFound, DataCorrupt):
            self.get(digest)
            return True
        return False

    def put(self, content: bytes) -> str:
        """Uploads weights and returns their digest. Raises the errors of `put_blob`."""
        digest = self._put_in_store(content) or self._client.put_blob(content)
        self._keep(content)
        return digest

    def get(self, digest: str) -> bytes:
        """Returns the blob's bytes, verified. Raises the errors of `get_blob`."""
        with contextlib.suppress(NotFound, DataCorrupt):
            content = super().get(digest)
            with contextlib.suppress(OSError):
                os.utime(self.path(digest))
            return content
        content = self._get_from_store(digest) or self._client.get_blob(digest, self._kind)
        self._keep(content)
        return content

    def _put_in_store(self, content: bytes) -> str:
        """Returns the blob's digest, or "" if there is no store or it can't be reached."""
        if self._store is None:
            return ""
        try:
            return self._store.put_blob(content, self._kind)
        except Unavailable as error:
            self._remind(f"{error}; meanwhile weights go to the matchmaker")
            return ""

    def _get_from_store(self, digest: str) -> bytes:
        """Returns the blob's content, or b"" if the store can't give it."""
        if self._store is None:
            return b""
        try:
            return self._store.get_blob(digest, self._kind)
        except NotFound:  # a rival, or weights from a time without the store
            return b""
        except (Unavailable, DataCorrupt) as error:
            self._remind(f"{error}; the matchmaker is asked")
            return b""

    def _keep(self, content: bytes) -> None:
        """Stores a blob in the folder. A cache that is too large then loses its least recently used
        blobs. Errors of the disk are ignored.
        """
        with contextlib.suppress(LeagueError, OSError):
            super().put(content)
            left = CACHE_BYTES
            files = [(file.stat(), file) for file in self.root.iterdir() if self._is_cache]
            for status, file in sorted(files, key=lambda pair: -pair[0].st_mtime_ns):
                left -= status.st_size
                if left < 0:
                    file.unlink(missing_ok=True)


def blobs_of(run_dir: Path, client: MatchmakerClient) -> BlobFolder:
    """Returns the blobs for a run's folder: its own blobs, or those of the league's store, or if
    the folder has joined a league on another machine, the blobs of that league.

    Raises:
        ConfigError: the store's settings can't be used here.
    """
    folder, store = run_dir / "blobs", store_of(run_dir)
    is_joined = (run_dir / JOINED).is_file()
    if store is None and not is_joined:
        return BlobFolder(folder)
    return RemoteBlobs(folder, client, store=store, is_cache=is_joined)
