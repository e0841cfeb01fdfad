"""Keeps files of a run in an object store (S3, Google Cloud Storage, Azure) or in a shared folder.

A name in the store is written once and never changes: names of weights, rivals and checkpoints
have the digest of their content, and names of replays have the match. Credentials come from the
environment, and messages show neither them nor the store's own error texts.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from league.errors import ConfigError, DataCorrupt, NotFound, Unavailable
from league.ids import checked_digest
from league.runs.blobs import MOST_BYTES, BlobKind
from league.runs.files import whole_file
from league.settings.presets import load_preset, read_tables

BLOBS, REPLAYS = "blobs", "replays"
"""Folders of the store."""
CLAIM = "league.json"
"""Object that names the league to which a store belongs."""
AWAY_SECONDS = 10.0
"""Time for which a store that could not be reached is not tried again."""
PART_BYTES = 8 * 2**20
_PLAIN = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
_CLIENT = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(minutes=5)}
_RETRIES = {"max_retries": 4, "retry_timeout": timedelta(seconds=10)}
_ADDRESS = re.compile(r"(s3|gs|az)://[a-zA-Z0-9][a-zA-Z0-9._-]*(/[a-zA-Z0-9._=-]+)*/?|file:///.+")


def checked_address(address: str) -> str:
    """Returns the address of a store.

    Raises:
        ConfigError: it is no address, or has more than an address, such as a user or a query. The
            message does not show it, because it may have a secret.
    """
    if address and not _ADDRESS.fullmatch(address):
        raise ConfigError(
            "store is no plain address of a store: write s3://BUCKET/PREFIX, gs://…, az://… or "
            "file:///FOLDER, and leave credentials to the environment (AWS_ACCESS_KEY_ID, …)"
        )
    return address


class Store:
    """Reads and writes the objects of a run. Threads may share a store.

    A store that can't be reached raises `Unavailable` after some seconds, and then at once until
    `AWAY_SECONDS` have passed.

    Args:
        address: the store, as `[cluster] store` has it.
        is_owner: whether the caller will claim the store, so that a folder may be new.

    Raises:
        ConfigError: the address can't be used, this machine does not see the folder, or the package
            obstore is missing.
    """

    def __init__(self, address: str, *, is_owner: bool = False) -> None:
        self.address = checked_address(address).rstrip("/")
        self.folder = Path(unquote(urlsplit(address).path)) if address[:5] == "file:" else None
        self._away_until = 0.0
        try:
            import obstore
            from obstore.store import LocalStore, from_url
        except ImportError:
            raise ConfigError(
                "cluster.store needs the package obstore: run bin/bootstrap --all in a clone, or "
                "pip install 'kumite[cluster]'"
            ) from None
        self._api: Any = obstore
        if self.folder is not None:
            if not is_owner and not self._sees_folder():
                raise ConfigError(
                    f"{socket.gethostname()} does not see the league's folder {self.folder}: mount "
                    "it there, or give cluster.store an address that all machines reach (s3://…)"
                )
            with self._guarded(CLAIM):
                self._objects: Any = LocalStore(self.folder, mkdir=is_owner)
            return
        # the options below would hide these variables from obstore
        is_plain = any(os.environ.get(name, "").lower() in ("1", "true") for name in _PLAIN)
        client = {**_CLIENT, "allow_http": is_plain}
        try:
            self._objects = from_url(self.address, client_options=client, retry_config=_RETRIES)
        except Exception as error:  # obstore raises a dozen kinds, with the variables' values
            raise ConfigError(
                f"the store {self.address} can't be used ({type(error).__name__}): check the "
                "variables of its credentials"
            ) from None

    def claim(self, league: str) -> None:
        """Makes the store that of `league`, because checkpoints of two leagues would mix.

        Raises:
            ConfigError: it belongs to another league.
            Unavailable: the store can't be reached.
        """
        try:
            is_ours = self.create(CLAIM, league.encode()) or self.get(CLAIM) == league.encode()
        except NotFound:
            raise ConfigError(
                f"there is no bucket for the store {self.address}: make it first"
            ) from None
        if not is_ours:
            raise ConfigError(
                f"the store {self.address} belongs to another league: give this one a prefix of "
                "its own (cluster.store)"
            )

    # -- blobs ----------------------------------------------------------------------------------

    def put_blob(self, content: bytes, kind: BlobKind) -> str:
        """Stores a blob and returns its digest. A damaged object is written again."""
        digest = hashlib.sha256(content).hexdigest()
        name = blob_name(digest, kind)
        if not self.create(name, content) and self.get(name) != content:
            with self._guarded(name):
                self._api.put(self._objects, name, content)
        return digest

    def get_blob(self, digest: str, kind: BlobKind) -> bytes:
        """Returns a blob's content, verified.

        Raises:
            NotFound: the store does not have it.
            DataCorrupt: the object has other content.
            Unavailable: the store can't be reached.
        """
        name = blob_name(digest, kind)
        content = self.get(name)
        self._check(name, hashlib.sha256(content), digest)
        return content

    # -- objects --------------------------------------------------------------------------------

    def create(self, name: str, content: bytes | Path) -> bool:
        """Writes an object unless it exists. Returns whether it is new."""
        with self._guarded(name):
            try:
                self._api.put(self._objects, name, content, mode="create", use_multipart=False)
            except self._api.exceptions.AlreadyExistsError:
                return False
            return True

    def put_checkpoint(self, folder: str, path: Path) -> str:
        """Stores a checkpoint under its name and digest. Returns the object's name.

        Args:
            folder: the folder in the store, `learner-NAME/checkpoints`.
            path: the file.

        Raises:
            FileNotFoundError: there is no such file.
            Unavailable: the store can't be reached.
        """
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.create(name := f"{folder}/{path.stem}.{digest}{path.suffix}", path)
        return name

    def get(self, name: str, most_bytes: int = MOST_BYTES) -> bytes:
        """Returns an object's content. Raises `NotFound`, or `DataCorrupt` if it is larger than
        `most_bytes`.
        """
        with self._guarded(name):
            found = self._api.get(self._objects, name)
            if found.meta["size"] > most_bytes:
                raise DataCorrupt(f"{self.address}/{name} has more than {most_bytes:,} bytes")
            return bytes(found.bytes())

    def download(self, name: str, digest: str, path: Path) -> None:
        """Writes an object's content to a file, which appears only if its sha256 is `digest`.
        Raises the errors of `get_blob` and of `whole_file`.
        """
        sha = hashlib.sha256()
        with self._guarded(name), whole_file(path) as file:
            for part in self._api.get(self._objects, name).stream(min_chunk_size=PART_BYTES):
                sha.update(part)
                file.write(part)
            self._check(name, sha, digest)

    def has(self, name: str) -> bool:
        """Returns whether the object exists."""
        try:
            with self._guarded(name):
                self._api.head(self._objects, name)
        except NotFound:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        """Lists the objects in a folder and in the folders below it, in alphabetical order."""
        with self._guarded(folder):
            found = self._api.list(self._objects, prefix=folder, chunk_size=1000)
            return sorted(entry["path"] for chunk in found for entry in chunk)

    def delete(self, name: str) -> None:
        """Removes an object, if it exists."""
        try:
            with self._guarded(name):
                self._api.delete(self._objects, name)
        except NotFound:
            pass

    def _check(self, name: str, sha: hashlib._Hash, digest: str) -> None:
        if (actual := sha.hexdigest()) != digest:
            raise DataCorrupt(f"{self.address}/{name} is damaged (its sha256 is {actual})")

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """Turns the errors of obstore into the league's."""
        if time.monotonic() < self._away_until:
            raise self._unavailable("not tried again yet")
        if name != CLAIM and not self._sees_folder():
            raise self._unavailable("the folder is not mounted")  # else files would hide below it
        errors = self._api.exceptions
        try:
            yield
        except (errors.NotFoundError, FileNotFoundError):
            raise NotFound(f"there is no {name} in the store {self.address}") from None
        except (errors.BaseError, OSError) as error:
            self._away_until = time.monotonic() + AWAY_SECONDS
            raise self._unavailable(type(error).__name__) from None

    def _sees_folder(self) -> bool:
        return self.folder is None or (self.folder / CLAIM).is_file()

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(
            f"the store {self.address} can't be reached from {socket.gethostname()} ({reason}): "
            "check the network and the credentials"
        )


def blob_name(digest: str, kind: BlobKind) -> str:
    """Returns the name of a blob in a store. Raises `InvalidName` unless `digest` is a sha256."""
    return f"{BLOBS}/{checked_digest(digest)}{kind.value}"


def store_of(run_dir: Path) -> Store | None:
    """Returns the store that a run's config.toml names, or None. Raises the errors of `Store`."""
    config = run_dir / "config.toml"
    if not config.is_file():
        return None
    content = read_tables(config)
    below = load_preset(content.extends) if content.extends else {}
    section = {**below.get("cluster", {}), **content.sections.get("cluster", {})}
    address = section.get("store", "")
    return Store(str(address)) if address else None
