"""What the terminal view reports of a league that changes while it looks."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from admission_league import admission_league
from evaluator_league import register_bots_and_live
from exploiter_league import exploiter_league, loses_always, wins_always
from ports import free_port
from small_league import snapshot
from waiting import PATIENCE, wait_for

from league.rpc.client import MatchmakerClient
from league.runs.alarms import Alarm
from league.views.reader import LeagueReader
from matchmaker.main import MatchmakerServer
from matchmaker.store.rows import BeatRow


@contextmanager
def reading(address: str, said: list[str]) -> Iterator[LeagueReader]:
    """A reader that has read the league's tables, and whose reports go to `said`."""

    def say(text: str, *, is_trouble: bool = False) -> None:
        said.append(f"trouble: {text}" if is_trouble else text)

    reader = LeagueReader(address, None, say, refresh_seconds=0.02, table_seconds=0.02)
    reader.start()
    try:
        reader.look_again(60)
        yield reader
        reader.look_again(60)
    finally:
        reader.stop()


def test_new_members_and_alarms_are_told_once_as_they_come(tmp_path: Path) -> None:
    """A continued run has snapshots, which joined before."""
    said: list[str] = []
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        client.register_players([snapshot(1000), snapshot(2000)])
        learner = client.open_incarnation("learner-main", "main").number
        with reading(server.address, said) as reader:
            assert reader.facts.newest == "main@2000"
            client.register_players([snapshot(3000)])
            wait_for(lambda: reader.facts.newest == "main@3000")
            for step, alarm in enumerate([{}, {"alarm/term_silent/combo": 500.0}, {}], 1):
                metrics = {"progress/steps": float(step), **alarm}
                client.heartbeat(learner, 1, step, "league", "rollout", metrics)
                wait_for(lambda wanted=metrics: reader.facts.metrics == wanted)  # type: ignore[misc]
    joined, opponents, trouble, over = said
    assert re.match(r"main@3000 .*\b3\b", joined)
    assert "league" in opponents
    assert trouble == f"trouble: {Alarm('term_silent', 'combo', 500.0).sentence}"
    assert "combo" in over


def test_a_look_waits_for_a_matchmaker_that_starts(tmp_path: Path) -> None:
    port = free_port()
    reader = LeagueReader(f"127.0.0.1:{port}", None, print, refresh_seconds=0.02)
    look = threading.Thread(target=reader.look_again, args=[PATIENCE])
    reader.start()
    try:
        look.start()
        wait_for(lambda: reader.looks > 3)
        assert reader.facts.trouble
        assert look.is_alive()
        with MatchmakerServer(db=tmp_path / "league.db", port=port):
            look.join()
        assert reader.facts.status is not None
    finally:
        reader.stop()


def test_a_continued_runs_target_is_what_its_learner_reports_now(tmp_path: Path) -> None:
    """The status before the stop had the target of then, which more `--steps` raise."""
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        learner = client.open_incarnation("learner-main", "main").number
        metrics = {"progress/steps": 5e6, "progress/target_steps": 5e6}
        client.heartbeat(learner, 1, 5_000_000, "league", "rollout", metrics)
        with reading(server.address, []) as reader:
            assert (reader.facts.steps, reader.facts.target_steps) == (5_000_000, 0)
            metrics = {"progress/steps": 5.1e6, "progress/target_steps": 8e6}
            client.heartbeat(learner, 2, 5_100_000, "league", "rollout", metrics)
            wait_for(lambda: reader.facts.target_steps == 8_000_000)


def test_numbers_that_can_not_be_shown_do_not_end_the_view(tmp_path: Path) -> None:
    """A log of an earlier version may hold any."""
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        learner = client.open_incarnation("learner-main", "main").number
        with reading(server.address, []) as reader:
            beat = BeatRow(learner, 1e10, 1, 1, "", "", '{"progress/steps": 1e999}')
            with server.store.write() as tx:
                tx.set_beat(beat)
            wait_for(lambda: "can't be shown" in reader.facts.trouble)
            client.heartbeat(learner, 2, 5, "league", "rollout", {"progress/steps": 5.0})
            wait_for(lambda: reader.facts.steps == 5)


def test_gates_of_exploiters_are_told_as_they_are_decided(tmp_path: Path) -> None:
    said: list[str] = []
    with exploiter_league(tmp_path) as league:
        league.to_the_end(league.freeze(league.begin(), 500), wins_always)
        with reading(league.small.server.address, said):
            gate = league.to_the_end(league.freeze(league.begin(2), 900), loses_always)
    assert said == [f"{gate.outcome}."]


def test_mains_snapshots_are_told_when_their_gates_decide(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        admission_league(tmp_path) as league,
        reading(league.small.server.address, said) as reader,
    ):
        league.register(2000)
        reader.look_again(60)
        assert (reader.facts.newest, said) == ("main@1000", [])
        lost = league.decide("main@2000", loses_always)
        reader.look_again(60)
        league.register(2500)
        league.register(3000)  # before the other's gate has begun
        reader.look_again(60)
        won = league.decide("main@3000", wins_always)
        wait_for(lambda: reader.facts.newest == "main@3000")
    assert said == [f"{lost.outcome}.", f"{won.outcome}."]
