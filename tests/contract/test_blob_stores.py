"""The contract of blob stores: a folder, the matchmaker, an object store, a common folder."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from object_store import ObjectStore, object_store

from league.errors import DataCorrupt, InvalidName, LeagueError, NotFound, Unavailable
from league.rpc.blobs import RemoteBlobs
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder, BlobKind
from league.runs.store import Store, blob_name
from matchmaker.api.server import MatchmakerServer


def weights(fill: bytes = b"w") -> bytes:
    """Bytes with the header of a snapshot, as the matchmaker wants them."""
    header = json.dumps({"__metadata__": {"kumite": "{}"}}).encode()
    return struct.pack("<Q", len(header)) + header + fill * 1000


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


class BlobContract:
    """Subclass with a fixture `blobs`, and with `elsewhere` and `damage`."""

    def elsewhere(self, blobs: BlobFolder, folder: Path) -> BlobFolder:
        """The same blobs from another machine, whose own files are in `folder`."""
        raise NotImplementedError

    def damage(self, blobs: BlobFolder, digest: str) -> None:
        """Changes the blob's content at its place."""
        raise NotImplementedError

    def test_another_machine_gets_what_was_put(self, blobs: BlobFolder, tmp_path: Path) -> None:
        digest = blobs.put(weights())
        assert digest == hashlib.sha256(weights()).hexdigest()
        other = self.elsewhere(blobs, tmp_path / "other")
        for reader in (blobs, other, other):
            assert reader.has(digest)
            assert reader.get(digest) == weights()
        assert blobs.put(weights()) == other.put(weights()) == digest

    def test_a_missing_blob_is_not_found(self, blobs: BlobFolder) -> None:
        assert not blobs.has("0" * 64)
        with pytest.raises(NotFound, match="000000"):
            blobs.get("0" * 64)

    @pytest.mark.parametrize("digest", ["", "../" + "0" * 61, "A" * 64, "0" * 64 + "\n", "/etc"])
    def test_a_crafted_digest_is_refused(self, blobs: BlobFolder, digest: str) -> None:
        for use in (blobs.get, blobs.has):
            with pytest.raises(InvalidName):
                use(digest)

    def test_kinds_are_kept_apart(self, blobs: BlobFolder, tmp_path: Path) -> None:
        digest = blobs.put(weights())
        for reader in (blobs, self.elsewhere(blobs, tmp_path / "other")):
            assert not reader.of(BlobKind.RIVAL).has(digest)
            with pytest.raises(NotFound):
                reader.of(BlobKind.RIVAL).get(digest)

    def test_damaged_content_is_never_given_and_a_put_mends_it(
        self, blobs: BlobFolder, tmp_path: Path
    ) -> None:
        digest = blobs.put(weights())
        self.damage(blobs, digest)
        with pytest.raises((DataCorrupt, NotFound)):
            self.elsewhere(blobs, tmp_path / "first").get(digest)
        blobs.put(weights())
        assert self.elsewhere(blobs, tmp_path / "second").get(digest) == weights()


class TestFolder(BlobContract):
    @pytest.fixture
    def blobs(self, tmp_path: Path) -> BlobFolder:
        return BlobFolder(tmp_path / "blobs")

    def elsewhere(self, blobs: BlobFolder, folder: Path) -> BlobFolder:
        return BlobFolder(blobs.root)

    def damage(self, blobs: BlobFolder, digest: str) -> None:
        blobs.path(digest).write_bytes(b"damaged")


class OfALeague(BlobContract):
    """Blobs of a league that runs at `client`, and maybe of its store."""

    client: MatchmakerClient
    store: Store | None = None
    run: Path

    @pytest.fixture(autouse=True)
    def _league(self, tmp_path: Path) -> Iterator[None]:
        type(self).run = tmp_path / "run"
        self.run.mkdir()
        with (
            MatchmakerServer(self.run / "league.db") as server,
            MatchmakerClient(server.address) as client,
        ):
            type(self).client = client
            yield

    @pytest.fixture
    def blobs(self, tmp_path: Path, _league: None) -> BlobFolder:
        return self.elsewhere(BlobFolder(tmp_path), tmp_path / "cache")

    def elsewhere(self, blobs: BlobFolder, folder: Path) -> BlobFolder:
        return RemoteBlobs(folder, self.client, store=self.store)


