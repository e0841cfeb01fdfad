"""`bin/league eval`, `compare` and `ready`: real matches, their numbers and exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli_league import rows

from evaluator.benchmark.comparison import Comparison, compare
from evaluator.commands import measure
from league.cli.main import main
from league.contest.league import League
from league.contest.matches import paired, play
from league.contest.members import Finder
from league.stats.gates import Gate, MultinomialTest, Result, Risks

Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *words: str, status: int = 0) -> str:
    capsys.readouterr()
    found = main(list(words))
    captured = capsys.readouterr()
    assert found == status, captured.err
    return captured.out


def asked(capsys: Capture, *words: str, status: int = 0) -> Any:
    return json.loads(printed(capsys, *words, "--json", status=status))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_counts_the_matches_that_record_plays(capsys: Capture) -> None:
    words = ["based", "drunk", "--matches", "12", "--seed", "5"]
    recorded = rows(printed(capsys, "record", *words, "--game", "brawl"))[0]
    words = ["based", "--against", "drunk", "--matches", "12", "--seed", "5", "--game", "brawl"]
    (score,) = asked(capsys, "eval", *words)["scores"]
    counts = [score[name] for name in ("matches", "wins", "draws", "losses")]
    assert counts == [int(recorded[name]) for name in ("matches", "wins", "draws", "losses")]
    for name in ("damage_dealt", "damage_taken", "knockouts", "falls"):
        assert score["means"][name]["value"] == pytest.approx(float(recorded[name]), abs=0.01)
    assert score["means"]["reward"]["low"] < score["means"]["reward"]["value"]
    assert 0.2 < score["actions"]["A"]["value"] < 0.6
    assert score["actions"]["G"]["value"] == 0


@pytest.mark.long
def test_a_resting_league_s_snapshots_and_files_play(finished: Path, capsys: Capture) -> None:
    words = ["main", "--against", "main@1000", "main@1000=3,constant=1", "--matches", "8"]
    words += ["--run-dir", str(finished), "--seed", "2"]
    text = printed(capsys, "eval", *words)
    lines = [line.split("\t") for line in text.splitlines()]
    assert [line[0] for line in lines[1:3]] == ["main@1000", "main@1000=0.75,constant=0.25"]
    scores = asked(capsys, "eval", *words)["scores"]
    assert scores[0]["player"] == "main@2000"
    assert sum(scores[0][name] for name in ("wins", "draws", "losses")) == scores[0]["matches"] == 8
    digest = next(finished.glob("blobs/*.safetensors"))
    words = [str(digest), "--against", "constant", "--matches", "4", "--run-dir", str(finished)]
    sampled, greedy = asked(capsys, "eval", *words), asked(capsys, "eval", *words, "--greedy")
    assert sampled["scores"][0]["means"] != greedy["scores"][0]["means"]


def test_a_terminal_says_why_more_matches_are_played_than_asked_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.console.output.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    words = ["eval", "caller", "--game", "kuhn", "--matches", "8", "--against"]
    assert "More than 8" not in printed(capsys, *words, "nash")
    shown = printed(capsys, *words, "nash=99,aggressive=1", "random=50,aggressive=50,nash=1")
    assert "More than 8" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert {"win_rate", "interval"} <= {*shown.split()}, "whole, however narrow"


def test_every_bot_is_met_when_none_is_named(capsys: Capture) -> None:
    found = asked(capsys, "eval", "caller", "--game", "kuhn", "--matches", "4")
    assert [one["opponent"] for one in found["scores"]] == [
        "random",
        "caller",
        "aggressive",
        "nash",
    ]


def test_wrong_requests_exit_with_2(capsys: Capture) -> None:
    for words in (
        ["eval", "caller=0", "--game", "kuhn"],
        ["eval", "caller", "--against", "nobody", "--game", "kuhn"],
        ["eval", "caller", "--game", "kuhn", "--matches", "3"],
        ["compare", "caller", "caller", "--game", "kuhn"],
        ["compare", "caller", "nash", "--game", "kuhn", "--elo0", "30", "--elo1", "10"],
        ["ready", "caller", "--against", "nash", "--game", "kuhn"],
    ):
        assert main(words) == 2, words
        assert capsys.readouterr().err
    assert main(["analyze", "caller=1,nash=1", "--game", "kuhn"]) == 2
    assert "mixture" in capsys.readouterr().err


def test_a_run_is_no_player(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "runs/bold").mkdir(parents=True)
    (tmp_path / "runs/bold/league.db").touch()
    assert main(["compare", "caller", "runs/bold", "--game", "kuhn"]) == 2
    assert "runs/bold/main" in capsys.readouterr().err


READY = ["ready", "weapon_seeker", "--against", "clockwork", "--game", "brawl", "--matches", "40"]


def test_ready_needs_every_interval_above_its_bar(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = asked(capsys, *READY, status=1)
    verdicts = {name: check["verdict"] for name, check in found["checks"].items()}
    assert verdicts.pop("seconds_per_fall") == "not shown"
    assert set(verdicts.values()) == {"pass"}
    assert not found["ready"]
    survival = found["checks"]["seconds_per_fall"]
    assert survival["low"] < 60 < survival["high"]
    monkeypatch.setitem(measure.CHECKS, "seconds_per_fall", survival["low"] - 1)
    assert asked(capsys, *READY)["ready"]
    monkeypatch.setitem(measure.CHECKS, "seconds_per_fall", survival["high"] + 1)
    found = asked(capsys, *READY, status=1)
    assert found["checks"]["seconds_per_fall"]["verdict"] == "fail"


@pytest.mark.long
def test_a_comparison_counts_pairs_in_the_order_in_which_they_began() -> None:
    finder = Finder(League(), "brawl")
    settings, most = finder.settings(["based", "drunk"]), 120
    one, other = finder.find(settings.spec(), ["based", "drunk"])
    seated = one.seated, other.seated
    bouts = paired(one.contender, other.contender, seated, most, seed=3)
    ended = [
        (replay.seed, replay.outcome if replay.seats[0].name == "based" else 1 - replay.outcome)
        for replay in play(settings, (one, other), bouts, seed=3, greedy=False, failures={})
    ]
    seeds = [seed for seed, _ in ended]
    assert seeds != sorted(seeds)
    pairs = [
        Result(pair, sum(score for seed, score in ended if seed == 3 + pair) / 2)
        for pair in range(most // 2)
    ]
    gate = Gate(test=MultinomialTest(elo0=0, elo1=100), risks=Risks())
    found = compare(finder, ("based", "drunk"), gate, most=most, seed=3)
    assert [gate.counts for gate in found.gates] == [
        gate.take(pairs).counts,
        gate.take(Result(one.ordinal, 1 - one.score) for one in pairs).counts,
    ]


def test_a_comparison_ends_with_one_sentence(capsys: Capture) -> None:
    words = ["compare", "always-paper", "always-rock", "--game", "matrix:rps"]
    assert re.search("always-paper is .*always-rock", printed(capsys, *words))
    backwards = asked(capsys, words[0], words[2], words[1], *words[3:])
    assert backwards["finding"] == "second"
    assert backwards["matches"] < 100
    even = asked(capsys, "compare", "nash", "caller", "--game", "kuhn", "--most", "20")
    assert even["finding"] == "undecided"
    assert even["matches"] == 20
    assert even["payoff"]["low"] <= even["payoff"]["score"] <= even["payoff"]["high"]
    assert even["unit"] == "chips per match"


def test_too_few_matches_are_no_lead_that_is_too_small() -> None:
    gate = Gate(test=MultinomialTest(elo0=0.0, elo1=30.0), risks=Risks())
    won, lost = (gate.take(Result(n, score) for n in range(20)) for score in (1.0, 0.0))
    seen = Comparison(first="main", second="ramy", gates=(won, lost), played=10)
    assert "main has won all of them" in seen.sentence()
    seen = Comparison(first="main", second="ramy", gates=(lost, won), played=10)
    assert "ramy has won all of them" in seen.sentence()


def test_the_page_s_python_runs(capsys: Capture) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "evaluation.md").read_text("utf-8")
    block = re.search(
        r"<!-- run by .*test_evaluator_commands.py -->\n```python\n(.*?)```", page, re.S
    )
    assert block
    exec(compile(block[1], "docs/evaluation.md", "exec"), {})
    assert re.match(r"easy: 75% won .*\nmixed: \d+% won", capsys.readouterr().out)
