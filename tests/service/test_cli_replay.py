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
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from matchmaker.main import MatchmakerServer


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "bout.replay"
    assert main(["demo", "based", "random", "--seed", "4", "--save", str(path)]) == 0
    return path


@pytest.fixture
def run_dir(tmp_path: Path, saved: Path) -> Path:
    """A run with two replays, and a broken one."""
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


def test_a_film_is_made_of_a_match(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.png"
    told(
        [
            "render",
            "ab34",
            "--run-dir",
            str(run_dir),
            "--out",
            str(out),
            "--width",
            "320",
            "--from",
            "1",
        ],
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
        (["replay", "{file}", "--speed", "0"], "'--speed'"),
        (["demo", "based", "random", "--save", "no/where.replay"], "can't be written"),
    ],
)
def test_mistakes_are_one_sentence(
    words: list[str], message: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused([word.format(file=saved) for word in words], capsys)
    assert message in said
    assert "Traceback" not in said


def test_a_damaged_file_is_named(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "half.replay"
    path.write_bytes(saved.read_bytes()[:-20])
    assert "half.replay is damaged or cut short" in refused(["replay", str(path)], capsys)


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fe", "--out", "{tmp}/x.gif"], "name a file that ends in .png"),
        (
            ["fe", "--seat", "0", "--out", "{tmp}/x.png"],
            "based in seat 0 has no weights: read --seat 1",
        ),
        (["fe", "--from", "9", "--out", "{tmp}/x.png"], "it can't be shown from 9 s"),
        (["ff", "--out", "{tmp}/x.png"], "no replay of match ff"),
        (["fe", "--blobs", "{tmp}", "--out", "{tmp}/x.png"], "the weights of main@1000 are not in"),
        (["{bots}", "--out", "{tmp}/x.png"], "based and random have no weights"),
    ],
)
def test_attention_s_mistakes_are_one_sentence(
    words: list[str],
    message: str,
    seen: Path,
    saved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled = [word.format(tmp=tmp_path, bots=saved) for word in words]
    said = refused(["attention", *filled, "--run-dir", str(seen)], capsys)
    assert message in said
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("x.*"))
