"""PettingZoo's games learnt by the whole league in about a minute each: `pytest -m slow` runs
these.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.metrics import wilson_interval

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
STEPS = 100_000
NOTHING_HIDDEN = ("learner.ent_coef=0.02", "learner.ent_coef_final=0.005", "regularisation.alpha=0")
"""What docs/games.md advises for games in which one sees all."""


def against_random(folder: Path, name: str) -> tuple[int, int, int]:
    """Trains in `folder` as a user would; wins, draws and matches of the newest snapshot's clean
    matches.
    """
    words = ["--headless", "--cpu", "--preset", "board", "--steps", str(STEPS)]
    settings = [f"game.name=pettingzoo:pettingzoo.classic.{name}", *NOTHING_HIDDEN]
    words += [word for one in settings for word in ("--set", one)]
    command = [sys.executable, "-m", "league.cluster.main", *words]
    command += ["--run-dir", str(folder / name)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with (folder / name / "evaluator" / "evaluation_results.csv").open() as file:
        rows = [
            r for r in csv.DictReader(file) if r["opponent"] == "random" and r["book"] == "eval"
        ]
    last = max(rows, key=lambda row: int(row["step"]))
    assert int(last["step"]) >= STEPS
    wins, draws, matches = (int(last[column]) for column in ("wins", "draws", "matches"))
    interval = wilson_interval(wins, matches)
    print(
        f"\n{name}: {last['player']} won {wins}, drew {draws} of {matches} against uniform play, "
        f"{interval}"
    )
    return wins, draws, matches


@pytest.mark.parametrize("name", ["connect_four_v3", "tictactoe_v3"])
def test_a_game_of_skill_is_won_against_uniform_play(name: str, tmp_path: Path) -> None:
    wins, _, matches = against_random(tmp_path, name)
    assert matches >= 100
    assert wilson_interval(wins, matches).low > 0.5


def test_rock_paper_scissors_has_no_skill_against_uniform_play(tmp_path: Path) -> None:
    wins, draws, matches = against_random(tmp_path, "rps_v2")
    assert matches >= 100
    assert 0.4 < (wins + draws / 2) / matches < 0.6
