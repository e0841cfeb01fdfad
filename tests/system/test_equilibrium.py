"""The preset `board` comes near an equilibrium of Kuhn's poker: `pytest -m slow` runs this."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_average_of_a_league_in_kuhn_is_hard_to_exploit(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def ran(module: str, *words: str) -> str:
        command = [sys.executable, "-m", module, *words, "--run-dir", str(tmp_path / "run")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    words = ["--headless", "--cpu", "--preset", "board", "--set", "game.name=kuhn"]
    ran("league.cluster.main", *words, "--steps", "200000")
    average = json.loads(ran("league", "exploitability", "main@average", "--json"))
    assert average["player"] == "main@average"
    assert average["nash_conv"] < 0.15, "uniform play has 0.917"
