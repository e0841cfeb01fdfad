"""Weights as a snapshot's, and uploads as hostile clients send them."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from league.v1 import matchmaker_pb2 as m

PART = 2**18


def weights(size: int = 1000, fill: bytes = b"w") -> bytes:
    """Bytes with the header of a snapshot, and `size` more."""
    header = json.dumps({"__metadata__": {"kumite": "{}"}}).encode()
    return struct.pack("<Q", len(header)) + header + fill * size


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def parts(content: bytes, size: int | None = None, part: int = PART, **first: Any) -> list[Any]:
    """The requests of an upload, with other values in the first one."""
    pieces = [content[start : start + part] for start in range(0, len(content), part)] or [b""]
    said = {"digest": digest_of(content), "size": len(content) if size is None else size} | first
    requests = [m.PutBlobRequest(content=piece) for piece in pieces]
    requests[0] = m.PutBlobRequest(content=pieces[0], **said)
    return requests


@contextmanager
def unfinished(*requests: Any) -> Iterator[Iterator[Any]]:
    """The requests of a stream that its client does not end before the block does."""
    end = threading.Event()

    def sent() -> Iterator[Any]:
        yield from requests
        end.wait()

    try:
        yield sent()
    finally:
        end.set()


def files(folder: Path) -> list[str]:
    """Names of all files in the folder of the blobs, unfinished ones too."""
    return sorted(file.name for file in (folder / "blobs").glob("*"))
