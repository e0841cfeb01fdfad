"""The dashboard's memory while a league goes on and people watch."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_league import make_run, result_of
from test_dashboard import apart, browsing, pytestmark, serving

from league.rpc.client import MatchmakerClient
from matchmaker.main import MatchmakerServer

__all__ = ["pytestmark"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat_while_events_come(tmp_path: Path) -> None:
    """Two tabs watch a league of 60 results a second; SOAK_SECONDS=3600 watches for an hour."""
    run_dir = tmp_path / "run"
    apart(make_run, run_dir)
    seconds = float(os.environ.get("SOAK_SECONDS", "14"))
    server = apart(lambda: MatchmakerServer(db=run_dir / "league.db", port=0).__enter__())
    with serving(run_dir) as address, browsing() as tab:
        tab.goto(address)
        tab.context.new_page().goto(f"{address}/leaderboard")
        own = next(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline")
                   if f"dashboard\0--run-dir\0{run_dir}" in path.read_text())  # fmt: skip
        taken, began = [], time.monotonic()
        with MatchmakerClient(server.address) as client, ThreadPoolExecutor(1) as executor:
            playing = executor.submit(play_on, client, began + seconds)
            while time.monotonic() < began + seconds:
                tab.wait_for_timeout(500)
                taken.append(resident(own))
            assert playing.result() > 20 * seconds
            shown = f"{client.status().log_position:,} results"
            tab.wait_for_selector(f"text={shown}")
    apart(server.__exit__, None, None, None)
    middle = len(taken) // 2
    assert max(taken[middle:]) < max(taken[:middle]) + 3, taken


def play_on(client: MatchmakerClient, until: float) -> int:
    """Reports six results every tenth of a second; returns how many."""
    number, count = client.open_incarnation("learner-main", "main").number, 0
    while time.monotonic() < until:
        matches = client.acquire_matches(number, 6, "league")
        verdicts, _ = client.report_results(number, [result_of(one) for one in matches])
        count += sum(verdict.accepted for verdict in verdicts)
        time.sleep(0.1)
    return count


def resident(pid: int) -> float:
    """MiB of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
