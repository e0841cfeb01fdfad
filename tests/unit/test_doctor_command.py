"""The command `bin/league doctor`: exit status, lines, JSON, presets, and the minimal agent."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import sick

from league.cli.main import main
from league.settings.presets import preset_names
from learner.doctor import training
from learner.doctor.findings import REASONS

SMALL = [
    word
    for one in ("matches=16", "n_steps=16", "batch_size=64")
    for word in ("--set", f"learner.{one}")
]
LEARNING = {*map(str, range(1, 21)), "B", "C", "O", "V"}


def doctor(*words):
    return main(["doctor", *map(str, words)])


def examine(out, *words):
    """Exit status, what `--json` holds, and its findings by reason."""
    status = doctor(*words, "--json", out)
    told = json.loads(out.read_text(encoding="utf-8"))
    return status, told, {one["reason"]: one for one in told["findings"]}


MINE = """
extends = "board"
[game]
name = "leduc"
[learner]
matches = 16
n_steps = 16
batch_size = 64
gamma = 0.1
learning_rate = 0.3
learning_rate_final = "none"
"""


def test_a_failure_ends_with_1_and_stands_in_the_json_with_what_follows(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(MINE, encoding="utf-8")
    flags = ("--set", "learner.learning_rate=1e-3")
    status, told, found = examine(tmp_path / "findings.json", "--config", file, *flags)
    assert (status, set(found)) == (1, LEARNING)
    assert told["causes"] == [{"reason": "19", "consequences": ["7"]}]
    assert (told["verdict"], told["systems"]["rewards"]) == ("failure", "failure")
    assert found["19"] == {
        "reason": "19",
        "title": REASONS["19"].title,
        "system": "rewards",
        "measured": found["19"]["measured"],
        "verdict": "failure",
        "fix": found["19"]["fix"],
    }
    assert "learner.gamma" in found["19"]["fix"]
    assert "0.001" in found["16"]["measured"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"leduc, {file}: 2 failures (")
    assert printed[-5] == f"failure: {REASONS['19'].title} (19)"
    assert printed[-4] == f"  measured: {found['19']['measured']}"
    assert printed[-2] == f"  follows: {REASONS['7'].title} (7)"
    assert printed[-1] == printed[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run-dir", "nowhere", "--preset", "laptop"], "--run-dir"),
        (["--preset", "lapto"], "'lapto'"),
        (["--set", "learner.gama=1"], "gamma"),
        (["--game", "chess"], "chess"),
    ],
)
def test_a_wrong_flag_ends_with_2_and_a_sentence(words, said, capsys):
    assert doctor(*words) == 2
    assert said in capsys.readouterr().err


def matches(reward, spread=1.0, number=512):
    rewards = np.random.default_rng(0).normal(reward, spread, number)
    return [(one, 0.5) for one in rewards]


@pytest.mark.parametrize(
    ("before", "after", "fault", "verdict"),
    [
        (matches(0.0), matches(0.5), "", "ok"),
        (matches(0.0), matches(0.1), "", "failure"),  # under three standard errors of 512 matches
        (matches(0.0), matches(-1.0), "", "failure"),
        (matches(0.0, spread=0.0), matches(0.0, spread=0.0), "", "failure"),
        (matches(0.0, number=10), matches(5.0, number=10), "", "warning"),
        (matches(0.0), matches(0.5), "a number is nan", "failure"),
    ],
)
def test_the_minimal_agent_must_be_paid_more_than_luck_gives(before, after, fault, verdict):
    finding = training.compare(before + after, "constant", fault)
    assert (finding.key, finding.verdict.value) == ("M", verdict)
    assert fault in finding.measured


def test_the_minimal_agent_replaces_all_but_game_and_rewards(monkeypatch):
    made = sick.set_up("game.match_seconds=90", "learner.gamma=0.97", "learner.learning_rate=5")
    scores = np.zeros(32)
    scores[0 :: len(made.bots)] = 1.0  # too easy
    scores[2 :: len(made.bots)] = 0.5
    played = SimpleNamespace(first_scores=lambda: scores)
    monkeypatch.setattr(training, "random_play", lambda set_up, bots, seed: played)
    small = training.minimal(made)
    assert small.mix == {made.bots[2]: 1.0}
    assert small.settings.learner.gamma == 0.97
    assert small.settings.learner.learning_rate == 1e-3
    assert small.settings.game.match_seconds == training.MATCH_SECONDS
    np.testing.assert_array_equal(small.weights_K, made.weights_K)


STEPS = training.MINIMAL_LEARNER["n_steps"]


def count_steps(monkeypatch):
    """Lets each step take a second of processor time: an update takes `STEPS`."""
    clock = SimpleNamespace(process_time=itertools.count().__next__)
    monkeypatch.setattr(training, "time", clock)


@pytest.mark.long
def test_the_minimal_agent_learns_biased_rock_paper_scissors(tmp_path, monkeypatch, capsys):
    count_steps(monkeypatch)
    monkeypatch.setattr(training.train_minimal_agent, "__defaults__", (5 * STEPS,))
    words = ["--game", "matrix:brps", *SMALL, "--emergency"]
    status, told, found = examine(tmp_path / "findings.json", *words)
    assert (status, found["M"]["verdict"]) == (0, "ok"), found["M"]
    assert len(told["curve"]) >= 2
    assert "\nminimal agent" in capsys.readouterr().out


def test_the_minimal_agent_learns_nothing_where_nothing_is_paid(monkeypatch):
    count_steps(monkeypatch)
    broken = sick.spoiled(sick.board("matrix:brps"), after=sick.unpaid)
    finding, _ = training.train_minimal_agent(broken, 2 * STEPS)
    assert finding.verdict.value == "failure", finding


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_minimal_agent_learns_brawl(tmp_path):
    words = ["--preset", "smoke", "--emergency"]
    status, told, found = examine(tmp_path / "findings.json", *words)
    assert (status, found["M"]["verdict"]) == (0, "ok"), found["M"]
    assert told["curve"]


SPARSE = "the guide's sparse rewards at every frame: one decision in 181 pays, gamma reaches 100"
EXPLAINED = {"seed": {"7": SPARSE}, "fast": {"7": SPARSE}, "stable": {"7": SPARSE}}
"""By preset, reasons that warn, and why that is no fault of the doctor."""


@pytest.mark.slow  # test_doctor.py examines `smoke` in every run
@pytest.mark.timeout(900)
@pytest.mark.parametrize("preset", sorted({*preset_names()} - {"showdown"}))  # needs a simulator
def test_a_shipped_preset_is_healthy(preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there is no run, and none is named, laptop is meant
    named = [] if preset == "laptop" else ["--preset", preset]
    status, told, found = examine(tmp_path / "findings.json", *named)
    assert told["subject"].endswith(f"preset {preset}")
    assert set(found) == LEARNING
    bad = {key: one["measured"] for key, one in found.items() if one["fix"]}
    assert not bad.keys() - EXPLAINED.get(preset, {}).keys(), bad
    assert status == 0
