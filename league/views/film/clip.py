"""Selects the frames of a part of a replay, and decides how many pictures show each frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from league.errors import InvalidInput
from league.games.brawl.rules import KO
from league.games.drawing import is_fight, verdict
from league.replay import Playback, Replay, end_frame

WARM_UP_FRAMES = 45
"""Frames before a cut that the painter sees without showing them, for its camera and effects."""
ROUNDING = 1e-9
"""Tolerance for rounding errors when seconds are converted to a whole number of frames."""
VERDICT_SECONDS = 2.4
VERDICT_AFTER_SECONDS = 0.7
"""How long the last knock-out is shown without the verdict."""
Title = tuple[Sequence[str], float]
"""Lines over a picture, and the seconds for which they are shown."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Describes a part of a match. If `stop` is after the end, the verdict is shown too.

    Args:
        start: the first second, or None for the beginning. A start at the very end shows only the
            verdict.
        stop: the last second, or None for the end with the verdict.

    Raises:
        InvalidInput: the part has no length.
    """

    start: float | None = None
    stop: float | None = None

    def __post_init__(self) -> None:
        if self.begins < 0 or (self.stop is not None and self.stop <= self.begins):
            raise InvalidInput(
                f"a film can't go from second {self.begins:g} to {self.stop}: "
                "begin at 0 or later, end after that"
            )

    @property
    def begins(self) -> float:
        return self.start or 0.0


class Clip:
    """Yields the frames of a part of a replay.

    `seconds` is the length of the shown part of the match, without the verdict. `frames` sets it.

    Args:
        replay: the match.
        fps: pictures per second.
        cut: the part of the match.
        caption: a line at the bottom of every picture.
        opening, closing: titles over the first and over the last picture.

    Raises:
        InvalidInput: an impossible number of pictures per second.
    """

    def __init__(
        self,
        replay: Replay,
        fps: float,
        cut: Cut,
        *,
        caption: str = "",
        opening: Sequence[Title] = (),
        closing: Sequence[Title] = (),
    ) -> None:
        if not 1 <= fps <= 120:
            raise InvalidInput(f"a film can't have {fps:g} pictures a second: take from 1 to 120")
        self.replay, self.fps, self.cut = replay, fps, cut
        self.caption, self.opening, self.closing = caption, opening, closing
        self.seconds = 0.0

    def frames(self) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, int]]:
        """Yields three values for each frame: the frame, the verdict to draw over it (or None), and
        the number of pictures that show it (possibly 0).

        Raises:
            DataCorrupt: the match does not end as recorded.
            InvalidInput: the match is shorter than the cut.
        """
        with Playback(self.replay) as playback:
            per_second, length = playback.game.spec.frames_per_second, self.replay.frames
            first = int(self.cut.begins * per_second + ROUNDING)
            last = None if self.cut.stop is None else round(self.cut.stop * per_second)
            if first > length:
                raise InvalidInput(
                    f"the match lasts {length / per_second:.1f} s: "
                    f"it can't be shown from {self.cut.begins:g} s"
                )
            self.seconds = ((length if last is None else min(last, length)) - first) / per_second
            shown, frame = 0, dict[str, Any]()
            for now, frame in enumerate(playback.frames()):
                if last is not None and now >= last:
                    return
                count = 0
                while (
                    now >= first
                    and now - first + 1 > (shown + count) * per_second / self.fps + ROUNDING
                ):
                    count += 1
                shown += count
                if now >= first - WARM_UP_FRAMES:
                    yield frame, None, count
            if is_fight(frame):
                yield from self._ending(self._after(frame), per_second)
            else:
                yield from self._ending(end_frame(playback.game, frame), 0)

    def pictures(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
        """Yields the values of `frames`, and further pictures with the titles. The second value has
        all text over the picture, as keyword arguments of `Painter.see`. It raises the errors of
        `frames`.
        """
        frame, words, opening = dict[str, Any](), dict[str, Any](), self.opening
        for frame, ending, count in self.frames():
            words = {"caption": self.caption} if self.caption else {}
            words |= {"verdict": ending} if ending else {}
            if count:
                yield from self._held(frame, words, opening)
                opening = ()
            yield frame, words, count
        yield from self._held(frame, words, self.closing)

    def _held(
        self, frame: dict[str, Any], words: dict[str, Any], titles: Sequence[Title]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
        for lines, seconds in titles:
            yield frame, words | {"title": list(lines)}, round(seconds * self.fps)

    def _after(self, last: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the fight's final frame. The game doesn't keep it, but its content follows from
        the last frame and the winner.
        """
        end = {**last, "frame": last["frame"] + 1}
        winner = self.replay.winner
        if winner is None or self.replay.frames >= last["max_frames"]:
            return end
        players = [dict(player) for player in last["players"]]
        players[1 - winner] |= {"state": KO, "stocks": 0, "vx": 0.0, "vy": 0.0, "keys": []}
        return {**end, "players": players}

    def _ending(
        self, end: dict[str, Any], per_second: int
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None, int]]:
        """Yields frames of the last knock-out, and then frames with the verdict over it."""
        count = round(VERDICT_SECONDS * self.fps)
        for number in range(count):
            waited = number / self.fps
            frame = {**end, "frame": end.get("frame", 0) + round(waited * per_second)}
            is_over = waited >= VERDICT_AFTER_SECONDS or not self.seconds or number == count - 1
            yield frame, verdict(self.replay.names, self.replay.winner) if is_over else None, 1
