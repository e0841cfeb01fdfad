"""Demos of games that are no fights: told choice by choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.cli.main import main
from league.config import resolve
from league.config_file import write_config


def test_demo_of_a_card_game_tells_the_cards_and_every_choice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    write_config(run_dir / "config.toml", resolve(assignments=["game.name=leduc"], environment={}))
    assert main(["demo", "caller", "aggressive", "--run-dir", str(run_dir), "--seed", "2"]) == 0
    lines = [line.split("\t", 1)[1] for line in capsys.readouterr().out.splitlines()]
    cards = [line for line in lines if " has card " in line]
    assert [line.split()[0] for line in cards] == ["caller", "aggressive"]
    choices = [line for line in lines if ": " in line and "seed" not in line]
    assert {line for line in choices if line.startswith("caller")} == {"caller: call"}
    assert "aggressive: raise" in choices
    assert lines[-2].startswith("payoff")
