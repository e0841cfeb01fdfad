"""`bin/league doctor --run-dir` whole: files, weights and clean matches of a run in one
diagnosis.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from trained_runs import UPDATES, all_score, rewrite, train, write_league

from league.cli.main import main
from league.players import PayoffCell
from learner.doctor import command
from learner.train.checkpoint import CheckpointFolder
from matchmaker.main import MatchmakerServer


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """In matches of three seconds no player hits twice in a row: a weight of `combo` would be
    warned of.
    """
    folder = tmp_path_factory.mktemp("runs") / "healthy"
    return write_league(train(folder, "game.reward_weights.combo=0"), wins=20)


@pytest.fixture
def run(healthy, tmp_path):
    """A copy of the healthy run, to be changed."""
    return shutil.copytree(healthy, tmp_path / "run")


@contextmanager
def served(run):
    """The run while its matchmaker serves it, as during a run."""
    announced = run / "matchmaker.json"
    with MatchmakerServer(db=run / "league.db", port=0, read_only=True) as server:
        announced.write_text(json.dumps({"address": server.address, "pid": os.getpid()}))
        yield
        announced.unlink()


def examine(run, out, *words):
    """Exit status, everything that `--json` holds, and what is bad: by reason its verdict and
    measure.
    """
    status = main(["doctor", "--run-dir", str(run), "--json", str(out), *words])
    told = json.loads(out.read_text(encoding="utf-8"))
    bad = {
        one["reason"]: (one["verdict"], one["measured"])
        for one in told["findings"]
        if one["verdict"] in ("warning", "failure")
    }
    return status, told, bad


def measured(told, key):
    (finding,) = [one for one in told["findings"] if one["reason"] == key]
    return finding["measured"]


def test_a_run_that_trains_is_healthy_by_its_files_its_weights_and_its_clean_matches(
    healthy, tmp_path, capsys
):
    status, told, bad = examine(healthy, tmp_path / "told.json")
    assert (status, bad, told["causes"]) == (0, {}, [])
    assert told["subject"] == f"healthy at step {UPDATES * 256:,}"
    assert {one["reason"] for one in told["findings"]} == {*map(str, range(1, 21)), *"BOVAWE"}
    # by its curve, where the set-up says the same
    assert measured(told, "18").startswith("entropy ")
    assert measured(told, "14").startswith("training scores exceed clean ones by at most ")
    assert "healthy" in capsys.readouterr().out.splitlines()[0]


def test_what_its_files_alone_show_fails_beside_a_healthy_set_up(run, tmp_path):
    rewrite(run, reward__largest=lambda values: np.minimum(values, 1.0))
    with served(run):
        status, told, bad = examine(run, tmp_path / "told.json")
    assert (status, told["verdict"]) == (1, "failure")
    assert list(bad) == ["B"]
    assert bad["B"][1].endswith("1 arrived")


def test_what_its_weights_alone_show_fails_beside_healthy_files(run, tmp_path):
    folder = CheckpointFolder(run / "learner-main" / "checkpoints")
    saved = folder.read_newest()
    saved["algorithm"]["network"]["actor.last.bias"] -= 12.0
    folder.write(saved["algorithm"]["num_timesteps"], saved)
    with served(run):
        status, told, bad = examine(run, tmp_path / "told.json")
    assert status == 1
    assert told["causes"][0]["reason"] == "18"
    assert len(told["causes"]) == 1
    assert (bad["18"][0], bad["18"][1].split(" of ")[0]) == ("failure", "0%")


def test_clean_matches_tell_of_training_that_flatters_in_a_run_that_goes_on(run, tmp_path):
    all_score(run, 1.0)
    with served(run):
        status, _, bad = examine(run, tmp_path / "told.json")
    assert status == 0  # warnings count as none
    assert bad == {"14": ("warning", "training scores exceed clean ones by at most 50% (constant)")}


def test_without_a_league_the_run_is_judged_all_the_same(run, tmp_path, capsys):
    (run / "league.db").unlink()
    status, told, bad = examine(run, tmp_path / "told.json")
    assert (status, bad) == (0, {})
    assert measured(told, "14").endswith("decisions of a rollout")  # what the set-up says of it
    assert "(without clean matches: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "rows"),
    [("main", ["main@100", "main.g2@300"]), ("main-exploiter", ["main-exploiter.g1@50"])],
)
def test_clean_matches_are_those_of_the_learner_that_is_named(name, rows):
    all_rows = ("main@100", "main.g2@300", "main-exploiter.g1@50", "mainly@7", "constant")
    cells = [PayoffCell(row=row, column="constant", wins=1, draws=0, losses=1) for row in all_rows]
    assert [cell.row for cell in command.cells_of(name, cells)] == rows
