"""A real disk that is really full: a small one in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MOUNT = 'mount -t tmpfs -o size=3m tmpfs "$1"'


def in_namespace(command: str, *words: object) -> subprocess.CompletedProcess[str]:
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command, "sh", *map(str, words)]
    return subprocess.run(shell, capture_output=True, text=True, check=False, timeout=150)


def can_mount(folder: Path) -> bool:
    try:
        return in_namespace(MOUNT, folder).returncode == 0
    except OSError:
        return False


def test_a_full_disk_costs_nothing_acknowledged_and_heals(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    program = Path(__file__).with_name("full_disk.py")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    done = in_namespace(f'{MOUNT} && exec "$2" "$3" "$1"', tmp_path, sys.executable, program)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["acknowledged"] >= 1000
    assert seen["position"] == seen["acknowledged"]
    assert seen["known"]
    assert seen["findings"] == []
    assert seen["before"] == "NOT_SERVING"
    assert "no space left" in seen["told"]
    assert seen["after"] == "SERVING"
    assert "Traceback" not in done.stderr
    assert "health is NOT_SERVING" in done.stderr
