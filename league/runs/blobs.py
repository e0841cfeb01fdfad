"""Content-addressed weights: a folder of files named by the sha256 of what they hold."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from pathlib import Path

from league.errors import DataCorrupt, NotFound, StorageFull
from league.ids import checked_digest

SUFFIX = ".safetensors"


class BlobFolder:
    """A folder of blobs; several processes may read and write it at once.

    A blob appears whole or not at all: it is written to a temporary file, synced, then renamed.
    """

    def __init__(self, path: Path | str) -> None:
        self.root = Path(path)

    def path(self, digest: str) -> Path:
        """Where the blob lies or would lie; raises `InvalidName` for anything but a sha256."""
        return self.root / f"{checked_digest(digest)}{SUFFIX}"

    def has(self, digest: str) -> bool:
        """Whether the blob is here (its content is checked by `get`)."""
        return self.path(digest).is_file()

    def put(self, content: bytes) -> str:
        """Stores `content` and returns its digest; raises `StorageFull`. Repeating it changes
        nothing.
        """
        digest = hashlib.sha256(content).hexdigest()
        if not self._holds(digest):
            try:
                self.root.mkdir(parents=True, exist_ok=True)
                self._write(content, self.path(digest))
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise StorageFull(
                    f"no space left in {self.root} for {len(content)} bytes of weights: free some and start "
                    "again, what was saved before is whole"
                ) from None
        return digest

    def get(self, digest: str) -> bytes:
        """The blob's bytes, verified; raises `NotFound` or `DataCorrupt`."""
        path = self.path(digest)
        try:
            content = path.read_bytes()
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

    def _holds(self, digest: str) -> bool:
        """A damaged file under the right name is written again."""
        try:
            return bool(self.get(digest))
        except (NotFound, DataCorrupt):
            return False

    def _write(self, content: bytes, path: Path) -> None:
        handle, temporary = tempfile.mkstemp(dir=self.root, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        """The rename itself must survive a power cut too."""
        handle = os.open(self.root, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
