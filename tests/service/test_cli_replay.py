"""`league demo --save`, `replay` and `render`: a match is kept, found, shown again and drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from evaluator_league import register_bots_and_live, register_snapshot, write_config
from PIL import Image

from league.cli.main import main
from league.replay import load_replay
from league.replay.highlights import CLOSEST, Highlight, add_highlights
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from matchmaker.main import MatchmakerServer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "bout.replay"
    assert main(["demo", "based", "random", "--seed", "4", "--save", str(path)]) == 0
    return path


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_a_replay_is_told_as_the_demo_was(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = told(["demo", "based", "random", "--seed", "4"], capsys)
    assert told(["replay", str(saved)], capsys) == demo
    assert [seat.name for seat in load_replay(saved).seats] == ["based", "random"]
    assert saved.stat().st_size < 5000


def test_a_list_of_replays_marks_the_highlights(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "run.json").write_text(json.dumps({"format": FORMAT, "preset": "smoke"}))
    for name in ("ab", "cd"):
        shutil.copyfile(saved, tmp_path / "replays" / f"{name}.replay")
    closest = Highlight(
        kind=CLOSEST, match_id="cd", names=("based", "random"), winner="", words="", value=1, at=0
    )
    add_highlights(tmp_path, [closest])
    rows = [
        line.split("\t")
        for line in told(["replay", "--run-dir", str(tmp_path)], capsys).split("\n")
    ]
    assert {row[0]: row[-1] for row in rows if len(row) > 1} == {
        "match": "highlight",
        "ab": "",
        "cd": "closest match",
    }


def test_a_film_is_made_of_a_match(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.png"
    told(["render", str(saved), "--out", str(out), "--width", "320", "--from", "1"], capsys)
    with Image.open(out) as image:
        assert image.size == (320, 180)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one snapshot, and a replay of its match against a bot."""
    run = tmp_path_factory.mktemp("seen") / "run"
    (run / "replays").mkdir(parents=True)
    (run / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0.1.0"}))
    write_config(run)
    with (
        MatchmakerServer(db=run / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        register_bots_and_live(client)
        register_snapshot(client, run, 1000)
    out = run / "replays" / "fe01.replay"
    assert main(["demo", "based", "main@1000", "--run-dir", str(run), "--save", str(out)]) == 0
    return run


@pytest.mark.long
def test_what_an_agent_looked_at_is_drawn_and_told(
    seen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "attention.png"
    words = ["attention", "fe", "--run-dir", str(seen), "--out", str(out)]
    lines = told(words, capsys).splitlines()
    assert lines[0].split("\t")[:2] == ["attention", "mean_age_seconds"]
    rows = {
        line.split("\t")[0]: [float(value) for value in line.split("\t")[1:]] for line in lines[1:]
    }
    assert set(rows) == {"latent", "context"}
    for age, low, high, entropy, fixed in rows.values():
        assert 0 <= low <= age <= high <= 0.8
        assert 0 < entropy <= 1
        assert 0 <= fixed <= 1
    with Image.open(out) as image:
        assert image.size == (1600, 1160)
    file = seen / "replays" / "fe01.replay"
    told(
        ["attention", str(file), "--blobs", str(seen / "blobs"), "--out", str(out), "--to", "1"],
        capsys,
    )


def test_demo_of_two_snapshots_repeats_with_its_seed(
    served_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def demo(*flags: str) -> str:
        return told(["demo", "main@1000", "main", "--run-dir", str(served_run), *flags], capsys)

    first = demo("--seed", "3")
    assert "main@1000 against main@2000, seed 3:" in first, (
        "a live player is shown by its newest snapshot"
    )
    assert first == demo("--seed", "3")
    assert first != demo("--seed", "4")
    assert first != demo("--seed", "3", "--greedy")
