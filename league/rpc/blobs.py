"""Fetches and uploads blobs (files named by their digests, such as weights) of a league that runs
on another machine.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from league.errors import DataCorrupt, LeagueError, NotFound
from league.rpc.client import MatchmakerClient
from league.runs.blobs import SUFFIX, BlobFolder, BlobKind
from league.settings.base import JOINED

CACHE_BYTES = 8 * 2**30
"""Largest size of the cache on disk. A larger cache loses its least recently used blobs."""


class RemoteBlobs(BlobFolder):
    """Fetches missing blobs from the matchmaker, and uploads new weights to it.

    Args:
        path: folder of the cache. Several processes may use it at once.
        client: connection to the matchmaker.
        suffix: ending of the files' names.
    """

    def __init__(self, path: Path | str, client: MatchmakerClient, suffix: str = SUFFIX) -> None:
        super().__init__(path, suffix)
        self._client, self._kind = client, BlobKind(suffix)

    def of(self, kind: BlobKind) -> RemoteBlobs:
        return RemoteBlobs(self.root, self._client, kind.value)

    def has(self, digest: str) -> bool:
        """Returns whether the league has the blob. If it has, the blob is fetched into the
        cache.
        """
        here = [kind for kind in BlobKind if BlobFolder(self.root, kind.value).has(digest)]
        if here:
            return self._kind in here
        with contextlib.suppress(NotFound, DataCorrupt):
            self.get(digest)
            return True
        return False

    def put(self, content: bytes) -> str:
        """Uploads weights and returns their digest. Raises the errors of `put_blob`."""
        digest = self._client.put_blob(content)
        self._keep(content)
        return digest

    def get(self, digest: str) -> bytes:
        """Returns the blob's bytes, verified. Raises the errors of `get_blob`."""
        with contextlib.suppress(NotFound, DataCorrupt):
            content = super().get(digest)
            with contextlib.suppress(OSError):
                os.utime(self.path(digest))
            return content
        content = self._client.get_blob(digest, self._kind)
        self._keep(content)
        return content

    def _keep(self, content: bytes) -> None:
        """Stores a blob in the cache, and removes the least recently used blobs if the cache is too
        large. Errors of the disk are ignored.
        """
        with contextlib.suppress(LeagueError, OSError):
            super().put(content)
            left = CACHE_BYTES
            files = [(file.stat(), file) for file in self.root.iterdir()]
            for status, file in sorted(files, key=lambda pair: -pair[0].st_mtime_ns):
                left -= status.st_size
                if left < 0:
                    file.unlink(missing_ok=True)


def blobs_of(run_dir: Path, client: MatchmakerClient) -> BlobFolder:
    """Returns the blobs for a run's folder: its own blobs, or if the folder has joined a league on
    another machine, the blobs of that league.
    """
    folder = run_dir / "blobs"
    return RemoteBlobs(folder, client) if (run_dir / JOINED).is_file() else BlobFolder(folder)
