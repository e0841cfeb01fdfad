"""The learner as a process against a real matchmaker: publishes, reports, survives kill -9,
stops in time.
"""

import signal
import sqlite3
import time

import pytest
from learner_process import learners, matchmaker, snapshots, wait_for

from league.players import Book, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder


@pytest.fixture
def server(tmp_path):
    with matchmaker(tmp_path) as running:
        yield running


@pytest.fixture
def start(tmp_path):
    with learners(tmp_path) as begin:
        yield begin


def test_a_learner_trains_publishes_and_reports(server, start, tmp_path):
    learner = start(server.address, "--steps", "3072")
    assert learner.wait(timeout=150) == 0
    with MatchmakerClient(server.address) as client:
        made = snapshots(client)
        assert [player.name for player in made][-1] == "main@3072"
        assert made[-1].milestone
        assert [player.parent for player in made[1:]] == [player.name for player in made[:-1]]
        assert all(BlobFolder(tmp_path / "blobs").has(player.digest) for player in made)
        (worker,) = client.status().workers
        assert (worker.activity, worker.step, worker.open_leases) == ("done", 3072, 0)
        assert worker.metrics["progress/steps"] == 3072
        played = {cell.column for cell in client.payoff(Book.TRAIN) if cell.row == "main"}
        assert {"constant", made[0].name} <= played
        reported = sum(cell.games for cell in client.payoff(Book.TRAIN) if cell.row == "main")
    folder = tmp_path / "learner-main"
    written = (folder / "behavior_metrics.csv").read_text().splitlines()
    assert len(written) - 1 >= reported > 0  # self-play is in the file, never in the payoff
    assert list((folder / "tensorboard").iterdir())


def test_kill_at_any_time_and_the_run_goes_on_from_its_checkpoint(server, start, tmp_path):
    learner = start(server.address)
    with MatchmakerClient(server.address) as client:
        wait_for(lambda: len(snapshots(client)) >= 2)
        learner.kill()
        learner.wait()
        before = [player.name for player in snapshots(client)]
        learner = start(server.address)
        assert learner.wait(timeout=150) == 0
        names = [player.name for player in snapshots(client)]
        assert names[: len(before)] == before
        assert names[-1] == "main@6144"
        assert len(names) == len(set(names)) == 6
        assert client.status().open_leases == 0
    assert "continues from step" in (tmp_path / "learner.log").read_text()
    steps = [
        int(line.split(",")[0])
        for line in _rows(tmp_path / "learner-main" / "reward_breakdown.csv")
    ]
    assert steps == sorted(set(steps))


def _rows(path):
    return path.read_text().splitlines()[1:]


def test_starting_a_finished_run_again_changes_nothing(server, start, tmp_path):
    for _ in range(3):
        assert start(server.address, "--steps", "1024").wait(timeout=150) == 0
    with MatchmakerClient(server.address) as client:
        assert [player.name for player in snapshots(client)] == ["main@1024"]
        games = sum(cell.games for cell in client.payoff(Book.TRAIN))
        assert start(server.address, "--steps", "1536").wait(timeout=150) == 0
        assert sum(cell.games for cell in client.payoff(Book.TRAIN)) >= games > 0


def test_a_resumed_run_that_stops_before_a_match_ended_keeps_its_results(server, start, tmp_path):
    for steps in ("1024", "1280", "1536"):  # the second life is one rollout, shorter than a match
        assert start(server.address, "--steps", steps).wait(timeout=150) == 0
    with sqlite3.connect(tmp_path / "league.db") as log:
        assert log.execute("SELECT count(*) FROM results").fetchone()[0] > 0
        assert log.execute("SELECT count(*) FROM lost_results").fetchone()[0] == 0


def test_a_missing_opponent_costs_a_match_and_not_the_run(server, start, tmp_path):
    assert start(server.address, "--steps", "2048").wait(timeout=150) == 0
    for blob in (tmp_path / "blobs").glob("*.safetensors"):
        blob.unlink()
    assert start(server.address, "--steps", "4096").wait(timeout=150) == 0
    with MatchmakerClient(server.address) as client:
        assert snapshots(client)[-1].name == "main@4096"
        assert client.status().open_leases == 0


