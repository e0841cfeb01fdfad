"""Keeps content-addressed blobs in a folder of files, which are named by their sha256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from league.errors import DataCorrupt, NotFound
from league.ids import checked_digest
from league.runs.files import open_file, write_whole

SUFFIX = ".safetensors"
MOST_BYTES = 2**30
"""The largest blob. The largest agents have some 50 MB."""


class BlobFolder:
    """Keeps blobs, each whole or absent. Several processes may read and write it at once.

    Args:
        path: the folder.
        suffix: ending of the files' names. Weights have `SUFFIX`.
    """

    def __init__(self, path: Path | str, suffix: str = SUFFIX) -> None:
        self.root, self._suffix = Path(path), suffix

    def path(self, digest: str) -> Path:
        """Returns the blob's path, also for a missing blob. Raises `InvalidName` unless it is a
        sha256.
        """
        return self.root / f"{checked_digest(digest)}{self._suffix}"

    def has(self, digest: str) -> bool:
        """Returns whether the blob is here. `get` checks its content."""
        return self.path(digest).is_file()

    def put(self, content: bytes) -> str:
        """Stores `content` and returns its digest. A damaged file is written again.

        Raises:
            StorageFull: the disk is full.
            InvalidInput: the folder can't be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        try:
            self.get(digest)
        except (NotFound, DataCorrupt):
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self.path(digest), content)
        return digest

    def get(self, digest: str) -> bytes:
        """Returns the blob's bytes, verified.

        Raises:
            NotFound: the blob is missing.
            DataCorrupt: the file has other content.
        """
        path = self.path(digest)
        try:
            with open_file(path, MOST_BYTES) as file:
                content = file.read()
        except FileNotFoundError:
            raise NotFound(
                f"there is no {digest}{self._suffix} in {self.root}: check the blob folder"
            ) from None
        actual = hashlib.sha256(content).hexdigest()
        if actual != digest:
            raise DataCorrupt(
                f"{path} is damaged (its sha256 is {actual}): restore it or remove the player"
            )
        return content
