"""A real disk that is really full, or read-only: a small one in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ports import give_ports

from league.errors import StorageReadOnly

REMOUNT = 'mount -o remount,ro "$1"'
MOUNT = 'mount -t tmpfs -o size={}m tmpfs "$1"'


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
        return in_namespace(MOUNT.format(1), folder).returncode == 0
    except OSError:
        return False


def seen_on_a_disk(folder: Path, program: str, megabytes: int = 3) -> tuple[dict[str, Any], str]:
    """What a program beside this file prints of a small disk at `folder`, and what it logs."""
    if not can_mount(folder):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    file = Path(__file__).with_name(program)
    shell = f'{MOUNT.format(megabytes)} && exec "$2" "$3" "$1"'
    done = in_namespace(shell, folder, sys.executable, file)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_full_disk_costs_nothing_acknowledged_and_heals(tmp_path: Path) -> None:
    seen, logged = seen_on_a_disk(tmp_path, "full_disk.py")
    assert seen["acknowledged"] >= 1000
    assert seen["position"] == seen["acknowledged"]
    assert seen["known"]
    assert seen["findings"] == []
    assert seen["before"] == "NOT_SERVING"
    assert str(tmp_path / "league.db") in seen["told"]
    assert seen["leased"] == 200, "a call that waits is answered when there is space"
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
        assert str(tmp_path / "league.db") in sentence
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
    assert "NOT_SERVING" in logged


@pytest.mark.long
def test_a_learner_waits_for_space_and_loses_nothing(tmp_path: Path) -> None:
    seen, logged = seen_on_a_disk(tmp_path, "learner_disk.py", 64)
    assert seen["code"] == 0, logged
    assert seen["step"] > seen["waited_at"]
    assert seen["lives"] == 1
    assert seen["lost_results"] == 0
    assert seen["rows"] == seen["results"], "its files lack no match"


def test_a_start_on_a_read_only_disk_is_one_sentence(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    start = (sys.executable, "-m", "league.cluster.main", "--cpu", "--preset", "smoke")
    shell = f'{MOUNT.format(1)} && {REMOUNT} && cd "$1" && shift && exec "$@"'
    done = in_namespace(shell, tmp_path, *start)
    assert done.returncode == StorageReadOnly.exit_code
    assert done.stderr.startswith("start-league: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_a_matchmaker_that_restarts_on_a_read_only_disk_ends_the_run(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    start = (sys.executable, "-m", "league.cluster.main", "--cpu", "--preset", "smoke")
    flags = ("--headless", "--no-learners", "--set", "supervisor.evaluators=0")
    shell = """cd "$1"; shift; "$@" --run-dir run > out 2> err & run=$!
    until grep -qs "^ready" run/logs/matchmaker.log; do
        kill -0 $run && sleep 0.1 || exit 9
    done
    mount --bind run/league.db run/league.db && mount -o remount,bind,ro run/league.db
    for pid in $(cat /proc/$run/task/$run/children); do
        grep -q matchmaker /proc/$pid/cmdline && kill -9 $pid
    done
    wait $run"""
    give_ports(tmp_path / "run")
    done = in_namespace(shell, tmp_path, *start, *flags)
    said = (tmp_path / "err").read_text()
    assert done.returncode == StorageReadOnly.exit_code, said
    assert said.startswith("start-league: matchmaker ")
    assert said.count("\n") == 1


def test_the_supervisor_says_when_the_disk_is_nearly_full(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this system lets nobody mount a disk of their own (unshare --mount)")
    start = (
        sys.executable,
        "-m",
        "league.cluster.main",
        "--cpu",
        "--preset",
        "smoke",
        "--headless",
    )
    flags = ("--no-learners", "--set", "supervisor.evaluators=0", "--run-dir", tmp_path / "run")
    seen = 'until grep -q "are left on the disk" out; do kill -0 $run && sleep 0.1 || exit 9; done'
    shell = f'{MOUNT.format(32)}; cd "$1"; shift; "$@" > out & run=$!; {seen}; kill -INT $run'
    shell += "; wait $run"
    assert in_namespace(shell, tmp_path, *start, *flags).returncode == 0
