"""Writes films as files: mp4, gif, png, a page for the browser, or the frames as JSON."""

from __future__ import annotations

import base64
import gzip
import html
import importlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from league.errors import InvalidInput
from league.games.base import CHOICE
from league.games.drawing import drawable, moving_part, still_part
from league.games.drawing.painter import DRAW_JS, HEIGHT, Painter, check_size
from league.replay import Playback, Replay
from league.runs.files import write_whole
from league.views.film.clip import ROUNDING, Clip, Cut

GIF_COLOURS = 128


def write_film(
    path: Path,
    replay: Replay,
    *,
    cut: Cut | None = None,
    fps: float | None = None,
    width: int | None = None,
    height: int | None = None,
) -> None:
    """Writes a film in the format that the file's ending means.

    Args:
        path: the file.
        replay: the match.
        cut: the part of the match, by default the whole match.
        fps: pictures per second.
        width: width in pixels. If only the width or the height is given, the ratio is 16 to 9.
        height: height in pixels.

    Raises:
        InvalidInput: the ending is unknown, the size or speed is impossible, or a package is
            missing.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InvalidInput(
            f"a film can't be written as {path.name!r}: end it in {', '.join(FORMATS)}"
        )
    usual_width, usual_fps = (480, 12) if suffix == ".gif" else (1280, 30)
    if width is None:
        width = usual_width if height is None else round(height * 16 / 9)
    height = round(width * 9 / 16) if height is None else height
    check_size(width, height)
    fps = usual_fps if fps is None else fps
    FORMATS[suffix](path, replay, cut or Cut(), fps, width, height)


def _pixels(
    replay: Replay, cut: Cut, fps: float, width: int, height: int
) -> Iterator[NDArray[np.uint8]]:
    clip = Clip(replay, fps, cut)
    painter = Painter(width, height, replay.names)
    for frame, ending, count in clip.frames():
        painter.see(frame, ending)
        if count:
            image = painter.paint()
            for _ in range(count):
                yield image


def _write_mp4(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    ffmpeg = _video_writer()
    # The codec halves the resolution of colours, so both sides must be even.
    width, height = width + width % 2, height + height % 2
    images = _pixels(replay, cut, fps, width, height)
    first = next(images)
    draft = path.with_name(f".{path.stem}.draft{path.suffix}")
    try:
        writer = ffmpeg.write_frames(
            str(draft), (width, height), fps=fps, quality=7, macro_block_size=2
        )
        writer.send(None)
        writer.send(first.tobytes())
        for image in images:
            writer.send(image.tobytes())
        writer.close()
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} can't be written ({error}): name another place") from None
    finally:
        draft.unlink(missing_ok=True)


def _video_writer() -> ModuleType:
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ImportError:
        raise InvalidInput(
            "mp4 needs the package imageio-ffmpeg: run `bin/bootstrap --all` or "
            "`pip install 'kumite[video]'`, or choose gif or html, which need nothing"
        ) from None


def _write_gif(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    images = [Image.fromarray(pixels) for pixels in _pixels(replay, cut, fps, width, height)]
    palette = _common_palette(images)
    first, *others = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    options = {"append_images": others, "duration": 1000 / fps, "loop": 0, "optimize": False}
    _save(path, first, format="gif", save_all=True, **options)


def _common_palette(images: list[Image.Image]) -> Image.Image:
    """Returns a palette for the whole film, from a sample of its pictures. A common palette keeps
    colours from flickering.
    """
    some = images[:: max(1, len(images) // 12)][:12]
    sheet = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for number, image in enumerate(some):
        sheet.paste(image, (0, number * image.height))
    return sheet.quantize(GIF_COLOURS, method=Image.Quantize.MAXCOVERAGE)


def _write_png(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    """Writes the picture at the cut's start, by default the match's beginning. In games of choices,
    the default is the match's end.
    """
    if cut.start is None:
        cut = Cut(start=_informative_second(replay))
    image = Image.fromarray(next(_pixels(replay, cut, fps, width, height)))
    _save(path, image, format="png", optimize=True)


def _informative_second(replay: Replay) -> float:
    game = replay.recipe.make()
    game.close()
    return replay.frames / game.spec.frames_per_second if game.spec.action_kind == CHOICE else 0.0


def _save(path: Path, image: Image.Image, **options: Any) -> None:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    write_whole(path, buffer.getvalue())


def film_json(replay: Replay, cut: Cut, fps: float, width: float) -> dict[str, Any]:
    """Returns a film in the form for player.js.

    Args:
        replay: the match.
        cut: the part of the match.
        fps: pictures per second.
        width: the width of a picture whose height is `HEIGHT`.

    Returns:
        The film's `size` as [width, height], its `fps`, the number of `seconds` of the match that
        it shows, the players' `names`, the constant part of all frames as `still`, the `frames` in
        the form for draw.js, and in `shown` the number of pictures for each frame.
    """
    clip = Clip(replay, fps, cut)
    still: dict[str, Any] | None = None
    frames: list[dict[str, Any]] = []
    shown: list[int] = []
    for frame, ending, count in clip.frames():
        still = still_part(frame) if still is None else still
        frames.append(drawable(frame, replay.names) | ({"verdict": ending} if ending else {}))
        shown.append(count)
    return {
        "size": [round(width), HEIGHT],
        "fps": fps,
        "seconds": clip.seconds,
        "names": replay.names,
        "still": still,
        "frames": frames,
        "shown": shown,
    }


def film_page(
    replay: Replay, cut: Cut, fps: float = 30, width: int = 1280, height: int = 720
) -> str:
    """Returns a self-contained page with the film, the drawing code and the player.

    Args:
        replay: the match.
        cut: the part of the match.
        fps: pictures per second.
        width, height: the aspect ratio of a picture.
    """
    here = Path(__file__).parent
    film = json.dumps(film_json(replay, cut, fps, HEIGHT * width / height), separators=(",", ":"))
    first, second = map(html.escape, replay.names)
    blanks: Mapping[str, str] = {
        "title": f"{first} against {second}",
        "heading": f"<b>{first}</b> against <b>{second}</b>",
        "aspect": f"{width} / {height}",
        "draw": DRAW_JS.read_text(encoding="utf-8"),
        "player": (here / "player.js").read_text(encoding="utf-8"),
        "data": base64.b64encode(gzip.compress(film.encode(), 9, mtime=0)).decode(),
    }
    page = (here / "page.html").read_text(encoding="utf-8")
    # All blanks are filled in a single pass, because a player's name may look like a blank.
    return re.sub(r"\{\{(\w+)\}\}", lambda blank: blanks[blank[1]], page)


def _write_html(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    write_whole(path, film_page(replay, cut, fps, width, height))


def _write_json(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    """Writes the game's frames for other programs: {still, moving: [...]}."""
    with Playback(replay) as playback:
        per_second = playback.game.spec.frames_per_second
        frames = list(playback.frames())
        if (end := playback.game.final_frame(0)) is not None:
            frames.append(end)
    last = None if cut.stop is None else round(cut.stop * per_second)
    moving = [
        moving_part(frame) for frame in frames[int(cut.begins * per_second + ROUNDING) : last]
    ]
    content = {"still": still_part(frames[0]), "moving": moving}
    write_whole(path, json.dumps(content, separators=(",", ":")))


FORMATS: Mapping[str, Callable[[Path, Replay, Cut, float, int, int], None]] = {
    ".mp4": _write_mp4,
    ".gif": _write_gif,
    ".png": _write_png,
    ".html": _write_html,
    ".json": _write_json,
}
"""Writers by file ending."""
