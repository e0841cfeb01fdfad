"""A sweep on a running Ray cluster, in a namespace of the test's own."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from ray_nodes import RayNodes, can_enter, is_inside, run_inside

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
GAME = """
from league.games.registry import make_batched

def make(count, max_frames=None):
    return make_batched("matrix:rps", count, max_frames=max_frames)
"""
SPACE = """
extends = "board"

[game]
name = "python:my_game:make"

[learner]
steps = 1_024
matches = 64
n_steps = 4
batch_size = 128
snapshot_interval = 500

[evaluator]
nice = 0

[sweep]
learner.ent_coef = [0.0, 0.1]
"""


@pytest.mark.skipif(is_inside() or not can_enter(), reason="needs namespaces of its own")
def test_in_a_namespace() -> None:
    run_inside(__file__, "-m", "long")


@pytest.mark.skipif(not is_inside(), reason="runs in a namespace")
def test_nodes_of_a_joined_cluster_find_the_callers_game(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "my_game.py").write_text(GAME)
    (tmp_path / "space.toml").write_text(SPACE)
    words = [sys.executable, "-m", "league", "sweep", "space.toml", "--trials", "1", "--rungs", "1"]
    words += ["--matches", "10", "--out", "swept", "--engine", "ray"]
    with RayNodes() as nodes:
        nodes.start("head")
        nodes.wait()
        env = nodes.environment | {"KUMITE_PATH": str(tmp_path / "games")}
        swept = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert swept.returncode == 0, swept.stderr
    with (tmp_path / "swept" / "sweep.csv").open() as file:
        assert [row["state"] for row in csv.DictReader(file)] == ["done"]
