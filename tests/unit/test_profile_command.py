"""The command `bin/league profile`: its lines and files, and wrong input."""

import gzip
import json

import pytest
from profiling import KUHN, SMALL

from league.cli.main import main as league_command
from league.settings.base import resolve
from learner.profile import sweep


def profile(*words):
    return league_command(["profile", *map(str, words)])


def flags(assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


def test_one_configuration_from_the_command_line(tmp_path, capsys):
    trace, output = tmp_path / "trace.json.gz", tmp_path / "results.json"
    files = ["--trace", trace, "--output", output]
    assert profile("--preset", "smoke", "--cpu", "--seconds", 0.5, *files, *flags(SMALL)) == 0
    printed = capsys.readouterr().out
    lines = [line.split("\t") for line in printed.splitlines()]
    parts = ["game", "opponents", "inference", "learning", "other", "end to end"]
    assert [line[0] for line in lines[1:7]] == parts
    assert sum(float(line[4].rstrip("%")) for line in lines[1:6]) == pytest.approx(100, abs=0.3)
    assert "bottleneck: " in printed
    assert printed.count("not measured: ") >= 3
    with gzip.open(trace, "rt") as file:
        assert json.load(file)["traceEvents"]
    written = json.loads(output.read_text())
    (measured,) = written["rows"]
    assert written["recommended"] == 0
    assert written["snapshots"] == 6
    assert len(measured["bursts"]) == 5
    assert measured["settings"]["matches"] == written["settings"]["learner"]["matches"] == 8
    assert sum(part["share"] for part in measured["parts"].values()) == pytest.approx(1.0)
    speed = measured["steps_per_second"]
    assert 0 < speed["lowest"] <= speed["median"] <= speed["highest"]
    assert measured["memory"]["peak_resident_bytes"] > 50 << 20


def test_a_sweep_continues_where_memory_is_short(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweep, "ROUNDS", 1)
    output, preset = tmp_path / "results.json", tmp_path / "fast.toml"
    sizes = ["--batch-size", 32, "--threads", 1, "--matches", 8, 10**12]
    files = ["--output", output, "--write-preset", preset]
    words = ["--preset", "board", "--cpu", "--seconds", 0.3, "--sweep", *sizes, *files]
    assert profile(*words, *flags(KUHN)) == 0
    written = json.loads(output.read_text())
    own, huge = written["rows"]
    assert huge["settings"]["matches"] == 10**12
    assert huge["failure"].startswith("too little memory")
    assert huge["bursts"] == []
    assert len(own["bursts"]) == 1
    assert written["recommended"] == 0
    printed = capsys.readouterr()
    table = [line.split("\t") for line in printed.out.splitlines()[:3]]
    assert table[1][-1] == "recommended, unchanged"
    assert table[2][-1].startswith("failed: too little memory")
    assert f"bin/start-league --config {preset}" in printed.err
    assert resolve(None, preset, environment={}) == written["settings"]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--seconds", "0"], "--seconds 0"),
        (["--seconds", "-1"], "-1"),
        (["--seconds", "nan"], "nan"),
        (["--seconds", "soon"], "'soon'"),
        (["--preset", "laptp"], "'laptop'"),
        (["--config", "none.toml"], "none.toml"),
        (["--set", "learner.batch_size=7"], "batch_size"),
        (["--output", "nowhere/results.json"], "nowhere"),
        (["--output", "."], "name a file"),
        (["--write-preset", "fast.toml"], "--sweep"),
        (["--matches", "8"], "--sweep"),
        (["--sweep", "--matches", "0"], "'--matches': 0"),
        (["--sweep", "--write-preset", "mine.toml"], "--force"),
        (["--sweep", "--trace", "t.json"], "--trace"),
        (["--sweep", "--batch-size", "33"], "batch_size 33"),
        (["--gpu", "99"], "99"),
    ],
)
def test_wrong_input_is_one_sentence_before_anything_is_measured(
    tmp_path, monkeypatch, capsys, words, named
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("precious")
    monkeypatch.setattr("learner.profile.measuring.measure", None)
    assert profile(*words) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("league: ") == 1
    assert (tmp_path / "mine.toml").read_text() == "precious"


def test_where_nothing_can_be_measured_the_command_fails_and_says_why(tmp_path, capsys):
    words = ["--preset", "board", "--cpu", "--seconds", 0.1, "--output", tmp_path / "r.json"]
    assert profile(*words, *flags([*KUHN, f"learner.matches={10**12}"])) == 1
    assert "too little memory" in capsys.readouterr().err
    assert json.loads((tmp_path / "r.json").read_text())["recommended"] is None
