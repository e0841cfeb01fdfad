"""Films: the right part of a match, at the right pace, in files that can be opened."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import math
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from league.errors import DataCorrupt, InvalidInput
from league.games.base import EXTERNAL
from league.games.brawl.rules import KO
from league.games.drawing.painter import Painter
from league.games.registry import make_batched
from league.replay import Contender, MatchRecorder, Recipe, Replay, final_digest
from league.views.film import FORMATS, Clip, Cut, film_json, write_film
from league.views.film.clip import VERDICT_SECONDS
from league.views.film.files import NARROWEST, write_clips

SECONDS = 2
NAMES = ("main@100", "<b>&co")


def record(name: str = "brawl", seed: int = 5, **options: int) -> Replay:
    game = make_batched(name, 1, **options)
    bots = (game.spec.bot_index("based"), EXTERNAL) if name == "brawl" else (EXTERNAL, EXTERNAL)
    game.bots_N2[0] = bots
    game.reset(np.array([seed], np.uint64))
    first, second = (Contender(name=name) for name in NAMES)
    recipe = Recipe(name=name, version=game.spec.version, **options)
    take = MatchRecorder(recipe=recipe, seats=(first, second), bots=bots, seed=seed)
    while not game.ended_N[0]:
        actions_N2A = game.idle_actions()
        take.note(actions_N2A[0])
        game.step(actions_N2A)
    return take.finish(float(game.outcomes_N[0]), final_digest(game, 0))


@pytest.fixture(scope="module")
def replay() -> Replay:
    return record(max_frames=30 * SECONDS)


def pictures(replay: Replay, fps: float, **cut: float) -> list[tuple[dict, dict | None]]:
    """The frame and the verdict that each picture shows."""
    frames = Clip(replay, fps, Cut(**cut)).frames()
    return [(frame, verdict) for frame, verdict, shown in frames for _ in range(shown)]


@pytest.mark.parametrize("fps", [10, 30, 60, 7.5])
def test_a_film_has_so_many_pictures_a_second(replay: Replay, fps: float) -> None:
    assert len(pictures(replay, fps, start=0.5, stop=1.5)) == pytest.approx(fps, abs=1)
    verdict = round(VERDICT_SECONDS * fps)
    assert len(pictures(replay, fps)) == pytest.approx(SECONDS * fps + verdict, abs=1)
    assert len(pictures(replay, fps, stop=SECONDS + 1)) == len(pictures(replay, fps))


def test_a_cut_starts_and_ends_where_it_should(replay: Replay) -> None:
    cut = pictures(replay, 30, start=1.0, stop=1.5)
    assert [frame["frame"] for frame, _ in cut] == list(range(30, 45))


def test_only_the_end_shows_the_verdict(replay: Replay) -> None:
    verdicts = [verdict for _, verdict in pictures(replay, 30)]
    shown = [verdict is not None for verdict in verdicts]
    assert shown.index(True) > 30 * SECONDS
    assert verdicts[-1] == {"text": "a draw", "winner": None}
    assert not any(verdict for _, verdict in pictures(replay, 30, stop=1))


def test_a_knock_out_that_ended_the_match_is_shown() -> None:
    """The game keeps no frame of it, so the film adds it."""
    won = record("brawl", seed=5, max_frames=2700)
    (frame, verdict), loser = pictures(won, 30)[-1], int(won.outcome == 1.0)
    assert won.frames < 2700
    assert (frame["players"][loser]["state"], frame["players"][loser]["stocks"]) == (KO, 0)
    assert frame["players"][1 - loser]["state"] != KO
    assert verdict == {"text": f"{NAMES[1 - loser]} wins", "winner": 1 - loser}


def test_a_forged_replay_makes_no_film(replay: Replay, tmp_path: Path) -> None:
    forged = dataclasses.replace(replay, final="0" * 32)
    with pytest.raises(DataCorrupt, match=r"state"):
        write_film(tmp_path / "x.html", forged)
    assert list(tmp_path.iterdir()) == []


def test_the_page_holds_the_film_and_needs_nothing_else(replay: Replay, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    write_film(path, replay)
    page = path.read_text(encoding="utf-8")
    found = re.search(r'id="data">([^<]+)</script>', page)
    assert found is not None
    film = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert film == json.loads(json.dumps(film_json(replay, Cut(), 30, 1280)))
    assert film["size"] == [1280, 720]
    assert film["names"] == list(NAMES)
    assert "{{" not in page
    assert "&lt;b&gt;&amp;co" in page
    assert NAMES[1] not in page
    assert not re.search(r"""(src|href)=|@import|url\(|https?://""", page)


def data_of(page: Path) -> Any:
    """What the page's player gets."""
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=|@import|url\(|https?://""", text)
    found = re.search(r'id="data">([^<]+)</script>', text)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_titles_are_held_and_a_caption_stays(replay: Replay) -> None:
    opening, closing = [(["run", "1 step"], 1.5), (["next"], 0.5)], [(["end"], 1.0)]
    cut = Cut(start=1.0, stop=1.5)
    clip = Clip(replay, 10, cut, caption="early", opening=opening, closing=closing)
    shown = [(frame, words) for frame, words, count in clip.pictures() for _ in range(count)]
    titles = [words.get("title") for _, words in shown]
    assert titles == [["run", "1 step"]] * 15 + [["next"]] * 5 + [None] * 5 + [["end"]] * 10
    assert {words["caption"] for _, words in shown} == {"early"}
    assert [frame["frame"] for frame, _ in shown[:20]] == [30] * 20
    assert {frame["frame"] for frame, _ in shown[-10:]} == {44}


def test_a_page_plays_clips_one_after_another(replay: Replay, hand: Replay, tmp_path: Path) -> None:
    clips = [Clip(one, 10, Cut(), opening=[([NAMES[1]], 1.0)]) for one in (replay, hand)]
    write_clips(tmp_path / "x.html", clips, NAMES[1], 1280)
    page, film = (tmp_path / "x.html").read_text(encoding="utf-8"), data_of(tmp_path / "x.html")
    assert NAMES[1] not in page
    assert "<title>&lt;b&gt;&amp;co</title>" in page
    alone = [film_json(one, Cut(), 10, 1280) for one in (replay, hand)]
    for part, single in zip(film["parts"], json.loads(json.dumps(alone)), strict=True):
        assert part["still"] == single["still"]
        assert [frame for frame in part["frames"] if "title" not in frame] == single["frames"]
        assert part["shown"][0] == 10
    assert film["seconds"] == pytest.approx(2 + SECONDS + hand.frames + 2 * VERDICT_SECONDS)


def test_a_gif_gets_smaller_pictures_until_it_fits(replay: Replay, tmp_path: Path) -> None:
    clips, sizes, path = [Clip(replay, 5, Cut(start=1.0, stop=1.8))], [], tmp_path / "x.gif"
    most = math.inf
    for _ in range(2):
        write_clips(path, clips, "", 480, most)
        with Image.open(path) as gif:
            sizes.append((gif.size, gif.n_frames))
        assert path.stat().st_size <= most
        most = 0.75 * path.stat().st_size
    ((whole, pictures), ((width, height), fewer)) = sizes
    assert (whole, pictures) == ((480, 270), fewer)
    assert NARROWEST <= width < 480
    assert height == round(width * 9 / 16)
    with pytest.raises(InvalidInput, match=r"0\.001 MB"):
        write_clips(tmp_path / "y.gif", clips, "", 480, 1000)
    assert not (tmp_path / "y.gif").exists()


def test_a_name_stays_text_where_it_looks_like_a_blank_of_the_page(
    replay: Replay, tmp_path: Path
) -> None:
    first, second = replay.seats
    seats = dataclasses.replace(first, name="{{data}}{{player}}"), second
    write_film(tmp_path / "x.html", dataclasses.replace(replay, seats=seats), cut=Cut(stop=0.5))
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<title>{{data}}{{player}} against " in page


@pytest.mark.long
def test_a_gif_has_nearly_the_colours_of_the_picture(replay: Replay, tmp_path: Path) -> None:
    path, cut = tmp_path / "x.gif", Cut(start=1.0, stop=2.0)
    write_film(path, replay, cut=cut, fps=10, width=480)
    write_film(tmp_path / "x.png", replay, cut=cut, fps=10, width=480)
    with Image.open(path) as gif, Image.open(tmp_path / "x.png") as whole:
        first, true = (np.asarray(one.convert("RGB"), float) for one in (gif, whole))
    assert np.abs(first - true).mean() < 2.5, "the sky's gradient has no bands"
    assert np.abs(first - true).max() < 60, "small bright things keep their colours"


def test_a_gif_moves_at_its_pace(replay: Replay, tmp_path: Path) -> None:
    path = tmp_path / "x.gif"
    write_film(path, replay, cut=Cut(start=0, stop=1), fps=10, width=160)
    with Image.open(path) as gif:
        assert gif.size == (160, 90)
        assert 8 <= gif.n_frames <= 10
        assert gif.info["duration"] == 100
        assert gif.info["loop"] == 0


def test_a_png_is_the_moment_asked_for(replay: Replay, tmp_path: Path) -> None:
    looks = []
    for start in (0.0, 1.0):
        write_film(tmp_path / "x.png", replay, cut=Cut(start=start), height=90)
        with Image.open(tmp_path / "x.png") as image:
            assert image.size == (160, 90)
            looks.append(np.asarray(image))
    assert not np.array_equal(*looks)


def test_the_frames_as_json(replay: Replay, tmp_path: Path) -> None:
    write_film(tmp_path / "x.json", replay, cut=Cut(start=0.5, stop=1.0))
    film = json.loads((tmp_path / "x.json").read_text())
    assert film["still"]["stage"] == "warehouse"
    assert [moving["frame"] for moving in film["moving"]] == list(range(15, 30))


@pytest.fixture
def ffmpeg(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A stand-in for imageio-ffmpeg that keeps what it is given."""
    seen = types.SimpleNamespace(frames=[], size=(0, 0), fps=0.0, fails_at=10**9)

    def write_frames(
        path: str, size: tuple[int, int], *, fps: float, **_: object
    ) -> Iterator[None]:
        seen.size, seen.fps = size, fps
        with Path(path).open("wb") as file:
            while True:
                image = yield
                seen.frames.append(np.frombuffer(image, np.uint8).reshape(size[1], size[0], 3))
                if len(seen.frames) > seen.fails_at:
                    raise OSError("disk full")
                file.write(b"x")

    module = types.ModuleType("imageio_ffmpeg")
    module.write_frames = write_frames  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", module)
    return seen


def still(replay: Replay, folder: Path, start: float) -> NDArray[np.uint8]:
    """A moment of the match as a PNG of 162 x 92 shows it."""
    write_film(folder / "x.png", replay, cut=Cut(start=start), width=162, height=92)
    with Image.open(folder / "x.png") as image:
        return np.asarray(image.convert("RGB"))


def test_ffmpeg_gets_every_picture(
    replay: Replay, tmp_path: Path, ffmpeg: types.SimpleNamespace
) -> None:
    write_film(tmp_path / "x.mp4", replay, cut=Cut(stop=1), width=161, height=91)
    assert (ffmpeg.size, len(ffmpeg.frames), ffmpeg.fps) == ((162, 92), 30, 30)
    assert [path.name for path in tmp_path.iterdir()] == ["x.mp4"]
    for number in (0, 15):
        assert np.array_equal(ffmpeg.frames[number], still(replay, tmp_path, number / 30))


def test_an_mp4_plays(replay: Replay, tmp_path: Path) -> None:
    """With ffmpeg itself: the film that is read back has the same pictures, but for the codec."""
    reader = pytest.importorskip("imageio_ffmpeg", reason="mp4 needs the package imageio-ffmpeg")
    write_film(tmp_path / "x.mp4", replay, cut=Cut(stop=1), width=161, height=91)
    film = reader.read_frames(str(tmp_path / "x.mp4"))
    facts = next(film)
    frames = [np.frombuffer(frame, np.uint8).reshape(92, 162, 3) for frame in film]
    assert (facts["size"], facts["fps"], len(frames)) == ((162, 92), 30, 30)
    for number in (0, 15):
        wanted = still(replay, tmp_path, number / 30).astype(float)
        assert np.abs(frames[number] - wanted).mean() < 5
    assert np.abs(frames[0] - frames[15].astype(float)).mean() > 0


def test_an_mp4_that_breaks_off_leaves_nothing(
    replay: Replay, tmp_path: Path, ffmpeg: types.SimpleNamespace
) -> None:
    ffmpeg.fails_at = 5
    with pytest.raises(InvalidInput, match="disk full"):
        write_film(tmp_path / "x.mp4", replay, width=160)
    assert list(tmp_path.iterdir()) == []


def test_without_ffmpeg_one_sentence_says_what_to_do(
    replay: Replay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(InvalidInput, match="imageio-ffmpeg"):
        write_film(tmp_path / "x.mp4", replay)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.avi", {}, r"\.mp4, \.gif, \.png, \.html, \.json"),
        ("x.png", {"width": 0}, "0 x 0"),
        ("x.html", {"width": 10**6}, "1000000"),
        ("x.gif", {"fps": 0}, r"\b0\b"),
        ("x.png", {"cut": Cut(start=99)}, r"\b2\.0 s"),
        ("no/x.png", {}, "no/x.png"),
    ],
)
def test_mistakes_are_named(
    replay: Replay, tmp_path: Path, name: str, options: dict, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        write_film(tmp_path / name, replay, **options)


@pytest.fixture(scope="module")
def hand() -> Replay:
    """A hand of leduc of several choices, that does not end in a draw."""
    return next(
        replay
        for seed in range(20)
        if (replay := record("leduc", seed)).frames > 3 and replay.outcome != 0.5
    )


def test_each_choice_is_shown_for_its_second(hand: Replay) -> None:
    shown = [frame["frame"] for frame, _ in pictures(hand, 10)]
    verdict = [hand.frames] * round(VERDICT_SECONDS * 10)
    assert shown == [n for n in range(hand.frames) for _ in range(10)] + verdict
    assert film_json(hand, Cut(), 10, 1280)["seconds"] == hand.frames
    assert film_json(hand, Cut(start=1.0, stop=2.0), 10, 1280)["seconds"] == 1.0
    assert film_json(hand, Cut(start=1.0, stop=99.0), 10, 1280)["seconds"] == hand.frames - 1


def test_a_game_of_choices_ends_with_its_payoffs(hand: Replay, tmp_path: Path) -> None:
    last = film_json(hand, Cut(), 10, 1280)["frames"][-1]
    painter = Painter(1280, 720, NAMES)
    end, verdict = pictures(hand, 10)[-1]
    painter.see(end, verdict)
    texts = " ".join(shape[-1] for shape in painter.shapes() if shape[0] == "text")
    assert f"{hand.frames} of at most 8" in texts
    assert "payoff" in texts
    assert f"{NAMES[0 if hand.outcome == 1.0 else 1]} wins" in texts
    assert film_json(hand, Cut(start=hand.frames), 10, 1280)["frames"][-1] == last
    images = []
    for cut in (None, Cut(start=hand.frames), Cut(start=hand.frames - 0.5), Cut(start=0.0)):
        write_film(tmp_path / "x.png", hand, cut=cut, width=320)
        images.append((tmp_path / "x.png").read_bytes())
    assert images[0] == images[1]
    assert len({*images}) == 3
    write_film(tmp_path / "x.json", hand)
    assert json.loads((tmp_path / "x.json").read_text())["moving"][-1]["ended"]


def test_other_games_make_films_too(tmp_path: Path) -> None:
    replay = record("kuhn")
    for ending in (".html", ".png", ".json"):
        write_film(tmp_path / f"x{ending}", replay)
    assert set(FORMATS) == {".mp4", ".gif", ".png", ".html", ".json"}
