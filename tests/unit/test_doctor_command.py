"""The command `bin/league doctor`: exit status, lines, picture, JSON, and the minimal agent."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import sick
import sick_games

from league.cli.main import main
from learner.doctor import minimal_agent
from learner.doctor.findings import REASONS, SYSTEMS

SMALL = [
    "--set",
    "learner.matches=16",
    "--set",
    "learner.n_steps=16",
    "--set",
    "learner.batch_size=64",
]


def doctor(*words):
    return main(["doctor", *words])


def test_a_healthy_game_ends_with_0_and_a_line_for_every_system_and_reason(capsys):
    assert doctor("--game", "kuhn", *SMALL) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("kuhn, preset board: healthy (")
    fields = [line.split("\t") for line in lines[1:]]
    assert {words[1]: words[2] for words in fields if words[0] == "system"} == dict.fromkeys(
        SYSTEMS, "ok"
    )
    reasons = {words[0]: words[1:] for words in fields if len(words) == 4 and words[0] in REASONS}
    assert set(reasons) == {*map(str, range(1, 21)), "B", "O", "V"}
    assert all(title == REASONS[key].title for key, (title, _, _) in reasons.items())
    assert {verdict for _, verdict, _ in reasons.values()} <= {"ok", "unknown"}


def test_a_failure_ends_with_1_and_stands_in_the_json_with_what_follows(tmp_path, capsys):
    out = tmp_path / "findings.json"
    assert doctor("--game", "leduc", *SMALL, "--set", "learner.gamma=0.1", "--json", str(out)) == 1
    told = json.loads(out.read_text(encoding="utf-8"))
    assert told["causes"] == [{"reason": "19", "consequences": ["7"]}]
    assert (told["verdict"], told["systems"]["rewards"]) == ("failure", "failure")
    (finding,) = [one for one in told["findings"] if one["reason"] == "19"]
    assert finding == {
        "reason": "19",
        "title": "Gamma too high or low",
        "system": "rewards",
        "measured": finding["measured"],
        "verdict": "failure",
        "fix": "raise learner.gamma: 0.98 reaches 50 decisions, 0.99 100",
    }
    printed = capsys.readouterr().out.splitlines()
    assert printed[-4] == "failure: Gamma too high or low (19)"
    assert printed[-3] == f"  measured: {finding['measured']}"
    assert printed[-1] == "  follows: Rewards too sparse (7)"


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


def test_a_settings_file_is_examined_and_flags_lie_over_it(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(MINE, encoding="utf-8")
    flags = ("--set", "learner.learning_rate=1e-3", "--set", "learner.gamma=0.97")
    assert doctor("--config", str(file), *flags) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"leduc, {file}: healthy (")
    measured = {words[0]: words[-1] for words in (line.split("\t") for line in lines)}
    assert measured["16"].startswith("at 0.001 an update moves ")
    assert measured["17"].startswith("64 decisions, ")
    assert measured["19"].startswith("gamma 0.97 ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run-dir", "nowhere", "--preset", "laptop"], "--run-dir has its own settings"),
        (["--preset", "lapto"], "there is no preset 'lapto'"),
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
    finding = minimal_agent.compare(before + after, "constant", fault)
    assert (finding.key, finding.verdict.value) == ("M", verdict)
    assert fault in finding.measured


def test_the_minimal_agent_replaces_all_but_game_and_rewards(monkeypatch):
    made = sick.set_up("game.match_seconds=90", "learner.gamma=0.97", "learner.learning_rate=5")
    scores = np.zeros(32)
    scores[0 :: len(made.bots)] = 1.0  # too easy
    scores[2 :: len(made.bots)] = 0.5
    played = SimpleNamespace(first_scores=lambda: scores)
    monkeypatch.setattr(minimal_agent, "random_play", lambda set_up, bots, seed: played)
    small = minimal_agent.minimal(made)
    assert small.mix == {made.bots[2]: 1.0}
    assert small.settings.learner.gamma == 0.97
    assert small.settings.learner.learning_rate == 1e-3
    assert small.settings.game.match_seconds == minimal_agent.MATCH_SECONDS
    np.testing.assert_array_equal(small.weights_K, made.weights_K)


def test_the_minimal_agent_learns_biased_rock_paper_scissors(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(minimal_agent.emergency, "__defaults__", (lambda _: None, 12.0))
    out = tmp_path / "findings.json"
    words = ["--preset", "board", "--set", "game.name=matrix:brps", *SMALL, "--emergency"]
    assert doctor(*words, "--json", str(out)) == 0
    told = json.loads(out.read_text(encoding="utf-8"))
    (finding,) = [one for one in told["findings"] if one["reason"] == "M"]
    assert finding["verdict"] == "ok", finding
    assert len(told["curve"]) >= 2
    assert "\nminimal agent, reward of a match: " in capsys.readouterr().out


def test_the_minimal_agent_learns_nothing_where_nothing_is_paid():
    broken = sick.spoiled(sick.board("matrix:brps"), after=sick_games.unpaid)
    finding, _ = minimal_agent.emergency(broken, seconds=1.0)
    assert finding.verdict.value == "failure", finding


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_minimal_agent_learns_brawl(tmp_path):
    out = tmp_path / "findings.json"
    assert doctor("--preset", "smoke", "--emergency", "--json", str(out)) == 0
    told = json.loads(out.read_text(encoding="utf-8"))
    (finding,) = [one for one in told["findings"] if one["reason"] == "M"]
    assert finding["verdict"] == "ok", finding
    assert told["curve"]
