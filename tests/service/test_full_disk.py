"""A real disk that is really full, or read-only: a small one in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MOUNT = 'mount -t tmpfs -o size=3m tmpfs "$1"'


def in_namespace(command: str, *words: object) -> subprocess.CompletedProcess[str]:
    shell = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        command,
        "sh",
        *map(str, words),
    ]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


def can_mount(folder: Path) -> bool:
    try:
        return in_namespace(MOUNT, folder).returncode == 0
    except OSError:
        return False


def seen_on_a_disk(folder: Path, program: str) -> tuple[dict[str, Any], str]:
    """What a program beside this file prints of a small disk at `folder`, and what it logs."""
    if not can_mount(folder):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    file = Path(__file__).with_name(program)
    done = in_namespace(f'{MOUNT} && exec "$2" "$3" "$1"', folder, sys.executable, file)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_full_disk_costs_nothing_acknowledged_and_heals(tmp_path: Path) -> None:
    seen, logged = seen_on_a_disk(tmp_path, "full_disk.py")
    assert seen["acknowledged"] >= 1000
    assert seen["position"] == seen["acknowledged"]
    assert seen["known"]
    assert seen["findings"] == []
    assert seen["before"] == "NOT_SERVING"
    assert "no space left" in seen["told"]
    assert seen["after"] == "SERVING"
    assert "Traceback" not in logged
    assert "health is NOT_SERVING" in logged


def test_a_disk_that_turns_read_only_costs_nothing_acknowledged_and_heals(tmp_path: Path) -> None:
    seen, logged = seen_on_a_disk(tmp_path, "read_only_disk.py")
    if "skipped" in seen:
        pytest.skip(seen["skipped"])
    assert seen["shown"], "the mount is read-only"
    for kind, sentence in (*seen["refused"], seen["started"], seen["asked"]):
        assert kind == "StorageReadOnly"
        assert sentence.startswith(f"the disk of {tmp_path / 'league.db'} takes no writes (")
        assert sentence.endswith(
            "mount it for writing or move the run; nothing acknowledged is lost"
        )
    assert seen["trouble"] == seen["refused"][0][1]
    assert seen["reads"] == 100, "questions are answered as before"
    assert seen["health"] == ["NOT_SERVING", "NOT_SERVING", "SERVING"]
    assert (seen["position"], seen["twice"]) == (300, 0), (
        "the report that was refused is taken, once"
    )
    assert seen["untouched"], "a start that is refused leaves the files as they were"
    assert (seen["again"], seen["known"]) == (300, True)
    assert seen["findings"] == []
    assert "Traceback" not in logged
    assert "health is NOT_SERVING: the disk of" in logged
