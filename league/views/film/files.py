"""Writes films as files: mp4, gif, png, a page for the browser, or the frames as JSON."""

from __future__ import annotations

import base64
import gzip
import html
import importlib
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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

GIF_COLOURS = 256
Show = Callable[[str], None]
"""Shows a line of progress."""
NARROWEST = 240
"""Smallest width, in pixels, to which a GIF is reduced. In a narrower picture, text is unreadable.
"""


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
    usual_width, usual_fps = usual_shape(path, FORMATS)
    if width is None:
        width = usual_width if height is None else round(height * 16 / 9)
    height = round(width * 9 / 16) if height is None else height
    check_size(width, height)
    clip = Clip(replay, usual_fps if fps is None else fps, cut or Cut())
    FORMATS[path.suffix.lower()](path, [clip], width, height)


def write_clips(
    path: Path,
    clips: Sequence[Clip],
    title: str,
    width: int,
    most_bytes: float = math.inf,
    show: Show = lambda text: None,
) -> None:
    """Writes a film of several clips as .html, .gif or .mp4.

    Args:
        path: the file. `usual_shape` has checked its ending.
        clips: the clips in their order, all with the same number of pictures per second.
        title: the title of the page, if the file is .html.
        width: width in pixels. The ratio is 16 to 9.
        most_bytes: largest size of a .gif. Its pictures are made smaller until it fits.
        show: shows a line of progress.

    Raises:
        InvalidInput: the width is impossible, a package is missing, or a .gif does not fit into
            `most_bytes`.
        DataCorrupt: a match does not end as recorded.
    """
    height = round(width * 9 / 16)
    check_size(width, height)
    if path.suffix.lower() == ".gif":
        _write_gif(path, clips, width, height, most_bytes, show)
    elif path.suffix.lower() == ".mp4":
        _write_mp4(path, clips, width, height, show)
    else:
        fps, parts = clips[0].fps, [_part(clip) for clip in _counted(clips, show)]
        film = {"size": [round(HEIGHT * width / height), HEIGHT], "fps": fps, "parts": parts}
        film["seconds"] = sum(sum(part["shown"]) for part in parts) / fps
        heading = html.escape(title)
        write_whole(path, _page(heading, heading, film, width, height))


def usual_shape(path: Path, endings: Collection[str]) -> tuple[int, float]:
    """Returns the default width in pixels and the default number of pictures per second of the
    file's format. An ending that is not in `endings` raises `InvalidInput`.
    """
    suffix = path.suffix.lower()
    if suffix not in endings:
        raise InvalidInput(
            f"a film can't be written as {path.name!r}: end it in {', '.join(endings)}"
        )
    return (480, 12) if suffix == ".gif" else (1280, 30)


def _counted(clips: Sequence[Clip], show: Show) -> Iterator[Clip]:
    for number, clip in enumerate(clips, 1):
        show(f"drawing match {number} of {len(clips)}")
        yield clip


def _pixels(
    clips: Sequence[Clip], width: int, height: int, show: Show = lambda text: None
) -> Iterator[NDArray[np.uint8]]:
    for clip in _counted(clips, show):
        painter = Painter(width, height, clip.replay.names)
        for frame, words, count in clip.pictures():
            painter.see(frame, **words)
            if count:
                image = painter.paint()
                for _ in range(count):
                    yield image


