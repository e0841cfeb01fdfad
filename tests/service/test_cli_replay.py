"""`league demo --save`, `league replay` and `league render`: a match is kept, found, told again and drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from league.cli.connect import FORMAT
from league.cli.main import main
from league.replay import load_replay


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "bout.replay"
    assert main(["demo", "based", "random", "--seed", "4", "--save", str(path)]) == 0
    return path


@pytest.fixture
def run_dir(tmp_path: Path, saved: Path) -> Path:
    """A run whose evaluator kept two replays, and a file that is none."""
    folder = tmp_path / "run"
    (folder / "replays").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"format": FORMAT, "version": "0.1.0"}))
    for match_id in ("ab12cd", "ab34ef"):
        shutil.copy(saved, folder / "replays" / f"{match_id}.replay")
    (folder / "replays" / "broken.replay").write_bytes(saved.read_bytes()[:100])
    return folder


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(words) != 0
    return capsys.readouterr().err


def test_a_replay_is_told_as_the_demo_was(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo = told(["demo", "based", "random", "--seed", "4"], capsys)
    assert told(["replay", str(saved)], capsys) == demo
    assert [seat.name for seat in load_replay(saved).seats] == ["based", "random"]
    assert saved.stat().st_size < 5000


def test_a_match_of_a_run_is_found_by_the_beginning_of_its_id(
    run_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["--run-dir", str(run_dir)]
    assert "based against random" in told(["replay", "ab1", *run], capsys)
    assert "2 replays begin with ab" in refused(["replay", "ab", *run], capsys)
    assert "no replay of match ff" in refused(["replay", "ff", *run], capsys)
    assert "no file ../x" in refused(["replay", "../x", *run], capsys)


def test_a_run_s_replays_are_listed(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(["replay", "--run-dir", str(run_dir)], capsys).splitlines()
    assert lines[0].split("\t") == ["match", "seat 0", "seat 1", "won by", "frames"]
    rows = {line.split("\t")[0]: line.split("\t") for line in lines[1:]}
    assert set(rows) == {"ab12cd", "ab34ef", "broken"}
    replay = load_replay(run_dir / "replays" / "ab12cd.replay")
    winner = {1.0: "based", 0.0: "random", 0.5: "a draw"}[replay.outcome]
    assert rows["ab12cd"][1:] == ["based", "random", winner, str(replay.frames)]
    assert "cut short" in rows["broken"][3]


def test_a_film_is_made_of_a_match(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.png"
    told(
        ["render", "ab34", "--run-dir", str(run_dir), "--out", str(out), "--width", "320", "--from", "1"],
        capsys,
    )
    with Image.open(out) as image:
        assert image.size == (320, 180)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["render", "{file}", "--out", "x.doc"], "end it in .mp4"),
        (["render", "{file}", "--out", "x.png", "--from", "3", "--to", "2"], "a film can't go"),
        (["render", "{file}"], "--out"),
        (["render", "nowhere.replay", "--out", "x.png"], "no replay nowhere.replay"),
        (["replay", "{file}", "--speed", "0"], "--speed 0.0"),
        (["demo", "based", "random", "--save", "no/where.replay"], "can't be written"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], message: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused([word.format(file=saved) for word in words], capsys)
    assert message in said
    assert "Traceback" not in said


def test_a_damaged_file_is_named(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "half.replay"
    path.write_bytes(saved.read_bytes()[:-20])
    assert "half.replay is cut short" in refused(["replay", str(path)], capsys)
