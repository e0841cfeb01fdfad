"""Keeps content-addressed blobs in a folder of files, which are named by their sha256."""

from __future__ import annotations

import hashlib
import struct
from enum import Enum
from pathlib import Path
from typing import Any

from league.errors import DataCorrupt, NotFound
from league.ids import checked_digest
from league.runs.files import open_file, parse_json, write_whole


class BlobKind(Enum):
    """Kinds of blobs, with the endings of their files."""

    WEIGHTS = ".safetensors"
    RIVAL = ".rival.zip"


SUFFIX = BlobKind.WEIGHTS.value
METADATA_KEY = "kumite"
"""Key of a snapshot's format and card in the metadata of its weights."""
MOST_HEADER_BYTES = 2**20
PART_BYTES = 2**18
"""Largest size of a part of a blob, in bytes. A message carries a single part."""
MOST_BYTES = 2**30
"""Size of the largest blob, in bytes. The largest agents have some 50 MB."""


class BlobFolder:
    """Keeps blobs. Each blob is either whole or absent, even while several processes read and write
    the folder.

    Args:
        path: the folder.
        suffix: ending of the files' names. Weights have `SUFFIX`.
    """

    def __init__(self, path: Path | str, suffix: str = SUFFIX) -> None:
        self.root, self._suffix = Path(path), suffix

    def of(self, kind: BlobKind) -> BlobFolder:
        """Returns the blobs of a kind in the same folder."""
        return BlobFolder(self.root, kind.value)

    def path(self, digest: str) -> Path:
        """Returns the blob's path, even if the blob is missing. Raises `InvalidName` unless
        `digest` is a sha256.
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
        if not self.is_whole(digest):
            self.root.mkdir(parents=True, exist_ok=True)
            write_whole(self.path(digest), content)
        return digest

    def is_whole(self, digest: str) -> bool:
        """Returns whether the blob is here and undamaged."""
        try:
            with open_file(self.path(digest), MOST_BYTES) as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == digest
        except (FileNotFoundError, DataCorrupt):
            return False

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


def read_header(content: bytes, digest: str) -> tuple[Any, dict[str, Any]]:
    """Reads the header of a snapshot's weights.

    Args:
        content: the file, or its beginning with the whole header.
        digest: the file's digest, for messages.

    Returns:
        The file's metadata, and each tensor's type and shape by name.

    Raises:
        DataCorrupt: the file holds no snapshot.
    """
    try:
        (length,) = struct.unpack("<Q", content[:8])
        if length > MOST_HEADER_BYTES:
            raise ValueError(f"a header of {length} bytes")
        tensors = dict(parse_json(content[8 : 8 + length]))
        metadata = tensors.pop("__metadata__")[METADATA_KEY]
        kinds = {name: (entry["dtype"], entry["shape"]) for name, entry in tensors.items()}
        return parse_json(metadata), kinds
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise DataCorrupt(f"{digest} holds no snapshot ({error}): take it again") from None
