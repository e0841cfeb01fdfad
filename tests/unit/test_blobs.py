"""The blob folder: content-addressed, verified, whole or absent."""

import hashlib
import os

import pytest

from league.errors import DataCorrupt, InvalidName, NotFound
from league.runs.blobs import BlobFolder


def test_put_and_get_by_digest(tmp_path) -> None:
    blobs = BlobFolder(tmp_path / "blobs")
    digest = blobs.put(b"weights")
    assert digest == hashlib.sha256(b"weights").hexdigest()
    assert blobs.has(digest)
    assert blobs.get(digest) == b"weights"
    assert blobs.put(b"weights") == digest
    assert [file.name for file in blobs.root.iterdir()] == [f"{digest}.safetensors"]


def test_a_damaged_blob_is_refused_and_a_new_put_mends_it(tmp_path) -> None:
    blobs = BlobFolder(tmp_path)
    digest = blobs.put(b"weights")
    blobs.path(digest).write_bytes(b"weighty")
    with pytest.raises(DataCorrupt, match="damaged"):
        blobs.get(digest)
    blobs.put(b"weights")
    assert blobs.get(digest) == b"weights"


def test_a_missing_blob_is_not_found(tmp_path) -> None:
    with pytest.raises(NotFound, match="000000"):
        BlobFolder(tmp_path).get("0" * 64)
    assert not BlobFolder(tmp_path).has("0" * 64)


@pytest.mark.parametrize(
    "digest", ["", "../" + "0" * 61, "0" * 63, "A" * 64, "0" * 64 + "\n", "/etc/passwd"]
)
def test_a_crafted_digest_never_makes_a_path(tmp_path, digest: str) -> None:
    for use in (BlobFolder(tmp_path).path, BlobFolder(tmp_path).get, BlobFolder(tmp_path).has):
        with pytest.raises(InvalidName):
            use(digest)


def test_a_crash_before_the_rename_leaves_no_blob(tmp_path, monkeypatch) -> None:
    blobs = BlobFolder(tmp_path)

    def crash(source, target) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        blobs.put(b"weights")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "sparse"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, kind: str) -> None:
    """A pipe or a device would be read for ever."""
    blobs, path = BlobFolder(tmp_path), tmp_path / ("0" * 64 + ".safetensors")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(2**40)
    with pytest.raises(DataCorrupt, match=str(path)):
        blobs.get("0" * 64)
