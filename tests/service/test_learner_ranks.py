"""A learner in two processes against a real matchmaker: one player, one log, one life."""

import csv
import os
import re
import signal
import sqlite3
from pathlib import Path

import pytest
import torch
from learner_process import snapshots
from waiting import wait_for

from league.rpc.client import MatchmakerClient
from learner.train.checkpoint import CheckpointFolder, parts_of


def ranks(learner):
    """Process ids of a learner's ranks, in their order: it forks them one after the other."""
    found = Path(f"/proc/{learner.pid}/task/{learner.pid}/children").read_text().split()
    return sorted(map(int, found))


def is_running(process):
    return Path(f"/proc/{process}").exists()


def query(folder, sql):
    with sqlite3.connect(f"file:{folder / 'league.db'}?mode=ro", uri=True) as log:
        return log.execute(sql).fetchall()


def rows(folder, name):
    with open(folder / "learner-main" / name, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@pytest.mark.long
def test_two_ranks_are_one_learner_also_when_one_of_them_is_killed(server, start, tmp_path):
    """With references, so that these too are agreed on and registered once."""
    held = ("regularisation.alpha=0.5", "regularisation.reference_interval=16")
    stage = "curriculum.stages=[{name='league', mix='league'}]"
    flags = [word for one in (*held, stage) for word in ("--set", one)]
    checkpoints = CheckpointFolder(tmp_path / "learner-main" / "checkpoints")
    learner = start(server.address, "--ranks", "2", "--steps", "1000000", *flags)
    with MatchmakerClient(server.address) as client:
        wait_for(lambda: snapshots(client))
        processes = ranks(learner)
        os.kill(processes[1], signal.SIGKILL)
        assert learner.wait() == 1
        wait_for(lambda: not any(map(is_running, processes)))
        last = (tmp_path / "learner.log").read_text().splitlines()[-1]
        assert f"rank 1 (process {processes[1]})" in last
        assert "signal 9" in last

        reached = checkpoints.read_newest()["algorithm"]["num_timesteps"]
        end = reached // 1024 * 1024 + 1536
        steps = ("--steps", str(end))
        assert start(server.address, "--ranks", "2", *steps, *flags).wait() == 0
        assert [player.step for player in snapshots(client)] == [*range(1024, end, 1024), end]
        (worker,) = client.status().workers
        assert (worker.activity, worker.step, worker.open_leases) == ("done", end, 0)
        assert worker.metrics["progress/steps"] == end
        # A decision lasts four frames, but for a match's last one.
        assert 0.95 < worker.metrics["progress/frames"] / (4 * end) <= 1
    kept = (
        "FROM results JOIN assignments USING (ordinal) "
        "WHERE position NOT IN (SELECT position FROM lost_results)"
    )
    reported = query(tmp_path, f"SELECT match_id {kept}")
    written = [row["match_id"] for row in rows(tmp_path, "behavior_metrics.csv")]
    assert sorted(written) == sorted(match_id for (match_id,) in reported)
    assert len(set(written)) == len(written)
    # Matches last 45 decisions, a rollout 16: all 16, of both ranks, end in the third rollout at
    # first.
    firsts = [row["step"] for row in rows(tmp_path, "monitor.csv")][:16]
    assert firsts == ["768"] * 16
    seats = [
        ended
        for seat in (0, 1)
        for ended in query(tmp_path, f"SELECT end_step{seat} {kept} AND seat{seat} = 'main'")
    ]
    ended_at = {step for (step,) in seats if step <= 1536}
    assert ended_at == {45 * 16, 90 * 16}, "steps of both ranks"
    assert query(tmp_path, "SELECT count(*) FROM incarnations") == [(2,)]
    (references,) = query(tmp_path, "SELECT count(*) FROM players WHERE kind = 'reference'")
    assert references == (1 + end // 1024,)  # at the start, and after every 16 of four a rollout
    first, second = parts_of(checkpoints.read_newest())
    assert len(first["environment"]["matches"]) == len(second["environment"]["matches"]) == 8
    assert not set(first["environment"]["matches"]) & set(second["environment"]["matches"])
    assert not torch.equal(first["algorithm"]["key_rng"], second["algorithm"]["key_rng"])
    carried = query(
        tmp_path, "SELECT count(*) FROM assignments WHERE incarnation = 2 AND replaces != ''"
    )
    assert carried >= [(16,)]
    # Each match that was carried on was finished in one life at most.
    twice = query(
        tmp_path,
        "SELECT count(*) FROM assignments old JOIN assignments new ON new.replaces = old.match_id "
        "JOIN results a ON a.ordinal = old.ordinal JOIN results b ON b.ordinal = new.ordinal "
        "WHERE a.position NOT IN (SELECT position FROM lost_results)",
    )
    assert twice == [(0,)]
    assert start(server.address, "--steps", str(end + 256), *flags).wait() == 0
    log = (tmp_path / "learner.log").read_text()
    assert "made by 2 ranks" in log
    assert re.search(rf"continues .*\b{end}\b", log)