def _write_mp4(
    path: Path, clips: Sequence[Clip], width: int, height: int, show: Show = lambda text: None
) -> None:
    ffmpeg = _video_writer()
    # The codec halves the resolution of colours, so both sides must be even.
    width, height = width + width % 2, height + height % 2
    images = _pixels(clips, width, height, show)
    first = next(images)
    draft = path.with_name(f".{path.stem}.draft{path.suffix}")
    try:
        writer = ffmpeg.write_frames(
            str(draft), (width, height), fps=clips[0].fps, quality=7, macro_block_size=2
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


def _write_gif(
    path: Path,
    clips: Sequence[Clip],
    width: int,
    height: int,
    most_bytes: float = math.inf,
    show: Show = lambda text: None,
) -> None:
    while True:
        images = [Image.fromarray(pixels) for pixels in _pixels(clips, width, height, show)]
        show(f"choosing colours for {len(images):,} pictures")
        palette = _common_palette(images)
        first, *others = [
            image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images
        ]
        options = {"append_images": others, "duration": 1000 / clips[0].fps, "loop": 0}
        content = _encoded(first, format="gif", save_all=True, optimize=False, **options)
        if len(content) <= most_bytes:
            break
        # The file shrinks in proportion to the width, not to the area, because smaller pictures
        # have more detail in each pixel.
        width = int(0.95 * width * most_bytes / len(content))
        height = round(width * 9 / 16)
        if width < NARROWEST:
            raise InvalidInput(
                f"{len(images) / clips[0].fps:.0f} s of pictures do not fit into "
                f"{most_bytes / 1e6:g} MB: take fewer --seconds, fewer --fps, or a higher limit"
            )
    write_whole(path, content)


def _common_palette(images: list[Image.Image]) -> Image.Image:
    """Returns a palette for the whole film, from a sample of its pictures. A common palette keeps
    colours from flickering. Maximum coverage finds the few pixels of bright colours, and k-means
    moves the other colours to where the pixels are, such as the sky's gradient.
    """
    some = images[:: max(1, len(images) // 12)][:12]
    sheet = Image.new("RGB", (some[0].width, some[0].height * len(some)))
    for number, image in enumerate(some):
        sheet.paste(image, (0, number * image.height))
    return sheet.quantize(GIF_COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=1)


def _write_png(path: Path, clips: Sequence[Clip], width: int, height: int) -> None:
    """Writes the picture at the cut's start. If the cut has no start, this is the first picture, or
    in a game of choices the last.
    """
    (clip,) = clips
    if clip.cut.start is None:
        clip = Clip(clip.replay, clip.fps, Cut(start=_informative_second(clip.replay)))
    image = Image.fromarray(next(_pixels([clip], width, height)))
    write_whole(path, _encoded(image, format="png", optimize=True))


def _informative_second(replay: Replay) -> float:
    game = replay.recipe.make()
    game.close()
    return replay.frames / game.spec.frames_per_second if game.spec.action_kind == CHOICE else 0.0


def _encoded(image: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def film_json(replay: Replay, cut: Cut, fps: float, width: float) -> dict[str, Any]:
    """Returns a film in the form that player.js reads.

    Args:
        replay: the match.
        cut: the part of the match.
        fps: pictures per second.
        width: the width of a picture whose height is `HEIGHT`.

    Returns:
        A mapping. `size` is [width, height], `fps` is the number of pictures per second, and
        `seconds` is the length of the part of the match that the film shows. `names` has the
        players, and `still` the part that all frames share. `frames` has the frames in the form
        that draw.js reads, and `shown` the number of pictures for each frame.
    """
    clip = Clip(replay, fps, cut)
    part = _part(clip)  # reads the whole clip, which sets its seconds
    return {"size": [round(width), HEIGHT], "fps": fps, "seconds": clip.seconds, **part}


def _part(clip: Clip) -> dict[str, Any]:
    still: dict[str, Any] | None = None
    frames: list[dict[str, Any]] = []
    shown: list[int] = []
    for frame, words, count in clip.pictures():
        still = still_part(frame) if still is None else still
        frames.append(drawable(frame, clip.replay.names) | words)
        shown.append(count)
    return {"names": clip.replay.names, "still": still, "frames": frames, "shown": shown}


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
    first, second = map(html.escape, replay.names)
    heading = f"<b>{first}</b> against <b>{second}</b>"
    film = film_json(replay, cut, fps, HEIGHT * width / height)
    return _page(f"{first} against {second}", heading, film, width, height)


def _page(title: str, heading: str, content: Mapping[str, Any], width: int, height: int) -> str:
    here, film = Path(__file__).parent, json.dumps(content, separators=(",", ":"))
    blanks: Mapping[str, str] = {
        "title": title,
        "heading": heading,
        "aspect": f"{width} / {height}",
        "draw": DRAW_JS.read_text(encoding="utf-8"),
        "player": (here / "player.js").read_text(encoding="utf-8"),
        "data": base64.b64encode(gzip.compress(film.encode(), 9, mtime=0)).decode(),
    }
    page = (here / "page.html").read_text(encoding="utf-8")
    # All blanks are filled in a single pass, because a player's name may look like a blank.
    return re.sub(r"\{\{(\w+)\}\}", lambda blank: blanks[blank[1]], page)


def _write_html(path: Path, clips: Sequence[Clip], width: int, height: int) -> None:
    (clip,) = clips
    write_whole(path, film_page(clip.replay, clip.cut, clip.fps, width, height))


def _write_json(path: Path, clips: Sequence[Clip], width: int, height: int) -> None:
    """Writes the game's own frames as {still, moving: [...]}, for other programs."""
    (clip,) = clips
    cut = clip.cut
    with Playback(clip.replay) as playback:
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


FORMATS: Mapping[str, Callable[[Path, Sequence[Clip], int, int], None]] = {
    ".mp4": _write_mp4,
    ".gif": _write_gif,
    ".png": _write_png,
    ".html": _write_html,
    ".json": _write_json,
}
"""Writers by file ending."""
