"""Sends the run's blobs (files named by their digests, such as weights) to other machines, and
receives weights from these machines.

Content moves in parts, so that no transfer holds a whole file in memory. An uploaded file gets its
final name only after its size, digest and header have been checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

from league.errors import Busy, DataCorrupt, InvalidInput, NotFound, Refused, Unavailable
from league.ids import checked_digest
from league.rpc.convert import from_enum
from league.runs.blobs import (
    MOST_BYTES,
    MOST_HEADER_BYTES,
    PART_BYTES,
    BlobFolder,
    BlobKind,
    read_header,
)
from league.runs.files import open_file, whole_file
from league.runs.store import Store
from league.service.interceptor import CALLER
from league.v1 import matchmaker_pb2 as m
from matchmaker import limits
from matchmaker.acts import checks
from matchmaker.state.league import League
from matchmaker.store.transaction import Reader, Transaction


class Blobs:
    """Serves a folder of blobs.

    Args:
        league: the league, whose log counts the bytes that each token has uploaded.
        folder: the folder with the blobs.
        read_only: whether uploads are refused.
        store: the league's store, which may have weights that the folder does not have yet.
    """

    def __init__(
        self, league: League, folder: Path, *, read_only: bool, store: Store | None = None
    ) -> None:
        self._league, self._folder, self._read_only = league, BlobFolder(folder), read_only
        self._store = store
        self._arriving: Counter[str] = Counter()  # bytes of unfinished uploads by token
        for draft in () if read_only else folder.glob(".*"):
            with contextlib.suppress(OSError):
                if time.time() - draft.stat().st_mtime > limits.DRAFT_SECONDS:
                    draft.unlink()

    async def sent(self, request: m.GetBlobRequest) -> AsyncIterator[m.GetBlobResponse]:
        """Yields a blob in parts.

        Raises:
            InvalidInput: the digest or the kind is not valid.
            NotFound: the blob is missing or damaged.
            Busy: the client reads too slowly.
        """
        kind, digest = from_enum(BlobKind, request.kind), checked_digest(request.digest)
        ends, sha = time.monotonic() + limits.TRANSFER_SECONDS, hashlib.sha256()
        with await asyncio.to_thread(self._opened, kind, digest) as file:
            while part := await asyncio.to_thread(file.read, PART_BYTES):
                if time.monotonic() > ends:
                    raise Busy(_slow(digest))
                sha.update(part)
                yield m.GetBlobResponse(content=part)
        if sha.hexdigest() != digest:
            raise NotFound(_damaged(kind, digest))

    def _opened(self, kind: BlobKind, digest: str) -> BinaryIO:
        folder = self._folder.of(kind)
        if self._store is not None and not folder.has(digest):
            with contextlib.suppress(NotFound, DataCorrupt, Unavailable):
                folder.put(self._store.get_blob(digest, kind))
        try:
            return open_file(folder.path(digest), MOST_BYTES)
        except FileNotFoundError:
            raise NotFound(
                f"the league has no blob {digest}{kind.value}: check the digest and the kind"
            ) from None
        except DataCorrupt:  # the blob is damaged, not the log, so the service stays healthy
            raise NotFound(_damaged(kind, digest)) from None

    async def received(self, requests: AsyncIterator[m.PutBlobRequest]) -> m.PutBlobResponse:
        """Receives weights, and answers when they are on disk.

        Raises:
            InvalidInput: the content does not match the first request, or is not a snapshot.
            Refused: the caller has uploaded too much, or the league is read-only.
            Busy: the upload takes too long, or the disk has too little room.
            StorageFull: the disk is full.
        """
        if self._read_only:
            raise Refused("this matchmaker changes nothing: upload to the one that serves the run")
        first = await anext(requests, None)
        if first is None:
            raise InvalidInput("the call ended without a request of PutBlob: send one")
        digest = checked_digest(first.digest)
        size = checks.number(first.size, "size", 1, MOST_BYTES)
        if await asyncio.to_thread(self._folder.is_whole, digest):
            return m.PutBlobResponse(is_new=False)
        caller = CALLER.get()
        token = caller.name if caller else ""
        with self._room(token, size):
            self._folder.root.mkdir(parents=True, exist_ok=True)
            with whole_file(self._folder.path(digest)) as file:
                try:
                    async with asyncio.timeout(limits.TRANSFER_SECONDS):
                        await _write(file, first, requests)
                except TimeoutError:
                    raise Busy(_slow(digest)) from None
                await asyncio.to_thread(_sync, file)
            await self._league.store.submitted(lambda tx: _charge(tx, token, size))
        return m.PutBlobResponse(is_new=True)

    @contextlib.contextmanager
    def _room(self, token: str, size: int) -> Iterator[None]:
        """Reserves room for an upload while the `with` block runs."""
        with self._league.store.read() as reader:
            used = _uploaded(reader, token) + self._arriving[token]
        if used + size > limits.UPLOAD_BYTES:
            raise Refused(
                f"{size:,} more bytes are too many: {token or 'callers without a token'} may "
                f"upload {limits.UPLOAD_BYTES:,} bytes to this run, and {used:,} are used: ask an "
                "operator for a new token"
            )
        disk = shutil.disk_usage(self._folder.root.parent).free - self._arriving.total()
        if disk - size < limits.KEPT_FREE_BYTES:
            raise Busy(
                f"the disk of the league has no room for {size:,} more bytes: free some there",
                retry_seconds=5.0,
            )
        self._arriving[token] += size
        try:
            yield
        finally:
            self._arriving[token] -= size


async def _write(
    file: BinaryIO, first: m.PutBlobRequest, requests: AsyncIterator[m.PutBlobRequest]
) -> None:
    """Writes the content of an upload, and checks it against the size and digest in the first
    request.
    """
    sha, head, count = hashlib.sha256(), bytearray(), 0
    part: m.PutBlobRequest | None = first
    while part is not None:
        count += len(part.content)
        if not 0 < len(part.content) <= PART_BYTES or count > first.size:
            raise InvalidInput(
                f"{len(part.content):,} bytes arrived after {count - len(part.content):,} of "
                f"{first.size:,}: send parts of 1 to {PART_BYTES:,} bytes"
            )
        sha.update(part.content)
        if len(head) < 8 + MOST_HEADER_BYTES:
            head += part.content
        await asyncio.to_thread(file.write, part.content)
        part = await anext(requests, None)
    if count < first.size:
        raise InvalidInput(f"{count:,} of {first.size:,} bytes arrived: send all of them")
    if sha.hexdigest() != first.digest:
        raise InvalidInput(f"the content's sha256 is {sha.hexdigest()}, not {first.digest}")
    try:
        read_header(bytes(head), first.digest)
    except DataCorrupt as error:
        raise InvalidInput(f"only weights of snapshots can be uploaded: {error}") from None


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _uploaded(reader: Reader, token: str) -> int:
    return int(reader.meta(f"bytes uploaded by {token}") or 0)


def _charge(tx: Transaction, token: str, size: int) -> None:
    tx.set_meta(f"bytes uploaded by {token}", str(_uploaded(tx, token) + size))


def _slow(digest: str) -> str:
    return f"{digest} took more than {limits.TRANSFER_SECONDS:g} s: send it over a faster network"


def _damaged(kind: BlobKind, digest: str) -> str:
    return f"the league's blob {digest}{kind.value} is damaged: restore it or remove the player"
