"""Films as files: mp4, gif, png, a page for the browser, and the bare frames as JSON."""

from __future__ import annotations

import base64
import gzip
import html
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import InvalidInput
from league.games.base import CHOICE
from league.games.render.picture import HEIGHT
from league.games.render.raster import Canvas, check_size
from league.games.render.wire import moving_part, still_part
from league.replay import Playback, Replay
from league.runs.files import write_whole
from league.views.film.reel import ROUNDING, Cut, Reel

_HERE = Path(__file__).parent
GIF_COLOURS = 128


@dataclass(frozen=True, kw_only=True)
class Format:
    """What a file of this ending is made with unless something else is asked for."""

    fps: float
    width: int
    height: int
    write: Callable[[Path, Replay, Cut, float, int, int], None]


def write_film(
    path: Path,
    replay: Replay,
    *,
    cut: Cut | None = None,
    fps: float | None = None,
    width: int | None = None,
    height: int | None = None,
) -> None:
    """Writes the film that the file's ending asks for; a width alone sets the height, 16 to 9.

    Raises `InvalidInput` for another ending, size or speed, or when a package is missing for it.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InvalidInput(
            f"a film can't be written as {path.name!r}: end it in {', '.join(FORMATS)}"
        )
    shape = form.width / form.height
    wide = width if width is not None else form.width if height is None else round(height * shape)
    tall = height if height is not None else round(wide / shape)
    check_size(wide, tall)
    form.write(path, replay, cut or Cut(), form.fps if fps is None else fps, wide, tall)


def _pixels(
    replay: Replay, cut: Cut, fps: float, width: int, height: int
) -> Iterator[NDArray[np.uint8]]:
    canvas = Canvas(width, height)
    reel = Reel(replay, canvas.picture_width, fps, cut)
    shown = None
    for picture in reel.pictures():
        if shown is None or picture is not shown[0]:
            shown = picture, canvas.draw(picture, reel.stills)
        yield shown[1]


def _write_mp4(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    ffmpeg = _video_writer()
    # the codec halves the colours' resolution
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
            "mp4 needs the package imageio-ffmpeg: run `.venv/bin/python -m pip install imageio-ffmpeg`, "
            "or choose gif or html, which need nothing"
        ) from None


def _write_gif(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    from PIL import Image

    images = [Image.fromarray(pixels) for pixels in _pixels(replay, cut, fps, width, height)]
    palette = _palette(images)
    flat = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    _save(
        path,
        lambda draft: flat[0].save(
            draft,
            format="gif",
            save_all=True,
            append_images=flat[1:],
            duration=1000 / fps,
            loop=0,
            optimize=False,
        ),
    )


def _palette(images: list[Any]) -> Any:
    """One for the whole film, from a few of its pictures, so that colours don't flicker."""
    from PIL import Image

    some = images[:: max(1, len(images) // 12)][:12]
    sheet = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for number, image in enumerate(some):
        sheet.paste(image, (0, number * image.height))
    return sheet.quantize(GIF_COLOURS, method=Image.Quantize.MAXCOVERAGE)


def _write_png(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    """The picture at the cut's beginning; where none is named, of a game of choices the end."""
    from PIL import Image

    if cut.start is None:
        cut = Cut(start=_telling_second(replay))
    image = Image.fromarray(next(_pixels(replay, cut, fps, width, height)))
    _save(path, lambda draft: image.save(draft, format="png", optimize=True))


def _telling_second(replay: Replay) -> float:
    game = replay.recipe.make()
    try:
        spec = game.spec
    finally:
        game.close()
    return replay.frames / spec.frames_per_second if spec.action_kind == CHOICE else 0.0


def _save(path: Path, save: Callable[[Any], None]) -> None:
    import io

    buffer = io.BytesIO()
    save(buffer)
    write_whole(path, buffer.getvalue())


def film_json(replay: Replay, cut: Cut, fps: float, width: float) -> dict[str, Any]:
    """The film as player.js takes it: {size, fps, seconds (of the match in it), stills,
    pictures}.
    """
    reel = Reel(replay, width, fps, cut)
    pictures = [picture.as_json()["layers"] for picture in reel.pictures()]
    size = [round(width), round(HEIGHT)]
    return {
        "size": size,
        "fps": fps,
        "seconds": reel.seconds,
        "stills": reel.stills,
        "pictures": pictures,
    }


def _write_html(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    """One page that needs nothing else: the film, and the player that draws it."""
    film = json.dumps(film_json(replay, cut, fps, HEIGHT * width / height), separators=(",", ":"))
    first, second = (html.escape(seat.name) for seat in replay.seats)
    blanks: Mapping[str, str] = {
        "title": f"{first} against {second}",
        "heading": f"<b>{first}</b> against <b>{second}</b>",
        "aspect": f"{width} / {height}",
        "player": (_HERE / "player.js").read_text(encoding="utf-8"),
        "data": base64.b64encode(gzip.compress(film.encode(), 9, mtime=0)).decode(),
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    for name, text in blanks.items():
        page = page.replace(f"{{{{{name}}}}}", text)
    write_whole(path, page)


def _write_json(path: Path, replay: Replay, cut: Cut, fps: float, width: int, height: int) -> None:
    """The game's frames themselves, for viewers and tables of one's own: {still, moving: [...]}."""
    playback = Playback(replay)
    try:
        per_second = playback.game.spec.frames_per_second
        frames = list(playback.frames())
        if (end := playback.game.final_frame(0)) is not None:
            frames.append(end)
    finally:
        playback.close()
    last = None if cut.stop is None else round(cut.stop * per_second)
    moving = [
        moving_part(frame) for frame in frames[int(cut.begins * per_second + ROUNDING) : last]
    ]
    write_whole(
        path, json.dumps({"still": still_part(frames[0]), "moving": moving}, separators=(",", ":"))
    )


FORMATS: Mapping[str, Format] = {
    ".mp4": Format(fps=30, width=1280, height=720, write=_write_mp4),
    ".gif": Format(fps=12, width=480, height=270, write=_write_gif),
    ".png": Format(fps=30, width=1280, height=720, write=_write_png),
    ".html": Format(fps=30, width=1280, height=720, write=_write_html),
    ".json": Format(fps=30, width=1280, height=720, write=_write_json),
}
"""By file ending."""
