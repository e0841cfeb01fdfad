"""Demos of games that are no fights: told choice by choice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from league.cli.main import main


def test_demo_of_a_card_game_tells_the_cards_and_every_choice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "caller", "aggressive", "--game", "leduc", "--seed", "2"]) == 0
    said = capsys.readouterr().out
    lines = [line.split("\t", 1)[1] for line in said.splitlines()]
    cards = [line for line in lines if " has card " in line]
    assert [line.split()[0] for line in cards] == ["caller", "aggressive"]
    choices = [line for line in lines if ": " in line and "seed" not in line]
    assert {line for line in choices if line.startswith("caller")} == {"caller: call"}
    assert "aggressive: raise" in choices
    assert lines[-2].startswith("payoff")


def test_choices_are_told_by_their_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "caller", "aggressive", "--game", "leduc", "--seed", "2"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    choices = [int(line[0]) for line in lines if line[1].startswith(("caller: ", "aggressive: "))]
    assert choices == list(range(1, len(choices) + 1))
    ((number, _),) = [line for line in lines if "against" in line[1]]
    assert int(number) == len(choices)
    assert {line[0] for line in lines if " has card " in line[1]} == {"0"}
    assert not any("payoff 0" in line[1] for line in lines if " has card " in line[1])


def test_a_board_is_told_after_each_choice(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--game", "pettingzoo:pettingzoo.classic.tictactoe_v3", "--seed", "1"]
    assert main(["demo", "random", "random", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    boards = [index for index, line in enumerate(lines) if line.startswith("\t")]
    choices = [line for line in lines if re.match(r"\d+\trandom \([12]\): ", line)]
    assert len(choices) >= 5
    assert boards
    assert len(boards) % len(choices) == 0, "before the first choice, and after each but the last"


def test_demo_names_a_game_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "caller", "random", "--game", "kuhm"]) == 2
    assert "did you mean kuhn" in capsys.readouterr().err


def test_two_members_of_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "caller", "caller", "--game", "kuhn"]) == 0
    said = capsys.readouterr().out
    assert "caller (1) against caller (2)" in said
    assert "caller (2) has card" in said


def test_a_misspelt_bot_is_named_where_there_is_no_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "baset", "constant"]) == 1
    assert "did you mean the bot 'based'?" in capsys.readouterr().err
