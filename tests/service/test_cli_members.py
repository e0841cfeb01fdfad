"""Which members and which game a command means: unknown names, and `--game` with a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from game_run import make_game_run

from league.cli.main import main
from league.errors import ConfigError
from league.runs.blobs import BlobFolder
from learner.train.build import initial_values


@pytest.fixture
def newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose newest run is one of brawl."""
    monkeypatch.chdir(tmp_path)
    make_game_run(Path("runs/laptop-1"), ["game.name=brawl"])
    return tmp_path


def refused(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words.split()) != 0
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


NO_BOT = "matrix:rps has no bot {!r}: it has random, always-rock, always-paper, always-scissors"


def test_a_game_that_is_named_lists_its_bots(
    newest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert NO_BOT.format("constant") in refused("demo random constant --game matrix:rps", capsys)
    assert NO_BOT.format("nash") in refused("exploitability nash --game matrix:rps", capsys)
    assert "did you mean 'always-rock'?" in refused(
        "demo random always-rok --game matrix:rps", capsys
    )


def test_an_unknown_member_is_named_with_the_run_and_its_game(
    newest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused("demo main@1000 nash", capsys)
    assert "there is no member 'nash' in runs/laptop-1, which plays brawl" in said


def test_a_learner_does_not_start_from_an_agent_of_another_game(tmp_path: Path) -> None:
    digest = make_game_run(tmp_path / "run", ["game.name=kuhn"])
    file = tmp_path / "run" / "blobs" / f"{digest}.safetensors"
    with pytest.raises(ConfigError, match="it plays kuhn, this run plays brawl"):
        initial_values(str(file), BlobFolder(tmp_path), [], "brawl")
    values, parent = initial_values(str(file), BlobFolder(tmp_path), [], "kuhn")
    assert values["network"]
    assert parent == ""
