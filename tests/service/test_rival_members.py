"""Rivals in a league: added by a command, drawn, rated by an evaluator, and removed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_league import Live, asking, make_run, rows, served
from evaluating import running
from evaluator_league import games, matchmaker_of, register_snapshot, write_config
from ratings_league import pair
from rival_files import CYCLES, RUNS_RIGHT, predicts, stored
from small_league import played, report, rival, small_league
from waiting import wait_for

from league.cli.main import main
from league.errors import AlreadyExists, InvalidInput, NotFound, Refused
from league.players import Book, Pairing, Player, PlayerKind, PlayerState
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder
from league.views.dashboard.arena import HUMAN, Arena
from league.views.dashboard.pages import standings
from league.views.dashboard.source import Source
from matchmaker.acts.report import FAILED_IN_A_ROW
from matchmaker.main import MatchmakerServer
from matchmaker.tools.fsck import full_scan

SLEEP = "from time import sleep"
ACTIVE, RETIRED = PlayerState.ACTIVE, PlayerState.RETIRED


def state(client: MatchmakerClient, name: str) -> PlayerState:
    return next(player.state for player in client.players() if player.name == name)


@pytest.mark.parametrize("category", ["rivals", "other"])
def test_a_mix_draws_rivals_until_they_are_removed(tmp_path: Path, category: str) -> None:
    with small_league(tmp_path, mixes={"league": {category: 1.0, "based": 1.0}}) as league:
        client, incarnation = league.client, league.open()

        def met() -> dict[str, str]:
            assignments, _, _ = league.play(incarnation, 60)
            return {match.opponent.name: match.category for match in assignments}

        assert met() == {"based": "based"}
        assert client.add_rival(rival("other"), "anna@desk") is ACTIVE
        assert client.add_rival(rival("other"), "anna@desk") is ACTIVE, "it may be repeated"
        assert met() == {"based": "based", "other": category}
        assert client.remove_rival("other", "anna@desk") is RETIRED
        assert met() == {"based": "based"}
        assert client.add_rival(rival("other"), "bert@desk") is ACTIVE
        assert met() == {"based": "based", "other": category}
        with league.server.store.read() as reader:
            told = reader.events_of("player_retired", "player_returned")
            assert list(full_scan(reader)) == []
        assert [event.text for event in told] == [
            "anna@desk removes other from the league",
            "bert@desk returns other to the league",
        ]


def test_a_removed_rival_is_not_among_the_ratings_and_marked_in_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_league(tmp_path) as league:
        league.client.add_rival(rival("friend"), "anna@desk")
        pair(league, "friend", "based", 2)
        ask = asking(Live(league.server.address, {}), capsys)
        files = [("leaderboard", "export", "--format", kind) for kind in ("html", "md")]
        for is_gone in (False, True):
            names = [row["player"] for row in rows(ask("ratings"))]
            assert ("friend" in names, "based" in names) == (not is_gone, True)
            assert ["removed" in ask(*words) for words in files] == [is_gone] * 2
            if not is_gone:
                league.client.remove_rival("friend", "anna@desk")


def test_only_rivals_are_added_and_removed(tmp_path: Path) -> None:
    with small_league(tmp_path) as league:
        client = league.client
        client.add_rival(rival("other"), "anna@desk")
        with pytest.raises(InvalidInput, match="bin/league add"):
            client.register_players([rival("third")])
        for player in (
            Player(name="bot", game="brawl", kind=PlayerKind.BOT),
            rival("snapshots"),
            Player(name="empty", game="brawl", kind=PlayerKind.RIVAL),
        ):
            with pytest.raises(InvalidInput):
                client.add_rival(player, "anna@desk")
        with pytest.raises(AlreadyExists, match="other"):
            client.add_rival(
                Player(name="other", game="brawl", kind=PlayerKind.RIVAL, digest=64 * "0"), ""
            )
        with pytest.raises(AlreadyExists, match="based"):
            client.add_rival(rival("based"), "")
        with pytest.raises(InvalidInput, match="based is a bot"):
            client.remove_rival("based", "")
        with pytest.raises(NotFound):
            client.remove_rival("nobody", "")
        client.quarantine("other", "odd", "")
        with pytest.raises(Refused, match="quarantine"):
            client.remove_rival("other", "")
        client.release_player("other", "")
        client.remove_rival("other", "")
        with pytest.raises(InvalidInput, match="removed already"):
            client.remove_rival("other", "")


def test_a_rival_that_always_fails_is_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixes = {"league": {"rivals": 1.0}, "bots": {"based": 1.0}}
    with small_league(tmp_path, mixes=mixes) as league:
        client, incarnation = league.client, league.open()
        client.add_rival(rival("other"), "anna@desk")
        harm = "<script>harm()</script>"

        def play(count: int, *, failed: bool) -> PlayerState:
            assignments = client.acquire_matches(incarnation, count, "league")
            results = [
                replace(played(match, 0.5), failed=failed, failure=harm if failed else "")
                for match in assignments
                if match.opponent.name == "other"
            ]
            assert len(results) == count
            report(league, incarnation, *results)
            return state(client, "other")

        evaluator = client.open_incarnation("evaluator-0").number
        pairing = Pairing(player="other", opponent="based", pairs=1, book=Book.EVAL, seed=1)
        for match in client.acquire_pairings(evaluator, [pairing]):
            seats = [
                replace(seat, stats={"late_decisions": 3.0} if seat.player == "other" else {})
                for seat in played(match).seats
            ]
            report(league, evaluator, replace(played(match), seats=(seats[0], seats[1])))
        assert play(FAILED_IN_A_ROW - 1, failed=True) is ACTIVE
        assert play(1, failed=False) is ACTIVE
        assert play(FAILED_IN_A_ROW - 1, failed=True) is ACTIVE
        assert play(2, failed=True) is PlayerState.QUARANTINED
        with league.server.store.read() as reader:
            (told,) = reader.events_of("player_quarantined")
            assert list(full_scan(reader)) == []
        assert told.text.startswith("the matchmaker puts other into quarantine: 50 matches")
        assert harm in told.text
        assert main(["status", "--address", client.address]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "other is in quarantine and not drawn. Its newest match failed: <script>" in said
        source = Source(client)
        page = "".join(standings.show_player(source, {"name": "other"}))
        source.close()
        assert "50 of its newest 50 matches failed. In its 2 clean matches 6 decisions were" in page
        assert "&lt;script&gt;harm" in page
        assert "<script>" not in page
        assert client.add_rival(rival("other"), "anna@desk") is PlayerState.QUARANTINED
        client.release_player("other", "anna@desk")
        assert play(FAILED_IN_A_ROW - 1, failed=True) is ACTIVE


@pytest.mark.long
def test_an_evaluator_rates_a_new_rival_and_new_snapshots_meet_it(tmp_path: Path) -> None:
    write_config(tmp_path)
    blobs = BlobFolder(tmp_path / "blobs")
    digest = stored(blobs, RUNS_RIGHT, tmp_path)
    broken = stored(blobs, predicts("1 / 0"), tmp_path)
    with matchmaker_of(tmp_path) as client:
        register_snapshot(client, tmp_path, 1000)
        for name, own in (("other", digest), ("broken", broken)):
            player = Player(name=name, game="brawl", kind=PlayerKind.RIVAL, digest=own)
            client.add_rival(player, "anna@desk")
        with running(client, tmp_path) as run:
            wait_for(lambda: games(client, Book.EVAL, "main@1000").get("other", 0) >= 10)
            register_snapshot(client, tmp_path, 2000, parent="main@1000")
            wait_for(lambda: sum(games(client, Book.EVAL, "main@2000").values()) >= 10)
            wait_for(lambda: run.evaluator.progress.is_idle)
            assert run.error is None
        rated = {rating.player.name: rating.games for rating in client.ratings(Book.EVAL)}
        assert rated["other"] >= 10
        assert "broken" not in rated
        failed = [line for line in client.matches(player="broken")[0] if line.failed]
        assert failed
        record = client.match(failed[-1].match_id)
        assert record.result is not None
        assert record.result.failure.startswith("the rival failed: ZeroDivisionError")


@pytest.mark.long
def test_no_other_match_of_an_evaluator_waits_for_a_slow_rival(tmp_path: Path) -> None:
    write_config(tmp_path)
    digest = stored(BlobFolder(tmp_path / "blobs"), predicts("sleep(0.4)", SLEEP), tmp_path)
    with matchmaker_of(tmp_path) as client:
        register_snapshot(client, tmp_path, 1000)
        slow = Player(name="slow", game="brawl", kind=PlayerKind.RIVAL, digest=digest)
        client.add_rival(slow, "anna@desk")
        with running(client, tmp_path) as run:
            wait_for(lambda: run.status().current == "slow")
            register_snapshot(client, tmp_path, 2000, parent="main@1000")
            wait_for(lambda: sum(games(client, Book.EVAL, "main@2000").values()) >= 10)
            assert "slow" not in games(client, Book.EVAL, "main@1000"), "its match goes on"
            wait_for(lambda: run.status().current == "slow")
            assert not run.status().drained, "its matches are in progress"
            assert run.error is None
        assert client.status().open_leases == 0


@pytest.mark.long
def test_the_command_adds_a_rival_that_other_commands_play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = tmp_path / "run", tmp_path / "agent.py"
    make_run(run)
    file.write_text(RUNS_RIGHT)
    bad = tmp_path / "bad.py"
    bad.write_text(predicts("raise ValueError('out of luck')"))
    at = ["--run-dir", str(run)]

    def call(*words: object, status: int = 0) -> str:
        assert main([*map(str, words), *at]) == status
        out = capsys.readouterr()
        return out.out if status == 0 else out.err

    assert "not running" in call("add", file, "--as", "other", "--trust", status=1)
    with served(run, read_only=False):
        refused = call("add", file, "--as", "other", status=2)
        assert "--trust" in refused
        assert "out of luck" in call("add", bad, "--as", "bad", "--trust", status=2)
        assert list((run / "blobs").glob("*.rival.zip")) == []
        assert main(["add", str(file), "--as", "other", "--trust", *at]) == 0
        told = capsys.readouterr().err
        assert "keeps rivals from your files, other programs, the network" in told
        *_, meets, lacks = told.splitlines()
        assert meets.endswith("main meets it from now on: none")
        assert lacks.endswith("bin/league mix set based.other=1 league.other=1")
        call("mix", "set", "league.other=1")
        assert main(["add", str(file), "--as", "other", "--trust", *at]) == 0
        *_, meets, lacks = capsys.readouterr().err.splitlines()
        assert meets.endswith("main meets it from now on: league")
        assert lacks.endswith("bin/league mix set based.other=1")
        (listed,) = [row for row in rows(call("players")) if row["kind"] == "rival"]
        assert (listed["player"], listed["state"]) == ("other", "active")
        assert "other" in call("demo", "other", "constant", "--seed", 3)
        assert "other" in call("record", "main", "other", "--matches", 2)
        scores = json.loads(call("eval", "main", "--against", "other", "--matches", 4, "--json"))
        assert "other" in json.dumps(scores)
        assert "other" in call("compare", "other", "constant", "--most", 4)
        small = ("learner.matches=4", "learner.n_steps=4", "learner.batch_size=16")
        sizes = [word for setting in small for word in ("--set", setting)]
        few = ["--steps", 64, "--tries", 1, "--matches", 4, "--json"]
        (exploit,) = json.loads(call("exploit", "other", *few, *sizes))
        assert exploit["victim"] == "other"
        assert [one["start"] for one in exploit["tries"]] == ["initial"]
        assert sum(exploit["tries"][0][key] for key in ("wins", "draws", "losses")) == 4
        assert "--placebo" in call("exploit", "other", "--placebo", status=2)
        assert "rival" in call("export", "other", "--out", tmp_path / "a.zip", status=2)
        (file, *_) = (run / "blobs").glob("*.safetensors")
        weights = shutil.copy(file, tmp_path)
        call("add", weights, "--as", "twin")
        (listed,) = [row for row in rows(call("players")) if row["player"].startswith("twin:")]
        assert (listed["kind"], listed["digest"]) == ("snapshot", file.stem[:12])
        assert listed["player"] in call("demo", listed["player"], "other")
        bad_weights = tmp_path / f"{64 * '0'}.safetensors"
        bad_weights.write_bytes(b"no weights")
        assert "damaged" in call("add", bad_weights, "--as", "bad", status=4)
        call("remove", "other")
        (listed,) = [row for row in rows(call("players")) if row["kind"] == "rival"]
        assert listed["state"] == "retired"


def test_a_rival_on_the_dashboard_decides_in_every_frame(tmp_path: Path) -> None:
    """Also if the run's networks decide in every fourth frame."""
    run = tmp_path / "run"
    make_run(run)
    write_config(run)
    digest = stored(BlobFolder(run / "blobs"), CYCLES, tmp_path)
    with (
        MatchmakerServer(db=run / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        client.add_rival(
            Player(name="other", game="brawl", kind=PlayerKind.RIVAL, digest=digest), "anna@desk"
        )
        source = Source(client, run_dir=run)
        assert Arena(source).settings().frame_skip == 4
        match = Arena(source).begin((HUMAN, "other"), is_rated=False)
        for frame in range(12):
            match.advance(np.zeros(10, np.uint8))
            (key,) = match.frame()["players"][1]["keys"]
            assert key == match.spec.action_names[frame % 10]
        match.close()
        source.close()


def test_a_person_plays_against_a_rival_on_the_dashboard(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run)
    blobs = BlobFolder(run / "blobs")
    with (
        MatchmakerServer(db=run / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        for name, text in (("other", RUNS_RIGHT), ("broken", predicts("1 / 0"))):
            digest = stored(blobs, text, tmp_path)
            player = Player(name=name, game="brawl", kind=PlayerKind.RIVAL, digest=digest)
            client.add_rival(player, "anna@desk")
        source, open_leases = Source(client, run_dir=run), client.status().open_leases
        arena, nothing = Arena(source), np.zeros(10, np.uint8)
        assert {"other", "broken"} <= set(arena.names())
        match = arena.begin((HUMAN, "other"), is_rated=True)
        places = set()
        while not match.is_over:
            places.add(match.frame()["players"][1]["x"])
            match.advance(nothing)
        assert len(places) > 50, "the rival runs"
        assert match.verdict == "It is rated."
        assert (run / "replays" / f"{match.replay}.replay").is_file()
        match.close()
        assert games(client, Book.EVAL, HUMAN) == {"other": 1}
        match = arena.begin(("broken", HUMAN), is_rated=True)
        with pytest.raises(InvalidInput, match="the rival failed: ZeroDivisionError"):
            match.advance(nothing)
        assert (match.is_over, match.replay) == (True, "")
        match.close()
        source.close()
        (line,) = client.matches(player="broken")[0]
        assert line.failed
        assert games(client, Book.EVAL, HUMAN) == {"other": 1}
        assert client.status().open_leases == open_leases
