"""Content-addressed weights: a folder of files named by the sha256 of what they hold."""

from __future__ import annotations

import hashlib
from pathlib import Path

from league.errors import DataCorrupt, NotFound
from league.ids import checked_digest
from league.runs.files import open_file, write_whole

SUFFIX = ".safetensors"
MOST_BYTES = 2**30
"""Of a blob: the largest agents have some 50 MB."""


class BlobFolder:
    """A folder of blobs, each whole or absent; several processes may read and write it at once."""

    def __init__(self, path: Path | str) -> None:
        self.root = Path(path)

    def path(self, digest: str) -> Path:
        """Where the blob lies or would lie; raises `InvalidName` for anything but a sha256."""
        return self.root / f"{checked_digest(digest)}{SUFFIX}"

    def has(self, digest: str) -> bool:
        """Whether the blob is here (its content is checked by `get`)."""
        return self.path(digest).is_file()

    def put(self, content: bytes) -> str:
        """Stores `content` and returns its digest; writes a damaged file again.

        Raises `StorageFull`, or `InvalidInput` for a folder that can't be written.
        """
        digest = hashlib.sha256(content).hexdigest()
        try:
            self.get(digest)
        except (NotFound, DataCorrupt):
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self.path(digest), content)
        return digest

    def get(self, digest: str) -> bytes:
        """The blob's bytes, verified; raises `NotFound` or `DataCorrupt`."""
        path = self.path(digest)
        try:
            with open_file(path, MOST_BYTES) as file:
                content = file.read()
        except FileNotFoundError:
            raise NotFound(
                f"there are no weights {digest} in {self.root}: check the blob folder"
            ) from None
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            raise DataCorrupt(
                f"{path} is damaged (its sha256 is {found}): restore it or remove the snapshot"
            )
        return content
