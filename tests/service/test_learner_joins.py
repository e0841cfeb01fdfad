"""`bin/learner` without flags joins the newest running league, under a name that is free."""

import os
import subprocess
import sys
import time

import pytest
from waiting import wait_for

from league.errors import NotFound
from league.rpc.client import MatchmakerClient
from league.runs.finding import live_address
from league.runs.folder import write_config
from league.settings.base import resolve
from learner import main

BATCH = ("learner.matches=4", "learner.n_steps=8", "learner.batch_size=16", "learner.n_epochs=1")


def league(folder, *assignments):
    """A running matchmaker whose run folder is `folder`."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    write_config(folder / "config.toml", resolve("smoke", None, [*BATCH, *assignments]))
    words = ["--db", str(folder / "league.db"), "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "matchmaker", *words, "--config", str(folder / "config.toml")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout.readline()
    return process


@pytest.fixture
def processes(tmp_path):
    started = []

    def learner(*flags):
        with open(tmp_path / "learner.log", "a") as log:
            command = [sys.executable, "-m", "learner", "--cpu", *flags]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            started.append(subprocess.Popen(command, cwd=tmp_path, stderr=log, env=environment))
        return started[-1]

    yield started, learner
    for process in started:
        process.kill()
        process.wait()


def test_it_joins_under_a_free_name_and_trains_with_the_runs_settings(tmp_path, processes):
    started, learner = processes
    run = tmp_path / "runs" / "new"
    started.append(league(tmp_path / "runs" / "old"))
    started.append(league(run, "supervisor.learners=[{name='main'}]"))
    os.utime(run / "run.json", (time.time() + 5, time.time() + 5))
    address = wait_for(lambda: live_address(run))
    with MatchmakerClient(address) as client:

        def at_work():
            workers = client.status().workers
            return {worker.worker: worker for worker in workers if worker.step > 0}

        learner("--steps", "100000")
        wait_for(lambda: "learner-main-2" in at_work())  # main belongs to the supervisor
        learner("--steps", "100000")
        workers = wait_for(lambda: len(found := at_work()) == 2 and found)
        assert set(workers) == {"learner-main-2", "learner-main-3"}
        assert client.status().open_leases <= 2 * (4 + 16), "four matches each, as config.toml says"
        taken = learner("--name", "main-2", "--steps", "100000")
        assert taken.wait() == 2
        assert at_work()["learner-main-2"].incarnation == workers["learner-main-2"].incarnation
    lines = (tmp_path / "learner.log").read_text().splitlines()  # of all three, as they come
    assert any("--name main-2" in line and "is running" in line for line in lines)


def test_it_says_when_all_its_steps_are_done_and_takes_the_next_name_then(
    tmp_path, processes, monkeypatch, capsys, caplog
):
    """In this process: what it says is the same, and three starts cost three seconds each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    caplog.set_level("INFO")
    (tmp_path / "runs" / "ended").mkdir(parents=True)
    (tmp_path / "runs" / "ended" / "run.json").write_text("{}")
    assert main.main(["--cpu"]) == NotFound.exit_code
    assert "bin/start-league" in capsys.readouterr().err

    processes[0].append(league(tmp_path / "runs" / "one", "supervisor.learners=[]"))
    wait_for(lambda: live_address(tmp_path / "runs" / "one"))
    words = ["--cpu", "--steps", "64"]
    assert main.main(words) == main.main(words) == main.main([*words, "--name", "main"]) == 0
    said = [record.getMessage() for record in caplog.records]
    joined = [one.rpartition(" ")[2] for one in said if one.startswith("joining the league")]
    assert joined == ["main", "main-2", "main"]
    assert any("main has made all its 64 steps" in one for one in said)
