"""The learner's files: fixed columns, and no row beyond the checkpoint after a restart."""

import csv
import json

import numpy as np
from learning import assignments

from league.games.registry import game_spec
from learner.monitor import MATCH_COLUMNS, MONITOR_COLUMNS, REWARD_COLUMNS, MatchMonitor, StepTable
from learner.rollout.league_vec_env import FinishedMatch

SPEC = game_spec("brawl")


def match(index, reward):
    terms = np.zeros(len(SPEC.reward_terms))
    terms[0] = reward
    return FinishedMatch(
        assignment=assignments(index + 1)[index],
        score=1.0,
        steps=10,
        frames=40,
        reward_terms=terms,
        stats=dict.fromkeys(SPEC.stats, 1.5),
    )


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_columns_are_the_documented_ones(tmp_path):
    MatchMonitor(tmp_path, SPEC, 0).close()
    header = {
        name: (tmp_path / name).read_text().splitlines()[-1].split(",")
        for name in ("monitor.csv", "behavior_metrics.csv", "reward_breakdown.csv")
    }
    assert header["monitor.csv"] == list(MONITOR_COLUMNS)
    assert header["behavior_metrics.csv"] == [*MATCH_COLUMNS, *SPEC.stats]
    assert header["reward_breakdown.csv"] == [*REWARD_COLUMNS, *SPEC.reward_terms]


def test_monitor_has_the_form_of_stable_baselines(tmp_path):
    monitor = MatchMonitor(tmp_path, SPEC, 0)
    monitor.write([match(0, 2.0), match(1, 4.0)], 100)
    monitor.close()
    head, columns, *_ = (tmp_path / "monitor.csv").read_text().splitlines()
    assert {"t_start", "env_id"} <= json.loads(head.removeprefix("#")).keys()
    assert columns.startswith("r,l,t")
    assert [(row["r"], row["l"]) for row in rows(tmp_path / "monitor.csv")] == [("2.0", "10"), ("4.0", "10")]


def test_breakdown_is_the_mean_per_match_and_sums_to_the_total(tmp_path):
    monitor = MatchMonitor(tmp_path, SPEC, 0)
    monitor.write([match(0, 2.0), match(1, 4.0)], 100)
    monitor.close()
    (row,) = rows(tmp_path / "reward_breakdown.csv")
    assert (row["step"], row["matches"], float(row["total"])) == ("100", "2", 3.0)
    assert sum(float(row[term]) for term in SPEC.reward_terms) == 3.0


def test_a_resumed_run_drops_rows_beyond_its_checkpoint(tmp_path):
    first = MatchMonitor(tmp_path, SPEC, 0)
    first.write([match(0, 1.0)], 100)
    first.write([match(1, 2.0)], 200)
    first.close()
    resumed = MatchMonitor(tmp_path, SPEC, 100)
    resumed.write([match(2, 3.0)], 200)
    resumed.close()
    assert [row["r"] for row in rows(tmp_path / "monitor.csv")] == ["1.0", "3.0"]
    ids = [row["match_id"] for row in rows(tmp_path / "behavior_metrics.csv")]
    assert ids == ["match-0", "match-2"]


def test_half_a_row_of_a_killed_process_is_dropped(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("step,value\n5,1.0\n7")
    table = StepTable(path, ("step", "value"), 10)
    table.append((9, 2.0))
    table.close()
    assert [row["step"] for row in rows(path)] == ["5", "9"]
