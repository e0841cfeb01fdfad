"""A league trains on a game that runs as a server, which is killed meanwhile."""

from __future__ import annotations

import re
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from game_servers import PIG, started
from ports import free_port
from test_league import League, assert_whole

SETTINGS = (
    *("learner.matches=16", "learner.n_steps=16", "learner.batch_size=64", "learner.n_epochs=1"),
    *("learner.snapshot_interval=2048", "evaluator.milestone_matches=4", "evaluator.nice=0"),
)


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_league_goes_on_when_its_game_comes_back_and_stops_while_it_is_away(
    tmp_path: Path,
) -> None:
    port = free_port()
    settings = (*SETTINGS, f"game.name=grpc:127.0.0.1:{port}")
    words = [word for one in settings for word in ("--set", one)]
    flags = ("--preset", "board", *words, "--steps", "1_000_000")
    with ExitStack() as stack:
        server, _ = stack.enter_context(started(PIG, port))
        league = League(tmp_path / "run", *flags)
        log = tmp_path / "run" / "logs" / "learner-main.log"

        def activity() -> str:
            learner = league.learner()
            return learner.activity if learner is not None else ""

        def waits(times: int) -> bool:
            return log.read_text().count("waiting for the game's server") >= times

        try:
            league.until(lambda: league.steps() > 0)
            learner = league.pid("learner")
            server.kill()
            server.wait()
            league.until(lambda: waits(1))
            said = "learner-main: .*the game's server.*127.0.0.1"
            league.until(lambda: bool(re.search(said, league.words)))
            reached = league.steps()
            server, _ = stack.enter_context(started(PIG, port))
            league.until(lambda: league.steps() > reached + 2048)
            assert league.pid("learner") == learner
            league.until(lambda: "learner-main: its game goes on" in league.words)
            server.send_signal(signal.SIGSTOP)
            league.until(lambda: waits(2))
            league.until(lambda: "the game's server" in activity())
            league.process.send_signal(signal.SIGINT)
            assert league.process.wait() == 0, league.words
        finally:
            league.process.kill()
            league.process.wait()
    assert "was killed" not in league.words
    (last,) = league.query("SELECT max(step) FROM players")
    assert league.query("SELECT max(step) FROM heartbeats") == [last], "its snapshot was saved"
    failures = {str(why) for (why,) in league.query("SELECT failure FROM results WHERE failed")}
    assert failures
    assert all("the game's server did not answer" in why for why in failures)
    assert_whole(league)
