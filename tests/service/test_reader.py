"""What the terminal view is told of a league that changes while it looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from small_league import small_league, snapshot

from league.cluster.reader import LeagueReader
from league.cluster.settings import SupervisorSettings


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def test_only_who_joins_while_it_looks_is_told(tmp_path: Path) -> None:
    """A run that goes on has snapshots: they joined long ago."""
    said: list[str] = []
    settings = SupervisorSettings(refresh_seconds=0.05, leaderboard_seconds=0.05)
    with small_league(tmp_path, snapshots=(1000, 2000)) as league:
        reader = LeagueReader(league.server.address, None, settings, said.append)
        reader.start()
        try:
            until(lambda: reader.facts.newest == "main@2000")
            league.client.register_players([snapshot(3000)])
            until(lambda: reader.facts.newest == "main@3000")
            reader.look_again(5)
        finally:
            reader.stop()
    assert said == ["main@3000 joined the league (3 active snapshots)."]