def test_without_any_playable_opponent_it_ends_with_a_sentence_and_keeps_what_it_has_learnt(
    server, start, tmp_path
):
    assert start(server.address, "--steps", "1024").wait(timeout=150) == 0
    gone = Player(
        name="ghost.reference-1", game="brawl", kind=PlayerKind.REFERENCE, digest="ab" * 32
    )
    with MatchmakerClient(server.address) as client:
        client.register_players([gone])
    stages, mixes = "[{name='past', mix='past'}]", "{past={reference=1.0}}"
    only_past = ["--set", f"curriculum.stages={stages}", "--set", f"matchmaker.mixes={mixes}"]
    assert start(server.address, "--steps", "4096", *only_past).wait(timeout=150) == 2
    said = (tmp_path / "learner.log").read_text().splitlines()[-1]
    assert "ghost.reference-1" in said
    with MatchmakerClient(server.address) as client:
        kept = snapshots(client)[-1]
        assert kept.step > 1024
        assert f"(it continues from {kept.name})" in said
        assert BlobFolder(tmp_path / "blobs").has(kept.digest)
        assert client.status().open_leases == 0
    assert start(server.address, "--steps", str(kept.step + 256)).wait(timeout=150) == 0
    assert f"continues from step {kept.step}" in (tmp_path / "learner.log").read_text()


def test_sigterm_leaves_a_snapshot_and_exit_code_0_within_6_seconds(server, start, tmp_path):
    learner = start(server.address, "--steps", "1000000")
    with MatchmakerClient(server.address) as client:
        wait_for(lambda: snapshots(client))
        known = len(snapshots(client))
        asked = time.monotonic()
        learner.send_signal(signal.SIGTERM)
        assert learner.wait(timeout=30) == 0
        assert time.monotonic() - asked < 6
        assert len(snapshots(client)) > known
        assert client.status().open_leases == 0


def test_a_learner_starts_from_a_snapshot_of_the_league(server, start, tmp_path):
    assert start(server.address, "--steps", "1024").wait(timeout=150) == 0
    other = start(server.address, "--steps", "512", "--name", "second", "--from", "main@1024")
    assert other.wait(timeout=150) == 0
    with MatchmakerClient(server.address) as client:
        child = snapshots(client)[-1]
        assert (child.name, child.parent) == ("second@512", "main@1024")
    words = ("--steps", "512", "--name", "second", "--from", "main@1024")
    assert start(server.address, *words).wait(timeout=60) == 2
    log = (tmp_path / "learner.log").read_text()
    assert f"--from main@1024: second in {tmp_path} has made steps already; leave --from out" in log
    assert start(server.address, *words, "--if-new").wait(timeout=60) == 0
    elsewhere = ("--run-dir", str(tmp_path / "other"), "--name", "third", "--from", "main@1024")
    assert start(server.address, *elsewhere).wait(timeout=60) == 2
    log = (tmp_path / "learner.log").read_text()
    assert f"{tmp_path / 'other' / 'blobs'}: --run-dir" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--from", "nobody"], "--from nobody: neither a member of this league nor a file"),
        (["--set", "learner.learning_rat=1"], "did you mean 'learning_rate'?"),
        (
            ["--set", "curriculum.stages=[{name='x', mix='nowhere'}]"],
            "lacks: it has based, constant, league",
        ),
        (
            ["--set", "curriculum.stages=[{name='x', mix='league', reward='y'}]"],
            "no reward preset 'y'",
        ),
    ],
)
def test_bad_input_is_one_sentence(server, start, tmp_path, flags, sentence):
    assert start(server.address, *flags).wait(timeout=120) != 0
    log = (tmp_path / "learner.log").read_text()
    assert sentence in log
    assert "Traceback" not in log


def test_a_learner_waits_for_its_matchmaker_and_says_so(start, tmp_path):
    learner = start("127.0.0.1:9")
    wait_for(lambda: "127.0.0.1:9" in (tmp_path / "learner.log").read_text())
    assert learner.poll() is None
