"""``league export`` of a run's snapshots and of files, and the examples of docs/export.md."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sb3_contrib import RecurrentPPO

from league.agent.perceptron import PerceptronConfig, PerceptronNetwork
from league.agent.snapshot import SnapshotCard, load_snapshot, save_snapshot
from league.cli.main import main
from league.games.registry import game_spec
from league.runs.blobs import BlobFolder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"
BLOCK = re.compile(
    r"<!-- run by tests/service/test_cli_export.py -->\n```python\n(.*?)```", re.DOTALL
)
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A small member of brawl as a file."""
    spec = game_spec("brawl")
    torch.manual_seed(1)
    network = PerceptronNetwork(
        PerceptronConfig(observation_size=spec.observation_size, action_size=10)
    )
    card = SnapshotCard(
        agent=network.config, game="brawl", game_version=spec.version, frame_skip=4, step=7
    )
    blobs = BlobFolder(tmp_path)
    save_snapshot(blobs, network, replace(card, game_version="0", step=8))
    return blobs.path(save_snapshot(blobs, network, card))


def test_a_runs_snapshot_by_name(served_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "agent.zip"
    assert main(["export", "main", "--run-dir", str(served_run), "--out", str(out)]) == 0
    assert json.loads(RecurrentPPO.load(out, device="cpu").card_json)["step"] == 2000


def test_the_tournaments_file_and_its_check(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", "")  # this Python alone
    out = tmp_path / "my_agent.py"
    assert main(["export", str(weights), "--for", "ai2", "--greedy", "--out", str(out)]) == 0
    size = f"{out.stat().st_size / 1e6:.2f} MB"
    said = re.search(rf"{size}, (\d+\.\d+) ms a frame", capsys.readouterr().err)
    assert said is not None
    assert main(["export", "--check", str(out)]) == 0
    shown = capsys.readouterr()
    heads, *rows = (line.split("\t") for line in shown.out.splitlines())
    found = [dict(zip(heads, row, strict=True)) for row in rows]
    assert [one["match"] for one in found] == ["validation", "battle"]
    for one in found:
        taken, lost = map(int, one["stocks"].split("–"))
        assert one["result"] == ("won" if taken > lost else "lost" if taken < lost else "drawn")
        assert 0 < float(one["ms_a_frame"]) <= float(one["99_percent_ms"])
    assert size in shown.err
    with monkeypatch.context() as narrow:
        narrow.setattr("league.console.output.is_terminal", lambda: True)
        narrow.setenv("COLUMNS", "80")
        assert main(["export", "--check", str(out)]) == 0
    drawn = capsys.readouterr().out
    assert max(map(len, drawn.splitlines())) <= 80
    assert all(f" {found[0][name]} " in drawn for name in ("Python", "numpy", "result", "stocks"))
    assert "…" not in drawn
    assert all(name in shown.err for name in ("python3.10", "python3.12"))
    out.write_text("import league\n")
    assert main(["export", "--check", str(out)]) == 2
    assert "read it, then add --trust" in capsys.readouterr().err, "it is no export of this user"
    out.with_name("data.txt").write_text("a folder may be checked, too")
    with zipfile.ZipFile(tmp_path / "team.zip", "w") as archive:
        archive.write(out, "team/my_agent.py")
    for path in (out, out.parent, tmp_path / "team.zip"):
        assert main(["export", "--check", str(path), "--trust"]) == 2
        assert "league is not in the tournament's requirements" in capsys.readouterr().err
    assert not (out.parent / "__pycache__").exists()
    assert main(["export", "--check", str(out.parent / "none")]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.long
def test_a_mixture_is_exported_to_the_tournament_alone(
    served_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    mixture = ["export", "main@1000=1,main@2000=3", "--run-dir", str(served_run), "--out"]
    assert main([*mixture, str(tmp_path / "my_agent.py")]) == 0
    assert "main@1000=0.25,main@2000=0.75" in capsys.readouterr().err
    text = (tmp_path / "my_agent.py").read_text()
    assert [text.count(f"'snapshot': 'main@{step}'") for step in (1000, 2000)] == [1, 1]
    assert main(["export", "main@average", *mixture[2:], str(tmp_path / "average.py")]) == 0
    assert "main@average as ai2" in capsys.readouterr().err
    for words in (["agent.zip"], ["agent.onnx"], ["agent", "--format", "folder"]):
        assert main([*mixture, str(tmp_path / words[0]), *words[1:]]) == 2
        assert "mixture" in capsys.readouterr().err
        assert not (tmp_path / words[0]).exists()


def test_a_renamed_file_is_refused_with_its_right_name(
    weights: Path, tmp_path: Path, capsys: Capture
) -> None:
    renamed = weights.rename(tmp_path / "mine.safetensors")
    assert main(["export", str(renamed), "--out", str(tmp_path / "x.zip")]) == 2
    said = capsys.readouterr().err
    assert str(renamed) in said
    assert weights.name in said


@pytest.mark.parametrize("format", ["folder", "ai2"])
def test_the_version_of_the_game_is_wanted(
    weights: Path, tmp_path: Path, capsys: Capture, format: str
) -> None:
    out = tmp_path / f"old{'.py' * (format == 'ai2')}"
    for file in weights.parent.glob("*.safetensors"):
        if file != weights:
            assert main(["export", str(file), "--format", format, "--out", str(out)]) == 4
    assert "brawl version 0" in capsys.readouterr().err
    assert not out.exists()


def test_a_tournament_file_ends_in_py(weights: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "my_agent.txt"
    assert main(["export", str(weights), "--for", "ai2", "--out", str(out)]) == 2
    assert "ends in .py" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.long
def test_an_agent_of_older_rules_is_exported_with_a_warning(
    weights: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network, card = load_snapshot(BlobFolder(weights.parent), weights.stem)
    older = replace(card, game_version=game_spec("brawl").older_versions[-1], step=9)
    file = weights.parent / f"{save_snapshot(BlobFolder(weights.parent), network, older)}"
    out = tmp_path / "old"
    assert main(["export", f"{file}.safetensors", "--format", "folder", "--out", str(out)]) == 0
    assert re.search(rf"\b{older.game_version}\b.*\bbrawl\b", caplog.text)
    assert out.exists()


@pytest.mark.long
def test_the_examples_of_the_page(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they stand, with the exports that the page made before."""
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("```python") == len(BLOCK.findall(page)) == 2
    for command in re.findall(
        r"^\$ bin/league (export main@2000 .*?)(?:\s+#.*)?$", page, re.MULTILINE
    ):
        words = command.replace("main@2000", str(weights)).split()
        place = words.index("--out") + 1
        words[place] = str(tmp_path / words[place])
        assert main(words) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for code in BLOCK.findall(page):
        names: dict[str, Any] = {}
        exec(compile(code, str(PAGE), "exec"), names)
        assert names["action"].reshape(-1).shape == (10,)
    monkeypatch.delitem(sys.modules, "play")
