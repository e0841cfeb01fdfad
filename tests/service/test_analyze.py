"""`league analyze`: from a snapshot's name to which opponents its latent recognises."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from league.agent.perceptron import PerceptronConfig, PerceptronNetwork
from league.agent.snapshot import SnapshotCard, save_snapshot
from league.cli.main import main
from league.games.registry import game_spec
from league.runs.blobs import BlobFolder

Capture = pytest.CaptureFixture[str]


def tables(text: str) -> list[list[dict[str, str]]]:
    parts = [part for part in text.split("\n\n") if "\t" in part]
    return [list(csv.DictReader(io.StringIO(part), delimiter="\t")) for part in parts]


@pytest.mark.long
def test_a_snapshot_is_analysed_against_what_its_league_has(
    served_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "new" / "folder"
    words = ["analyze", "main", "--run-dir", str(served_run), "--matches", "4", "--out", str(out)]
    assert main(words) == 0, capsys.readouterr().err
    probes, opponents, attention, last = tables(capsys.readouterr().out)
    report = json.loads((out / "analysis.json").read_text())
    bots = [bot.name for bot in game_spec("brawl").bots]
    assert [row["opponent"] for row in opponents] == [*bots, "main@1000"]
    assert {row["matches"] for row in opponents} == {"4"}
    assert (report["player"], report["matches"]) == ("main@2000", 4 * len(opponents))
    latent = report["probes"]["latent"]
    assert probes[0]["share"] == f"{latent['value']:.1%}"
    assert latent["low"] < latent["value"] < latent["high"]
    assert report["chance"] == pytest.approx(1 / len(opponents))
    assert latent["value"] > latent["chance_high"], "bots that act differently look different"
    assert latent["p_value"] < 0.05
    at_first = report["after"][0]["latent"]
    assert at_first["value"] == pytest.approx(report["chance"]), "nothing happened yet"
    assert [row["seconds"] for row in report["after"]] == [0, 1, 3]
    for one in report["opponents"]:
        assert sum(one["named"]) == pytest.approx(1.0)
    assert {row["attention"] for row in attention} == {"latent", "context"}
    weights = report["attention"]["latent"]["weight"]
    assert sum(weights) == pytest.approx(1.0, abs=1e-4)
    assert last[-1]["silhouette"] == "verdict"
    with Image.open(out / "analysis.png") as image:
        assert image.size == (1600, 1080)


def test_the_page_of_the_agent_measures_a_distance(
    served_run: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "agent.md"
    block = re.search(r"test_analyze.py -->\n```python\n(.*?)```", page.read_text(), re.DOTALL)
    assert block
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    Path("runs/laptop-1").symlink_to(served_run)
    words = ["record", "main@1000", "aggressive", "defensive", "--matches", "2", "--out", "matches"]
    assert main([*words, "--run-dir", str(served_run)]) == 0
    exec(compile(block[1], str(page), "exec"), {})
    name, distance = capsys.readouterr().out.splitlines()[-1].split()
    assert name == "distance"
    assert float(distance) > 0.0


def test_who_has_no_latent_or_too_few_opponents_is_told_so(
    served_run: Path, tmp_path: Path, capsys: Capture
) -> None:
    def refused(*words: str) -> str:
        capsys.readouterr()
        assert main(["analyze", *words]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    spec = game_spec("brawl")
    sizes = {"observation_size": spec.observation_size, "action_size": spec.action_size}
    agent = PerceptronNetwork(PerceptronConfig(**sizes))
    card = SnapshotCard(agent=agent.config, game="brawl", game_version=spec.version)
    digest = save_snapshot(BlobFolder(tmp_path), agent, card)
    assert digest[:12] in refused(str(tmp_path / f"{digest}.safetensors"))
    run = ("--run-dir", str(served_run))
    assert "based" in refused("based", *run)
    assert "--against" in refused("main@1000", "--against", "based", *run)
    assert "--against" in refused("main@1000", "--against", "based", "main@1000", *run)
    file = tmp_path / "file"
    file.touch()
    assert str(file) in refused("main@1000", *run, "--out", str(file))