class TestMatchmaker(OfALeague):
    def damage(self, blobs: BlobFolder, digest: str) -> None:
        BlobFolder(self.run / "blobs").path(digest).write_bytes(b"damaged")


class OfAStore(OfALeague):
    def damage(self, blobs: BlobFolder, digest: str) -> None:
        assert self.store is not None
        name = blob_name(digest, BlobKind.WEIGHTS)
        self.store.delete(name)
        assert self.store.create(name, b"damaged")

    def test_the_matchmaker_helps_out_with_what_the_store_lacks(
        self, blobs: BlobFolder, tmp_path: Path
    ) -> None:
        digest = self.client.put_blob(weights(b"m"))
        assert self.elsewhere(blobs, tmp_path / "other").get(digest) == weights(b"m")

    def test_what_is_put_lies_in_the_store_and_not_at_the_matchmaker(
        self, blobs: BlobFolder
    ) -> None:
        assert self.store is not None
        digest = blobs.put(weights())
        assert self.store.names("blobs") == [f"blobs/{digest}.safetensors"]
        assert not BlobFolder(self.run / "blobs").has(digest)

    def test_an_object_is_never_written_over(self, blobs: BlobFolder) -> None:
        assert self.store is not None
        assert self.store.create("replays/a", b"first")
        assert not self.store.create("replays/a", b"second")
        assert self.store.get("replays/a") == b"first"

    def test_names_are_those_of_a_folder(self, blobs: BlobFolder, tmp_path: Path) -> None:
        store = self.store
        assert store is not None
        (tmp_path / "file").write_bytes(b"from a file")
        for name in ("learner-main/checkpoints/b", "learner-main/checkpoints/a"):
            store.create(name, tmp_path / "file")
        store.create("learner-main-2/checkpoints/c", b"")
        assert store.names("learner-main/checkpoints") == [
            "learner-main/checkpoints/a",
            "learner-main/checkpoints/b",
        ]
        store.delete("learner-main/checkpoints/a")
        store.delete("learner-main/checkpoints/a")
        assert not store.has("learner-main/checkpoints/a")
        content = b"from a file"
        name, digest = "learner-main/checkpoints/b", hashlib.sha256(content).hexdigest()
        store.download(name, digest, tmp_path / "fetched")
        assert (tmp_path / "fetched").read_bytes() == content
        with pytest.raises(DataCorrupt):
            store.download(name, "0" * 64, tmp_path / "damaged")
        assert not (tmp_path / "damaged").exists()

    def test_a_store_belongs_to_a_single_league(self, blobs: BlobFolder) -> None:
        store = self.store
        assert store is not None
        store.claim("mine")
        store.claim("mine")
        with pytest.raises(LeagueError, match="another league"):
            store.claim("yours")


class TestCommonFolder(OfAStore):
    @pytest.fixture(autouse=True)
    def _store(self, tmp_path: Path) -> None:
        type(self).store = store = Store(f"file://{tmp_path}/a common folder", is_owner=True)
        store.claim("mine")

    def test_a_folder_that_is_no_longer_mounted_is_not_made(
        self, blobs: BlobFolder, tmp_path: Path
    ) -> None:
        store = self.store
        assert store is not None
        (tmp_path / "a common folder").rename(tmp_path / "elsewhere")
        with pytest.raises(Unavailable):
            store.create("replays/a", b"content")
        assert not (tmp_path / "a common folder").exists()


class TestS3(OfAStore):
    @pytest.fixture(autouse=True)
    def _store(self, server: ObjectStore) -> None:
        type(self).store = Store(server.address())
