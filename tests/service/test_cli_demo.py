"""``bin/league demo``: fights of bots and of a run's snapshots, and other games by choices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from league.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_demo_of_a_card_game_tells_the_cards_and_every_choice(capsys: Capture) -> None:
    assert main(["demo", "caller", "aggressive", "--game", "leduc", "--seed", "2"]) == 0
    said = capsys.readouterr().out
    lines = [line.split("\t", 1)[1] for line in said.splitlines()]
    cards = [line for line in lines if " has card " in line]
    assert [line.split()[0] for line in cards] == ["caller", "aggressive"]
    choices = [line for line in lines if ": " in line and "seed" not in line]
    assert {line for line in choices if line.startswith("caller")} == {"caller: call"}
    assert "aggressive: raise" in choices
    assert lines[-2].startswith("payoff")


def test_a_board_is_told_after_each_choice(capsys: Capture) -> None:
    words = ["--game", "pettingzoo:pettingzoo.classic.tictactoe_v3", "--seed", "1"]
    assert main(["demo", "random", "random", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    boards = [index for index, line in enumerate(lines) if line.startswith("\t")]
    choices = [line for line in lines if re.match(r"\d+\trandom \([12]\): ", line)]
    assert len(choices) >= 5
    assert boards
    assert len(boards) % len(choices) == 0, "before the first choice, and after each but the last"


def test_demo_names_a_game_that_is_none(capsys: Capture) -> None:
    assert main(["demo", "caller", "random", "--game", "kuhm"]) == 2
    assert "did you mean kuhn" in capsys.readouterr().err


def test_two_members_of_one_name_are_told_apart(capsys: Capture) -> None:
    assert main(["demo", "caller", "caller", "--game", "kuhn"]) == 0
    said = capsys.readouterr().out
    assert "caller (1) against caller (2)" in said
    assert "caller (2) has card" in said


def test_demo_of_two_snapshots_repeats_with_its_seed(served_run: Path, capsys: Capture) -> None:
    def demo(*flags: str) -> str:
        assert main(["demo", "main@1000", "main", "--run-dir", str(served_run), *flags]) == 0
        return capsys.readouterr().out

    first = demo("--seed", "3")
    assert "main@1000 against main@2000, seed 3:" in first, (
        "a live player is shown by its newest snapshot"
    )
    assert first == demo("--seed", "3")
    assert first != demo("--seed", "4")
    assert first != demo("--seed", "3", "--greedy")


def test_demo_of_bots_needs_no_league(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "based", "constant"]) == 0
    told = capsys.readouterr().out
    assert "constant is knocked out" in told
    assert "based against constant, seed 0: based wins" in told
    matches = set()
    for seed in "12":
        assert main(["demo", "based", "random", "--seed", seed]) == 0
        matches.add(capsys.readouterr().out.partition("\n")[0])
    assert len(matches) == 2, "another seed, another match"
