"""What the terminal view reports of a league that changes while it looks."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from admission_league import admission_league
from evaluator_league import register_bots_and_live
from exploiter_league import exploiter_league, loses_always, wins_always
from ratings_league import pair
from small_league import small_league, snapshot

from league.rpc.client import MatchmakerClient
from league.runs.alarms import Alarm
from league.views.terminal.reader import LeagueReader
from matchmaker.main import MatchmakerServer

FAST = {"refresh_seconds": 0.02, "table_seconds": 0.02}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def test_only_who_joins_while_it_looks_is_told(tmp_path: Path) -> None:
    """A continued run has snapshots, which joined before."""
    said: list[str] = []
    with small_league(tmp_path, snapshots=(1000, 2000)) as league:
        reader = LeagueReader(league.server.address, None, said.append, **FAST)
        reader.start()
        try:
            until(lambda: reader.facts.newest == "main@2000")
            league.client.register_players([snapshot(3000)])
            until(lambda: reader.facts.newest == "main@3000")
            reader.look_again(60)
        finally:
            reader.stop()
    assert said == ["main@3000 joined the league (3 active snapshots)."]


def test_an_alarm_of_the_learner_is_told_once_and_when_it_is_over(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        MatchmakerServer(db=tmp_path / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        learner = client.open_incarnation("learner-main", "main").number
        reader = LeagueReader(
            server.address,
            None,
            lambda text, is_trouble=False: said.append(f"trouble: {text}" if is_trouble else text),
            **FAST,
        )
        reader.start()
        try:
            for step, alarm in enumerate([{}, {"alarm/term_silent/combo": 500.0}, {}], 1):
                metrics = {"progress/steps": float(step), **alarm}
                client.heartbeat(learner, 1, step, "league", "rollout", metrics)
                until(lambda wanted=metrics: reader.facts.metrics == wanted)  # type: ignore[misc]
                reader.look_again(60)
        finally:
            reader.stop()
    about = [text for text in said if "combo" in text]
    assert about == [
        f"trouble: {Alarm('term_silent', 'combo', 500.0).sentence}",
        "No longer: combo never fires.",
    ]


def test_the_fit_is_found_anew_when_clean_matches_have_come(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        reader = LeagueReader(league.server.address, None, lambda text: None, **FAST)
        reader.start()
        try:
            reader.look_again(60)
            assert reader.facts.fit is None
            for one, other in (("based", "random"), ("based", "constant"), ("constant", "random")):
                pair(league, one, other, 4)
                until(lambda: sum(rating.games for rating in reader.facts.ratings) > 0)
                reader.look_again(60)
            fit = reader.facts.fit
        finally:
            reader.stop()
    assert fit is not None
    strength = [fit.intervals[name].estimate for name in ("based", "constant", "random")]
    assert strength == sorted(strength, reverse=True)
    assert fit.intervals.keys() == {"based", "constant", "random"}


def test_gates_and_patches_are_told_once_as_they_come(tmp_path: Path) -> None:
    said: list[str] = []
    with exploiter_league(tmp_path) as league:
        old = league.to_the_end(league.freeze(league.begin(), 500), wins_always)
        reader = LeagueReader(league.small.server.address, None, said.append, **FAST)
        reader.start()
        try:
            until(lambda: reader.facts.gates is not None)
            gate = league.to_the_end(league.freeze(league.begin(2), 900), loses_always)
            reader.look_again(60)
            reader.look_again(60)
        finally:
            reader.stop()
    assert old.candidate not in " ".join(said)
    (test,) = gate.victims
    why = f"it is too weak against main@2000 (0-0-{test.losses} against main@2000)"
    assert said == [f"{gate.candidate} is rejected: {why}."]


def test_mains_snapshots_are_told_when_their_gates_decide(tmp_path: Path) -> None:
    said: list[str] = []
    with admission_league(tmp_path) as league:
        reader = LeagueReader(league.small.server.address, None, said.append, **FAST)
        reader.start()
        try:
            until(lambda: reader.facts.newest == "main@1000")
            league.register(2000)
            reader.look_again(60)
            assert (reader.facts.newest, said) == ("main@1000", [])
            lost = league.decide("main@2000", loses_always).victims[0].losses
            league.register(2500)
            league.register(3000)  # before the other's gate has begun
            reader.look_again(60)
            won = league.decide("main@3000", wins_always).victims[0].wins
            until(lambda: reader.facts.newest == "main@3000")
            reader.look_again(60)
        finally:
            reader.stop()
    why = f"it is too weak against main@1000 (0-0-{lost} against main@1000)"
    assert said == [
        f"main@2000 is rejected: {why}.",
        f"main@3000 is admitted to the league ({won}-0-0 against main@1000).",
    ]
