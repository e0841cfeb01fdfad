"""A sweep by Ray Tune: whole leagues, interrupted, killed and continued."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from league.settings.base import resolve

pytest.importorskip("ray")
SPACE = """
extends = "board"

[game]
name = "matrix:rps"

[learner]
steps = 8_192
matches = 64
n_steps = 4
batch_size = 128
snapshot_interval = 1_000

[evaluator]
nice = 0

[sweep]
learner.ent_coef = [0.0, 0.1]
"""
NAMESPACE = ["unshare", "-rn", "bash", "-c", 'ip link set lo up && exec "$@"', "-"]
"""Ray listens on the machine's addresses, so it gets a network without any."""


def begin(folder: Path, *flags: str, trials: int = 2, rungs: int = 2) -> subprocess.Popen[str]:
    words = [*NAMESPACE, sys.executable, "-m", "league", "sweep", "space.toml"]
    words += [
        "--trials",
        str(trials),
        "--rungs",
        str(rungs),
        "--matches",
        "20",
        "--out",
        "swept",
        *flags,
    ]
    (folder / "store").mkdir(exist_ok=True)
    store = f"file://{folder / 'store'}"  # which a single league may use
    # Ray keeps its token in the home folder
    env = {**os.environ, "HOME": str(folder), "KUMITE_CLUSTER__STORE": store}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, cwd=folder, env=env, text=True, **pipes)


def rungs(folder: Path) -> int:
    """The number of scores on disk."""
    files = (folder / "swept").glob("trial-*.json")
    return sum(len(json.loads(file.read_text())["rungs"]) for file in files)


def processes(folder: Path) -> list[str]:
    """Command lines of all processes that belong to the trials' leagues."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{folder / 'swept'}/trial-" in line:
            found.append(line)
    return found


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_trial_that_no_machine_can_hold_is_refused(tmp_path: Path) -> None:
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody have a network of their own (unshare --net)")
    (tmp_path / "space.toml").write_text(SPACE)
    _, err = (large := begin(tmp_path, "--cpus", "1000")).communicate()
    assert large.returncode == 2, err
    assert "1000" in err
    (token := tmp_path / ".ray" / "auth_token").chmod(0o644)
    _, err = (read_by_all := begin(tmp_path)).communicate()
    assert read_by_all.returncode == 2, err
    assert str(token) in err


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_sweep_that_was_interrupted_and_killed_is_continued(tmp_path: Path) -> None:
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody have a network of their own (unshare --net)")
    (tmp_path / "space.toml").write_text(SPACE)

    first = begin(tmp_path)
    wait_for(lambda: rungs(tmp_path) >= 1)
    assert processes(tmp_path)
    first.send_signal(signal.SIGINT)
    assert first.wait() == 130
    wait_for(lambda: not processes(tmp_path))
    scored = rungs(tmp_path)

    second = begin(tmp_path)
    wait_for(lambda: len(processes(tmp_path)) >= 3)
    learners = wait_for(lambda: [line for line in processes(tmp_path) if "-m learner" in line])
    assert all("--cpu" in line.split() for line in learners)
    os.kill(second.pid, signal.SIGKILL)
    second.wait()
    wait_for(lambda: not processes(tmp_path))
    assert rungs(tmp_path) >= scored

    other = begin(tmp_path, "--score", "rock")
    assert other.wait() == 2  # another score

    last = begin(tmp_path, "--write-preset", "best.toml")
    out, err = last.communicate()
    assert last.returncode == 0, err
    assert not processes(tmp_path)
    with (tmp_path / "swept" / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["state"] for row in rows} <= {"done", "stopped"}
    run = json.loads((tmp_path / "swept" / "trial-000" / "run.json").read_text())
    assert run["preset"] == "board"
    assert rows[0]["state"] == "done"
    assert rows[0]["steps"] == "8192"
    assert float(rows[0]["low"]) < float(rows[0]["score"]) < float(rows[0]["high"])
    assert out.splitlines()[1].split("\t")[0] == rows[0]["trial"]
    best = resolve(None, tmp_path / "best.toml", environment={})
    assert best["learner"]["ent_coef"] == float(rows[0]["learner.ent_coef"])
    assert best["game"]["name"] == "matrix:rps"
    assert oct((tmp_path / ".ray" / "auth_token").stat().st_mode)[-3:] == "600"


def pairs(folder: Path) -> list[dict[str, Any]]:
    """The final's pairs on disk."""
    file = folder / "swept" / "final.json"
    return json.loads(file.read_text())["pairs"] if file.exists() else []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_sweep_that_was_killed_in_its_final_plays_the_missing_pairs(tmp_path: Path) -> None:
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody have a network of their own (unshare --net)")
    (tmp_path / "space.toml").write_text(SPACE.replace("8_192", "2_048"))
    flags = "--average", "--final", "10000"
    first = begin(tmp_path, *flags, trials=3, rungs=1)
    wait_for(lambda: pairs(tmp_path) or first.poll() is not None)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    kept = pairs(tmp_path)
    assert 1 <= len(kept) < 3
    kept[0]["cell"]["draws"] += 1  # as the same matches would not count again
    (tmp_path / "swept" / "final.json").write_text(json.dumps({"pairs": kept}))

    last = begin(tmp_path, *flags, "--write-preset", "best.toml", trials=3, rungs=1)
    out, err = last.communicate()
    assert last.returncode == 0, err
    assert len(pairs(tmp_path)) == 3
    assert pairs(tmp_path)[: len(kept)] == kept
    with (tmp_path / "swept" / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    values = [float(row["final"]) for row in rows]
    assert values == sorted(values, reverse=True)
    assert sum(values) == pytest.approx(0.0, abs=1e-3)
    head, best = (line.split("\t") for line in out.splitlines()[:2])
    assert float(best[head.index("final")]) == values[0]
    assert "final" in (tmp_path / "best.toml").read_text()
