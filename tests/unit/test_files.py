"""Files appear whole or stay unchanged."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from league.cluster import main as cluster
from league.errors import InvalidInput, StorageFull
from league.runs.files import write_whole
from learner import main as learner
from matchmaker.store.faults import as_league_errors


def test_the_text_replaces_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "first")
    write_whole(file, "second, ü")
    assert file.read_text(encoding="utf-8") == "second, ü"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    file = tmp_path / "note.txt"
    write_whole(file, "first")

    def full(_: int) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull, match=str(file)):
        write_whole(file, "second")
    assert file.read_text() == "first"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_or_a_quota_that_is_full_is_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reason: int,
) -> None:
    def full(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(cluster, "start", full)
    monkeypatch.setattr(learner, "running_league", full)
    for main in (cluster.main, learner.main):
        assert main([]) == StorageFull.exit_code
        assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(StorageFull), as_league_errors(tmp_path):
        full()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=str(tmp_path / "absent")):
        write_whole(tmp_path / "absent" / "note.txt", "text")
