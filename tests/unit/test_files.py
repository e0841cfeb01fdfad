"""Files appear whole or stay unchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from league.errors import InvalidInput, StorageFull
from league.runs.files import write_whole


def test_the_text_replaces_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "first")
    write_whole(file, "second, ü")
    assert file.read_text(encoding="utf-8") == "second, ü"
    assert list(tmp_path.iterdir()) == [file]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "first")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match="no space left to write"):
        write_whole(file, "second")
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be written"):
        write_whole(tmp_path / "absent" / "note.txt", "text")
