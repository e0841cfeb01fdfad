"""The learner as a process against a real matchmaker: publishes, reports, survives kill -9,
stops in time.
"""

import csv
import re
import signal
import sqlite3

import pytest
from learner_process import matchmaker, snapshots
from ports import free_port
from waiting import wait_for

from league.players import Book, Player, PlayerKind
from league.rpc.client import MatchmakerClient
from league.runs.blobs import BlobFolder


@pytest.mark.timeout(600)  # seven lives, on a machine that may be busy
def test_a_run_is_trained_finished_continued_and_kept_when_opponents_are_missing(
    server, start, tmp_path
):
    def learn(steps, *flags):
        return start(server.address, "--steps", str(steps), *flags).wait()

    with MatchmakerClient(server.address) as client:
        assert learn(1024) == 0
        (made,) = snapshots(client)
        assert (made.name, made.milestone) == ("main@1024", True)
        (worker,) = client.status().workers
        assert (worker.activity, worker.step, worker.open_leases) == ("done", 1024, 0)
        assert worker.metrics["progress/steps"] == 1024

        def reported():
            return sum(cell.games for cell in client.payoff(Book.TRAIN) if cell.row == "main")

        folder, games = tmp_path / "learner-main", reported()
        written = (folder / "behavior_metrics.csv").read_text().splitlines()
        assert len(written) - 1 >= games > 0  # self-play is in the file, never in the payoff
        assert list((folder / "tensorboard").iterdir())

        assert learn(1024) == 0
        assert snapshots(client) == [made], "a finished run that is started again changes nothing"
        assert reported() == games

        # One rollout, shorter than a match, whose matches end in the life after it.
        assert learn(1280) == 0
        assert learn(3584) == 0
        with sqlite3.connect(tmp_path / "league.db") as log:
            assert log.execute("SELECT count(*) FROM lost_results").fetchone()[0] == 0
        assert reported() > games
        played = {cell.column for cell in client.payoff(Book.TRAIN) if cell.row == "main"}
        assert {"constant", made.name} <= played

        for blob in (tmp_path / "blobs").glob("*.safetensors"):
            blob.unlink()
        assert learn(4352) == 0, "a missing opponent costs a match and not the run"
        assert client.status().open_leases == 0

        ghost = Player(
            name="ghost.reference-1", game="brawl", kind=PlayerKind.REFERENCE, digest="ab" * 32
        )
        client.register_players([ghost])
        stages, mixes = "[{name='past', mix='past'}]", "{past={reference=1.0}}"
        only_past = ("--set", f"curriculum.stages={stages}", "--set", f"matchmaker.mixes={mixes}")
        assert learn(6144, *only_past) == 2
        said = (tmp_path / "learner.log").read_text().splitlines()[-1]
        assert "ghost.reference-1" in said
        *_, kept = names = snapshots(client)
        assert kept.step > 4352
        assert kept.name in said
        assert BlobFolder(tmp_path / "blobs").has(kept.digest)
        assert client.status().open_leases == 0
        assert learn(kept.step + 256) == 0
        assert re.search(rf"continues .*\b{kept.step}\b", (tmp_path / "learner.log").read_text())
        assert [one.parent for one in names[1:]] == [one.name for one in names[:-1]]


def test_it_waits_for_its_matchmaker_continues_after_kill_9_and_obeys_sigterm(start, tmp_path):
    port = free_port()
    log, address = tmp_path / "learner.log", f"127.0.0.1:{port}"
    learner = start(address)
    wait_for(lambda: address in log.read_text())
    assert learner.poll() is None
    with matchmaker(tmp_path, port), MatchmakerClient(address) as client:
        wait_for(lambda: snapshots(client))
        learner.kill()
        learner.wait()
        before = [player.name for player in snapshots(client)]
        learner = start(address, "--steps", "1000000")
        wait_for(lambda: len(snapshots(client)) > len(before))
        known = len(snapshots(client))
        learner.send_signal(signal.SIGTERM)
        assert learner.wait() == 0
        names = [player.name for player in snapshots(client)]
        assert len(names) > known
        assert names[: len(before)] == before
        assert len(names) == len(set(names))
        assert client.status().open_leases == 0
    assert re.search(r"continues from\D*\d+", log.read_text())
    with open(tmp_path / "learner-main" / "reward_breakdown.csv", newline="") as file:
        steps = [int(row["step"]) for row in csv.DictReader(file)]
    assert steps == sorted(set(steps))
