"""`league film`: a run's kept matches in the order of training, with its numbers, in a file."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_league import result_of, served
from game_run import make_game_run

from league.cli.main import main
from league.players import Book, Pairing
from league.replay import Replay, load_replay, save_replay
from league.replay.highlights import CLOSEST, Highlight, add_highlights
from league.rpc.client import MatchmakerClient
from league.runs.finding import live_address

HOSTILE = "</script><img src=//a.example>\x1b[31m"


@pytest.fixture(scope="module")
def recorded(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short matches of both snapshots of a run, each against a bot that they met."""
    folder = tmp_path_factory.mktemp("recorded")
    for step in (2000, 1000):
        for seed in range(2):
            name = folder / f"{step}-{seed}.replay"
            words = ["demo", f"main@{step}", "clockwork", "--seed", str(seed), "--save", str(name)]
            assert main([*words, "--run-dir", str(finished)]) == 0
    return folder


@pytest.fixture
def run(finished: Path, recorded: Path, tmp_path: Path) -> Path:
    """A copy of the run that keeps these matches."""
    shutil.copytree(finished, tmp_path / "laptop-1")
    shutil.copytree(recorded, tmp_path / "laptop-1" / "replays")
    return tmp_path / "laptop-1"


@pytest.fixture
def film(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Films a run, and returns the parts of the page's film."""

    def call(run: Path, *words: str) -> list[dict[str, Any]]:
        out = tmp_path / "x.html"
        assert main(["film", "--run-dir", str(run), "--out", str(out), *words]) == 0
        page = out.read_text(encoding="utf-8")
        assert not re.search(r"<img|(src|href)=|@import|url\(|https?://", page)
        found = re.search(r'id="data">([^<]+)</script>', page)
        assert found is not None
        film = json.loads(gzip.decompress(base64.b64decode(found[1])))
        assert sum(sum(part["shown"]) for part in film["parts"]) <= 60 * film["fps"]
        return film["parts"]

    return call


def titles(part: dict[str, Any]) -> list[list[str]]:
    """The different titles of a part, in their order."""
    found = [frame["title"] for frame in part["frames"] if "title" in frame]
    return [title for title, before in zip(found, [None, *found], strict=False) if title != before]


def test_it_goes_from_the_first_steps_to_the_last(run: Path, film: Callable[..., Any]) -> None:
    parts = film(run)
    assert [part["names"][0] for part in parts] == ["main@1000"] * 2 + ["main@2000"] * 2
    title, first = titles(parts[0])
    *_, last, end = titles(parts[-1])
    assert title[:2] == ["laptop-1", "brawl, preset smoke"]
    assert "LSTM" in title[2]
    for numbers, step, is_better in ((first, 1000, False), (last, 2000, True)):
        assert numbers[0] == f"{step:,} steps"
        assert re.fullmatch(r"Elo \d+ ± \d+", numbers[1])
        found = re.fullmatch(r"hardest bot: based, (\d+) % .* \((\d+) to (\d+) %\)", numbers[2])
        assert found is not None
        share, low, high = map(int, found.groups())
        assert low < share < high
        assert (share > 50) == is_better
        assert numbers[3] == f"main@{step} against clockwork"
    assert [line for line in end if first[1] in line]
    assert [line for line in end if last[1] in line]
    for part in parts:
        assert all(
            part["names"][0][5:] in frame["caption"].replace(",", "") for frame in part["frames"]
        )
        assert part["frames"][-1]["verdict"]


def test_a_short_film_shows_highlights_and_the_newest(run: Path, film: Callable[..., Any]) -> None:
    (part,) = film(run, "--seconds", "15")
    assert part["names"][0] == "main@2000"
    both = Highlight(
        kind=CLOSEST,
        match_id="1000-1",
        names=("main@1000", "clockwork"),
        winner="",
        words="",
        value=1.0,
        at=0.0,
    )
    add_highlights(run, [both])
    first, _ = film(run, "--seconds", "30")
    assert titles(first)[1][-1] == "main@1000 against clockwork (closest match)"


def test_matches_that_the_better_player_won_come_first(run: Path, film: Callable[..., Any]) -> None:
    with served(run, read_only=False):
        address = live_address(run)
        assert address is not None
        with MatchmakerClient(address) as client:  # kiter gets a rating, but never meets main@2000
            evaluator = client.open_incarnation("evaluator-0").number
            pairing = Pairing(player="kiter", opponent="constant", pairs=1, book=Book.EVAL, seed=7)
            matches = client.acquire_pairings(evaluator, [pairing])
            client.report_results(evaluator, [result_of(match) for match in matches])
    kept = run / "replays"
    seat = load_replay(kept / "2000-0.replay").seats[0]
    for path in kept.iterdir():
        path.unlink()
    saved = kept / "x.replay"
    assert main(["demo", "based", "random", "--seed", "3", "--save", str(saved)]) == 0
    won = load_replay(saved)
    assert won.winner == 0
    kiter = replace(won.seats[0], name="kiter")
    save_replay(saved, replace(won, seats=(kiter, seat)))
    save_replay(kept / "y.replay", replace(won, seats=(seat, kiter)))
    (part,) = film(run, "--seconds", "15")
    assert part["names"] == ["main@2000", "kiter"]


def test_what_cannot_be_shown_is_left_out(
    run: Path, film: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, forged, stranger, _ = sorted((run / "replays").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-9])
    save_replay(forged, replace(load_replay(forged), final="0" * 32))
    other = load_replay(stranger)
    seats = replace(other.seats[0], digest="0" * 64), other.seats[1]
    save_replay(stranger, replace(other, seats=seats))
    capsys.readouterr()
    assert [part["names"][0] for part in film(run)] == ["main@2000"]
    assert re.search(r"\b2\b.*1000-0", capsys.readouterr().err)


def test_hostile_names_stay_words(run: Path, film: Callable[..., Any]) -> None:
    for path in (run / "replays").iterdir():
        replay: Replay = load_replay(path)
        seats = replay.seats[0], replace(replay.seats[1], name=HOSTILE)
        save_replay(path, replace(replay, seats=seats))
    named = run.rename(run.with_name("<img>"))
    parts = film(named)
    assert titles(parts[0])[0][0] == "<img>"
    assert "\x1b" not in json.dumps(parts, ensure_ascii=False)


def test_an_unfinished_run_says_how_far_it_is(run: Path, film: Callable[..., Any]) -> None:
    with served(run, read_only=False):
        address = live_address(run)
        assert address is not None
        with MatchmakerClient(address) as client:
            learner = client.open_incarnation("learner-main", "main").number
            metrics = {"progress/steps": 2500.0, "progress/target_steps": 9000.0}
            client.heartbeat(learner, 2, step=2500, mix="league", metrics=metrics)
        assert "2,500 of 9,000 steps so far" in titles(film(run)[0])[0]


@pytest.mark.long
def test_a_game_of_choices_is_filmed_as_a_gif(tmp_path: Path) -> None:
    run = tmp_path / "kuhn-1"
    make_game_run(run, ["game.name=kuhn"])
    save = str(run / "replays" / "a.replay")
    (run / "replays").mkdir()
    assert main(["demo", "nash", "main@1000", "--run-dir", str(run), "--save", save]) == 0
    out = tmp_path / "x.gif"
    assert main(["film", "--run-dir", str(run), "--out", str(out), "--fps", "2"]) == 0
    assert out.read_bytes().startswith(b"GIF89a")


def test_without_replays_or_ffmpeg_a_sentence_says_what_to_do(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    words = ["film", "--run-dir", str(run), "--out", str(tmp_path / "x.mp4")]
    assert main(words) == 2
    assert "imageio-ffmpeg" in capsys.readouterr().err
    assert main([*words[:-1], str(tmp_path / "x.png")]) == 2
    shutil.rmtree(run / "replays")
    capsys.readouterr()
    assert main(words) == 2
    assert str(run) in capsys.readouterr().err


@pytest.mark.long
def test_a_terminal_sees_how_far_the_film_is(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for name in ("x.html", "x.gif"):
        words = ["film", "--run-dir", str(run), "--out", str(tmp_path / name), "--width", "160"]
        assert main(words) == 0
        said = capsys.readouterr().err
        numbers = re.findall(r"match (\d+) of (\d+)", said)
        assert [int(number) for number, _ in numbers] == list(range(1, int(numbers[0][1]) + 1))
