"""Workers that hang are reported and replaced."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from test_league import League, answered, assert_whole, dashboard

from league.rpc.client import MatchmakerClient

LIMITS = {"silent_seconds": 5.0, "hang_seconds": 12.0}
CALL_SECONDS = 5.0
SHORT = f"""
import functools, sys
from league.cluster import main
from league.rpc import channel
channel.CALL_SECONDS = {CALL_SECONDS}
main.Supervisor = functools.partial(main.Supervisor, **{LIMITS})
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_learner_that_hangs_is_reported_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUMITE_NO_DASHBOARD")
    flags = ("--preset", "smoke", "--steps", "1_000_000", "--set", "supervisor.evaluators=0")
    league = League(tmp_path / "run", *flags, program=("-c", SHORT))
    try:
        league.until(lambda: league.steps() >= 256)
        hung, matchmaker = league.pid("learner"), league.pid("matchmaker")
        unanswered = league.words.count("does not answer")
        os.kill(matchmaker, signal.SIGSTOP)  # no heartbeat comes in, and a look at the league fails
        league.until(lambda: league.words.count("does not answer") > unanswered)
        os.kill(matchmaker, signal.SIGCONT)
        reached = league.steps()
        league.until(lambda: league.steps() > reached)
        assert league.pid("learner") == hung
        where = urlsplit(dashboard(league))
        socket.create_connection((where.hostname, where.port), timeout=60).close()  # it listens
        league.until(lambda: answered(dashboard(league)) == 200)
        shown = league.pid("league.views.dashboard.main")
        with MatchmakerClient(str(league.announced("matchmaker")["address"])) as client:
            person = client.open_incarnation("dashboard")
            client.heartbeat(person, 0, activity="stopped")  # as it does after a person's match
        reached = league.steps()
        os.kill(hung, signal.SIGSTOP)
        league.until(lambda: re.search("learner-main .*heartbeat for 5 s", league.words))
        assert league.pid("learner") == hung, "it may come back"
        league.until(lambda: league.pid("learner") not in (0, hung))
        assert "learner-main ended (signal 9)" in league.words
        assert league.pid("league.views.dashboard.main") == shown, "nobody plays: it need not beat"
        league.until(lambda: league.steps() > reached)
        league.process.send_signal(signal.SIGINT)
        assert league.process.wait() == 0, league.words
        assert league.words.count("heartbeat for 12 s") == 1, "the new one beats"
    finally:
        league.process.kill()
        league.process.wait()
    assert_whole(league)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_learner_one_of_whose_ranks_hangs_is_reported_and_replaced(tmp_path: Path) -> None:
    """The others wait for it, and the heartbeats go on."""
    flags = ("--preset", "smoke", "--steps", "1_000_000", "--set", "supervisor.evaluators=0")
    league = League(tmp_path / "run", *flags, "--ranks", "2", program=("-c", SHORT))

    def rate() -> float:
        learner = league.learner()
        return learner.metrics.get("rate/steps_per_second", -1.0) if learner is not None else -1.0

    try:
        league.until(lambda: rate() > 0.0)
        launcher, reached = league.pid("learner"), league.steps()
        os.kill(ranks_of(launcher)[1], signal.SIGSTOP)
        league.until(lambda: rate() == 0.0)
        league.until(lambda: league.pid("learner") not in (0, launcher))
        assert re.search("learner-main .*progress for 12 s", league.words)
        league.until(lambda: league.steps() > reached and rate() > 0.0)
        league.process.send_signal(signal.SIGINT)
        assert league.process.wait(timeout=60) == 0, league.words
    finally:
        league.process.kill()
        league.process.wait()
    assert_whole(league)


def ranks_of(launcher: int) -> list[int]:
    """The processes that a learner's launcher has forked, in the order of their ranks."""
    task = Path(f"/proc/{launcher}/task/{launcher}/children")
    return [int(child) for child in task.read_text().split()]
