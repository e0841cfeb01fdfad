"""A league of two mains, of which the main that hardly learns copies the other."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from waiting import wait_for

from league.contest.league import League
from league.errors import Unavailable
from league.players import PlayerKind
from league.population import MemberCopy
from league.runs.finding import live_address

SETTINGS = """
extends = "board"

[learner]
steps = 160_000
snapshot_interval = 4_000

[evaluator]
nice = 0

[supervisor]
learners = [
  { name = "good" },
  { name = "poor", set = ["learner.learning_rate=1e-7", "learner.learning_rate_final=none"] },
]

[matchmaker]
population_interval = 8_000
"""


def copies(run_dir: Path) -> tuple[MemberCopy, ...]:
    if live_address(run_dir) is None:
        return ()
    try:
        with League(run_dir=run_dir).connect() as client:
            return client.population().copies
    except Unavailable:
        return ()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_main_that_hardly_learns_copies_the_other_once(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(SETTINGS)
    run_dir = tmp_path / "run"
    words = [sys.executable, "-m", "league.cluster.main", "--headless", "--no-dashboard"]
    words += ["--config", "two.toml", "--run-dir", str(run_dir), "--cpu"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        first = wait_for(lambda: copies(run_dir) or (process.poll() is not None and ("ended",)))[0]
        assert isinstance(first, MemberCopy), "no main copied the other"
        assert first.player == "poor"
        assert first.source.startswith("good@")

        def child() -> str:
            """The first snapshot after the copy."""
            with League(run_dir=run_dir).connect() as client:
                own = client.players(kinds=[PlayerKind.SNAPSHOT])
            return next((one.name for one in own if one.parent == first.source
                         and one.name.startswith("poor")), "")  # fmt: skip

        assert wait_for(child)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    with League(run_dir=run_dir).connect() as client:
        made = [copy for copy in client.population().copies if copy.player == "poor"]
    newest = max((run_dir / "learner-poor" / "checkpoints").glob("step_*.pt"))
    saved = torch.load(newest, weights_only=True)["population"]
    assert saved["applied"] == made[-1].number
    assert saved["values"] == pytest.approx(dict(made[-1].values))
