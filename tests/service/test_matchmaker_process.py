"""The real process: ready line, signals, ports, versions, and kill -9 in the middle of traffic."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from ports import free_port
from small_league import bot, live, played, small_league, snapshot

from league.errors import NotFound, Refused
from league.players import Book
from league.rpc.client import MatchmakerClient
from league.settings.base import resolve
from league.stats.ratings.table import FIRST_GAMES
from matchmaker.main import main
from matchmaker.tools.fsck import fsck


@contextmanager
def matchmaker(db, *flags, port=0):
    process = subprocess.Popen(
        [sys.executable, "-m", "matchmaker", "--db", str(db), "--port", str(port), *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def ready_port(process):
    line = process.stdout.readline()
    assert line.startswith("ready "), line + process.stderr.read()
    return int(line.split()[1])


def register(client):
    client.register_players([bot("constant"), bot("random"), bot("based"), live(), snapshot(1000)])


def test_sigterms_until_its_end_close_cleanly_and_a_new_file_is_said_to_be_new(tmp_path):
    db = tmp_path / "runs" / "league.db"
    for is_new in (True, False):
        with matchmaker(db) as process:
            with MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
                register(client)
                while process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    time.sleep(0.001)
                assert (f"{db} is a new league\n" in process.communicate()[1]) == is_new
            assert process.returncode == 0
    assert not db.with_name("league.db-wal").exists()
    assert fsck(db)[0] == []


def test_a_finished_run_is_served_read_only(tmp_path):
    db = tmp_path / "league.db"
    with small_league(tmp_path) as league:
        league.play(league.open(), 20)
        ratings = league.client.ratings(Book.TRAIN)
    before = db.read_bytes()
    with matchmaker(db, "--read-only") as process:
        with MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
            assert client.ratings(Book.TRAIN) == ratings
            assert client.status().log_position == 20
            assert len([event for event in client.watch() if event.kind == "result"]) == 20
            with pytest.raises(Refused, match="only reads"):
                client.open_incarnation("learner-main", "main")
            assert " result 20" in process.stderr.readline()
            with pytest.raises(Refused, match="only reads"):
                client.heartbeat(1, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert db.read_bytes() == before


def sentence(capsys, *arguments):
    """What a matchmaker that can't start says."""
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    assert code in (1, 2, 4)
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("matchmaker: ")
    return said.err


def test_what_it_can_not_start_on_is_one_sentence(tmp_path, capsys):
    db, config = tmp_path / "league.db", tmp_path / "config.toml"
    with small_league(tmp_path):
        assert str(db) in sentence(capsys, "--db", db, "--port", 0)
    config.write_text("[matchmaker]\nmax_savd = 3\n")
    typo = sentence(capsys, "--db", tmp_path / "new.db", "--config", config)
    assert typo.startswith(f"matchmaker: {config}: [matchmaker] ")
    assert "'max_savd'" in typo
    assert "'max_saved'" in typo


def test_it_takes_a_preset_as_the_learner_does(tmp_path, capsys):
    assert "'laptop'" in sentence(capsys, "--db", tmp_path / "a.db", "--preset", "labtop")
    with matchmaker(tmp_path / "league.db", "--preset", "laptop") as process:
        with MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
            register(client)
            incarnation = client.open_incarnation("learner-main", "main").number
            stages = resolve("laptop", environment={})["curriculum"]["stages"]
            for stage in stages:
                assert client.acquire_matches(incarnation, 1, stage["mix"])
        process.terminate()
        assert process.wait() == 0


def test_a_taken_port_is_one_sentence_and_leaves_nothing(tmp_path):
    new = tmp_path / "new" / "b.db"
    with (
        small_league(tmp_path) as league,
        matchmaker(new, port=league.server.port) as process,
    ):
        said, complaint = process.communicate()
        with matchmaker(new, "--metrics-port", str(league.server.port)) as other:
            assert "is taken" in other.communicate()[1]
        assert other.returncode == 1
    assert process.returncode == 1
    assert said == ""
    assert complaint.startswith(f"matchmaker: {league.server.address} ")
    assert complaint.count("\n") == 1
    assert not new.parent.exists()


