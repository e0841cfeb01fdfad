"""A league trains on a game that is played in worker processes, which are killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from test_game_server import SETTINGS
from test_league import League, assert_whole

MATCHES = 16
FLAGS = (
    *("game.name=leduc", "game.workers=2", f"learner.matches={MATCHES}"),
    *SETTINGS[1:],
)


def workers_of(learner: int) -> set[int]:
    """The game workers of a learner."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = (stat.parent / "cmdline").read_bytes().split(b"\0")
            parent = int(stat.read_text().rpartition(") ")[2].split()[1])
            if parent == learner and b"league.games.workers.serving" in words:
                found.add(int(stat.parent.name))
    return found


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_killed_worker_costs_its_matches_only(tmp_path: Path) -> None:
    words = [word for one in FLAGS for word in ("--set", one)]
    league = League(tmp_path / "run", "--preset", "board", *words, "--steps", "100_000_000")

    def failed() -> int:
        return len(league.query("SELECT 1 FROM results WHERE failed"))

    try:
        league.until(lambda: league.steps() > 2048)
        learner = league.pid("learner")
        assert failed() == 0
        for kills in range(1, 4):
            victim = min(workers_of(learner))
            os.kill(victim, signal.SIGKILL)
            league.until(lambda kills=kills: failed() >= kills * MATCHES // 2)
            reached = league.steps()
            league.until(lambda reached=reached: league.steps() > reached + 2048)
            league.until(lambda victim=victim: len(workers_of(learner) - {victim}) == 2)
        assert league.pid("learner") == learner
        assert failed() == 3 * MATCHES // 2
        reasons = league.query("SELECT DISTINCT failure FROM results WHERE failed")
        assert all("has died" in str(reason) for (reason,) in reasons)
        left = workers_of(learner)
        os.kill(learner, signal.SIGKILL)
        league.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
        league.until(lambda: league.pid("learner") not in (0, learner))
        league.process.send_signal(signal.SIGINT)
        assert league.process.wait() == 0, league.words
    finally:
        league.process.kill()
        league.process.wait()
    assert_whole(league)
