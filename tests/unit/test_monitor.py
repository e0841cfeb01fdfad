"""The learner's files: fixed columns, and no row beyond the checkpoint after a restart."""

import csv
import json
import re
from pathlib import Path

import numpy as np
from learning import finished

from league.games.registry import game_spec
from league.runs.columns import BEHAVIOUR, MONITOR, REWARDS, STRATEGY, TABLES
from learner.train.monitor import MatchMonitor, StepTable

SPEC = game_spec("brawl")


def match(index, reward):
    terms = np.zeros(len(SPEC.reward_terms))
    terms[0] = reward
    return finished(index, terms, dict.fromkeys(SPEC.stats, 1.5))


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_headers_are_those_of_the_one_table(tmp_path):
    MatchMonitor(tmp_path, SPEC, 0).close()
    header = {
        path.name: path.read_text().splitlines()[-1].split(",")
        for path in sorted(tmp_path.glob("*.csv"))
    }
    assert header == {
        "behavior_metrics.csv": [*BEHAVIOUR, *SPEC.stats],
        "monitor.csv": list(MONITOR),
        "reward_breakdown.csv": [*REWARDS, *SPEC.reward_terms],
        "strategy_analysis.csv": list(STRATEGY),
    }
    assert header.keys() | {"evaluation_results.csv"} == TABLES.keys()


def test_the_docs_list_every_column_in_its_order():
    page = (Path(__file__).resolve().parents[2] / "docs" / "learner.md").read_text()
    for name in ("monitor.csv", "behavior_metrics.csv", "reward_breakdown.csv"):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}`")]
        columns = ",".join(re.findall(r"`([^`]+)`", row)[1:]).split(",")
        assert columns[: len(TABLES[name])] == list(TABLES[name])
    listed = re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert [(name, meaning) for name, meaning in listed if name in STRATEGY] == list(
        STRATEGY.items()
    )


def test_a_row_of_the_strategy_holds_its_metrics_and_leaves_out_what_nothing_is_known_of(tmp_path):
    monitor = MatchMonitor(tmp_path, SPEC, 0)
    monitor.write_strategy(
        {"latent/norm": 4.0, "attention/age_frames": 12.34567891, "loss/policy": 1.0}, 100
    )
    monitor.write_strategy({"loss/policy": 1.0}, 200)
    monitor.close()
    (row,) = rows(tmp_path / "strategy_analysis.csv")
    told = {name: value for name, value in row.items() if value}
    assert told == {"step": "100", "latent_norm": "4", "attention_age_frames": "12.3457"}


def test_monitor_has_the_form_of_stable_baselines(tmp_path):
    monitor = MatchMonitor(tmp_path, SPEC, 0)
    monitor.write([match(0, 2.0), match(1, 4.0)], 100)
    monitor.close()
    head, columns, *_ = (tmp_path / "monitor.csv").read_text().splitlines()
    assert {"t_start", "env_id"} <= json.loads(head.removeprefix("#")).keys()
    assert columns.startswith("r,l,t")
    assert [(row["r"], row["l"]) for row in rows(tmp_path / "monitor.csv")] == [
        ("2.0", "10"),
        ("4.0", "10"),
    ]


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