@pytest.mark.parametrize("flags", [[], ["--read-only"]], ids=["write", "read"])
def test_a_log_in_a_folder_that_takes_no_files_is_told_with_advice(tmp_path, flags):
    """Only a user without a root's rights is refused there, as in a new namespace."""
    with small_league(tmp_path):
        pass
    (tmp_path / "league.db.lock").unlink()
    tmp_path.chmod(0o500)
    words = ["-m", "matchmaker", "--db", tmp_path / "league.db", "--port", "0", *flags]
    command = ["unshare", "--user", sys.executable, *map(str, words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        tmp_path.chmod(0o700)
    if done.stderr.startswith("unshare"):
        pytest.skip("this system lets nobody have a namespace of their own (unshare --user)")
    assert done.returncode == 1
    assert done.stderr.startswith(f"matchmaker: {tmp_path / 'league.db'} ")
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_kill_9_in_mid_traffic_loses_no_acknowledged_result(tmp_path):
    """A learner plays on through two kills; what was acknowledged is there, once, and rated."""
    db, port = tmp_path / "league.db", free_port()
    acknowledged: dict[str, int] = {}
    waits: list[str] = []
    kills = threading.Event()

    def play():
        with MatchmakerClient(f"127.0.0.1:{port}", wait_seconds=60, on_wait=waits.append) as client:
            register(client)
            incarnation = client.open_incarnation("learner-main", "main").number
            while not kills.is_set():
                matches = client.acquire_matches(incarnation, 16, "league")
                results = [
                    played(match, 1.0 if match.learner_seat == 0 else 0.0) for match in matches
                ]
                verdicts, _ = client.report_results(incarnation, results)
                client.heartbeat(incarnation, len(acknowledged) + 16, 1, "league")
                for verdict in verdicts:
                    assert verdict.accepted
                    acknowledged[verdict.match_id] = verdict.log_position

    failures = []
    worker = threading.Thread(target=lambda: _catching(play, failures))
    worker.start()
    for _ in range(2):
        with matchmaker(db, port=port) as process:
            ready_port(process)
            seen = len(acknowledged)
            while len(acknowledged) < seen + 100 and not failures:
                time.sleep(0.005)
            process.kill()
            process.wait()
    with matchmaker(db, port=port) as process:
        ready_port(process)
        kills.set()
        worker.join()
        assert failures == []
        findings, _ = fsck(db, f"127.0.0.1:{port}")
        assert findings == []
        with MatchmakerClient(f"127.0.0.1:{port}") as client:
            assert client.status().log_position == len(acknowledged)
            assert sum(r.games for r in client.ratings(Book.TRAIN)) == 2 * len(acknowledged)
    assert len(acknowledged) >= 200
    assert sorted(acknowledged.values()) == list(range(1, len(acknowledged) + 1))
    assert any(str(port) in text for text in waits)


def test_kill_9_keeps_all_that_ratings_depend_on(tmp_path):
    """An epoch, an anchor, a branch that was lost, what a snapshot inherited: the same bits
    afterwards.
    """
    db = tmp_path / "league.db"
    with matchmaker(db) as process:
        with MatchmakerClient(f"127.0.0.1:{ready_port(process)}") as client:
            register(client)
            incarnation = client.open_incarnation("learner-main", "main").number
            position = 0
            while position < FIRST_GAMES + 100:
                position = play_batch(client, incarnation, position)
            told = (event for event in client.watch() if '"book":"train"' in event.data_json)
            assert next(event for event in told if event.kind == "rating_epoch")
            client.pin_rating("based", 27.0, "anna")
            client.open_incarnation("learner-main", "main", 0, position - 50)
            client.register_players([snapshot(90_000, parent="main@1000")])
            before = [client.leaderboard(book) for book in Book]
        process.kill()
        process.wait()
    with matchmaker(db) as process:
        address = f"127.0.0.1:{ready_port(process)}"
        with MatchmakerClient(address) as client:
            after = [client.leaderboard(book) for book in Book]
            assert [board[:3] for board in after] == [board[:3] for board in before]
        assert fsck(db, address)[0] == []


def play_batch(client, incarnation, seed):
    rng = random.Random(seed)
    matches = client.acquire_matches(incarnation, 250, "league")
    results = [played(match, rng.choice((0.0, 0.5, 1.0))) for match in matches]
    return client.report_results(incarnation, results)[1]


def _catching(call, failures):
    try:
        call()
    except BaseException as error:
        failures.append(error)


def test_fsck_finds_what_is_broken_and_what_is_shown_wrongly(tmp_path):
    db = tmp_path / "league.db"
    with pytest.raises(NotFound, match=str(db)):
        fsck(db)
    with small_league(tmp_path) as league:
        league.play(league.open(), 5)
        address = league.server.address
        assert fsck(db, address)[0] == []
        league.server.league.view.tables[Book.TRAIN].fold("main", "based", 1.0)
        assert any("train" in finding for finding in fsck(db, address)[0])
        with league.server.store.read() as reader:
            league.server.league.view.load_fold(reader)
        league.open(checkpoint=2)
    findings, summary = fsck(db)
    assert findings == []
    for words in ("6 players", "5 matches assigned", "5 results", "3 results don't count"):
        assert words in summary
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE assignments SET lease_state = 'expired' WHERE ordinal = 1")
    assert len(fsck(db)[0]) == 1
