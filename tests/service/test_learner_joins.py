"""`bin/learner` without flags joins the newest running league, under a name that is free."""

import os
import time
from contextlib import ExitStack, contextmanager

import pytest
from learner_process import ForkedLearner
from waiting import wait_for

from league.errors import NotFound
from league.rpc.client import MatchmakerClient
from league.runs.folder import write_config
from league.settings.base import resolve
from learner import main
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

BATCH = ("learner.matches=4", "learner.n_steps=8", "learner.batch_size=16", "learner.n_epochs=1")


@contextmanager
def league(folder, *assignments):
    """A running matchmaker whose run folder is `folder`."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    sections = resolve("smoke", None, [*BATCH, *assignments])
    write_config(folder / "config.toml", sections)
    settings = MatchmakerSettings.of(sections)
    with MatchmakerServer(db=folder / "league.db", port=0, settings=settings) as server:
        yield server.address


@pytest.fixture
def learn(monkeypatch):
    """Runs a learner in this process."""
    monkeypatch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    return lambda *flags: main.main(["--cpu", *flags])


@pytest.mark.long
def test_it_joins_under_a_free_name_and_trains_with_the_runs_settings(tmp_path, learn, capsys):
    run = tmp_path / "runs" / "new"
    with (
        league(tmp_path / "runs" / "old"),
        league(run, "supervisor.learners=[{name='main'}]") as address,
        MatchmakerClient(address) as client,
        ExitStack() as started,
    ):
        os.utime(run / "run.json", (time.time() + 5, time.time() + 5))

        def join(*flags):
            words = ["--cpu", "--steps", "100000", *flags]
            process = ForkedLearner(words, tmp_path / "learner.log", 120.0, tmp_path)
            started.callback(process.wait)
            started.callback(process.kill)

        def at_work():
            workers = client.status().workers
            return {worker.worker: worker for worker in workers if worker.step > 0}

        join()
        wait_for(lambda: "learner-main-2" in at_work())  # main belongs to the supervisor
        assert client.status().open_leases <= 4 + 16, "four matches, as config.toml says"
        join("--ranks", "2")
        workers = wait_for(lambda: len(found := at_work()) == 2 and found)
        assert set(workers) == {"learner-main-2", "learner-main-3"}
        assert learn("--name", "main-2", "--steps", "100000") == 2
        assert at_work()["learner-main-2"].incarnation == workers["learner-main-2"].incarnation
    assert "--name main-2" in capsys.readouterr().err


def test_it_says_when_all_its_steps_are_done_and_takes_the_next_name_then(
    tmp_path, learn, capsys, caplog
):
    caplog.set_level("INFO")
    (tmp_path / "runs" / "ended").mkdir(parents=True)
    (tmp_path / "runs" / "ended" / "run.json").write_text("{}")
    assert learn() == NotFound.exit_code
    assert "bin/start-league" in capsys.readouterr().err

    with league(tmp_path / "runs" / "one", "supervisor.learners=[]"):
        words = ("--steps", "64")
        assert learn(*words) == learn(*words) == learn(*words, "--name", "main") == 0
    said = [record.getMessage() for record in caplog.records]
    joined = [one.rpartition(" ")[2] for one in said if one.startswith("joining the league")]
    assert joined == ["main", "main-2", "main"]
    assert any("main " in one and " 64 steps" in one for one in said)
