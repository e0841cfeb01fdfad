"""What can't be played is said in a sentence; choices without a mask are all legal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from buttons import buttons
from game_contract import actions, luck

from league.errors import ConfigError, Unavailable
from league.games.registry import game_spec, make_batched


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pettingzoo", {}, "name it as pettingzoo:MODULE"),
        ("pettingzoo:no.such.module", {}, "no.such.module can't be imported: No module named 'no'"),
        (
            "pettingzoo:pettingzoo.classic.conect_four_v3",
            {},
            "can't be imported: No module named 'petting",
        ),
        (
            "pettingzoo:json",
            {},
            "makes no environment: it has no function parallel_env, env, raw_env",
        ),
        ("pettingzoo:small_environments:Pull", {}, "it has no function Pull"),
        (
            "pettingzoo:small_environments:Trio",
            {},
            "is played by 3 agents: a league plays games of two",
        ),
        (
            "pettingzoo:small_environments:Steered",
            {},
            "played by a Box: Discrete, MultiDiscrete and",
        ),
        ("pettingzoo:small_environments:Spoken", {}, "observes a Text: Box, Discrete"),
        ("pettingzoo:small_environments:Shy", {}, "KeyError: 'one'"),
        ("pettingzoo:broken_environment", {}, "can't be imported: SyntaxError: "),
        (
            "pettingzoo:small_environments:Push",
            {"colour": "red"},
            "unexpected keyword argument 'colour'",
        ),
        ("pettingzoo:collections:Counter", {}, "it must be a PettingZoo environment"),
        ("pettingzoo:small_environments:Push", {"step_seconds": 0}, "step_seconds = 0"),
    ],
)
def test_what_cannot_be_played_is_said_in_a_sentence(
    name: str, options: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_environment.py").write_text("def env(:")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        game_spec(name, **options)


@pytest.mark.parametrize("missing", ["pettingzoo", "pygame"])
def test_a_missing_extra_is_named(missing: str) -> None:
    code = (
        "import sys\nfrom league.games.registry import game_spec\n"
        f"class Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        f"            raise ModuleNotFoundError('No module named {missing}', name={missing!r})\n"
        "sys.meta_path.insert(0, Absent())\n"
        "try:\n    game_spec('pettingzoo:pettingzoo.classic.tictactoe_v3')\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"ConfigError pettingzoo.classic.tictactoe_v3 needs {missing}, which isn't installed: "
        "pip install pettingzoo pygame-ce\n"
    )


def test_a_process_that_cannot_make_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    game = buttons()
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if not entry.endswith("contract")]
    )
    with pytest.raises(
        Unavailable, match="no process could make small_environments:Buttons: module small"
    ):
        game.reset(np.arange(6, dtype=np.uint64))


def test_choices_of_an_environment_without_a_mask_are_all_legal() -> None:
    game = make_batched("pettingzoo:small_environments:Nim", 4, blind=True)
    game.reset(np.arange(4, dtype=np.uint64))
    for luck_N2A in luck(game, 40):
        game.step(actions(game, luck_N2A))
        for reason in game.failures.values():
            assert "can't be taken of" in reason
    assert game.legal_N2A is not None
    assert game.legal_N2A.any(axis=1).all()
