"""A replay as pictures in time: which part of it, how many a second, how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from league.errors import InvalidInput
from league.games.brawl.rules import KO
from league.games.render.picture import HEIGHT, Picture, Shape
from league.games.render.scene import Scene, scene_for
from league.games.render.wire import is_fight
from league.replay import Playback, Replay, end_frame

WARM_UP_FRAMES = 45
"""Frames before a cut that the scene sees unseen, so that its camera and effects are under way."""
ROUNDING = 1e-9
"""Of a frame: what seconds times frames a second may be beside a whole number."""
VERDICT_SECONDS = 2.4
VERDICT_AFTER_SECONDS = 0.7
"""The last knock-out is seen by itself for so long."""


@dataclass(frozen=True, kw_only=True)
class Cut:
    """From second `start` to second `stop`; when that is None or after the end, the verdict is
    shown too.

    A `start` of None is the beginning. Cut at the very end, a match is its end with the verdict.
    """

    start: float | None = None
    stop: float | None = None

    def __post_init__(self) -> None:
        if self.begins < 0 or (self.stop is not None and self.stop <= self.begins):
            raise InvalidInput(
                f"a film can't go from second {self.begins:g} to {self.stop}: begin at 0 or later, end after"
            )

    @property
    def begins(self) -> float:
        """The second that it begins with."""
        return self.start or 0.0


@dataclass
class Reel:
    """Pictures of `replay`, `width` by HEIGHT, `fps` of them a second. `stills` fill with the
    first one.
    """

    replay: Replay
    width: float
    fps: float
    cut: Cut
    stills: list[list[Shape]] = field(default_factory=list)
    seconds: float = 0.0  # of the match in it, without the verdict; known once the pictures ran out

    def __post_init__(self) -> None:
        if not 1 <= self.fps <= 120:
            raise InvalidInput(
                f"a film can't have {self.fps:g} pictures a second: take from 1 to 120"
            )
        if self.width < 1:
            raise InvalidInput("a film needs a width")

    @property
    def names(self) -> tuple[str, str]:
        return self.replay.seats[0].name, self.replay.seats[1].name

    @property
    def verdict(self) -> str:
        """How it ended, in words."""
        return "a draw" if self.winner is None else f"{self.names[self.winner]} wins"

    @property
    def winner(self) -> int | None:
        return None if self.replay.outcome == 0.5 else int(self.replay.outcome == 0.0)

    def pictures(self) -> Iterator[Picture]:
        """In turn. Raises `DataCorrupt` at the end of a match that ends otherwise than recorded."""
        playback = Playback(self.replay)
        try:
            yield from self._pictures(playback)
        finally:
            playback.close()

    def _pictures(self, playback: Playback) -> Iterator[Picture]:
        per_second = playback.game.spec.frames_per_second
        first = int(self.cut.begins * per_second + ROUNDING)
        last = None if self.cut.stop is None else round(self.cut.stop * per_second)
        if first > self.replay.frames:
            length = self.replay.frames / per_second
            raise InvalidInput(
                f"the match lasts {length:.1f} s: it can't be shown from {self.cut.begins:g} s"
            )
        until = self.replay.frames if last is None else min(last, self.replay.frames)
        self.seconds = (until - first) / per_second
        scene, shown, frame = None, 0, None
        for now, frame in enumerate(playback.frames()):
            if now < first - WARM_UP_FRAMES:
                continue
            if last is not None and now >= last:
                return
            if scene is None:
                scene = scene_for(frame, self.width, self.names)
                self.stills[:] = scene.stills
            picture = scene.picture(frame)
            while now >= first and now - first + 1 > shown * per_second / self.fps + ROUNDING:
                yield picture
                shown += 1
        assert scene is not None
        assert frame is not None
        is_fighters = is_fight(frame)
        end = self._after(frame) if is_fighters else end_frame(playback.game, frame)
        yield from self._ending(scene, end, per_second if is_fighters else 0)

    def _after(self, last: Mapping[str, Any]) -> dict[str, Any]:
        """The frame that ended it. The game does not keep it, but what it must have been is
        known.
        """
        end = {**last, "frame": last["frame"] + 1} if "frame" in last else dict(last)
        if self.winner is None or not is_fight(last) or self.replay.frames >= last["max_frames"]:
            return end
        players = [dict(player) for player in last["players"]]
        players[1 - self.winner] |= {"state": KO, "stocks": 0, "vx": 0.0, "vy": 0.0, "keys": []}
        return {**end, "players": players}

    def _ending(self, scene: Scene, end: dict[str, Any], per_second: int) -> Iterator[Picture]:
        """The last knock-out, and the verdict over it."""
        count = round(VERDICT_SECONDS * self.fps)
        for number in range(count):
            waited = number / self.fps
            frame = (
                {**end, "frame": end["frame"] + round(waited * per_second)}
                if "frame" in end
                else end
            )
            is_told = waited >= VERDICT_AFTER_SECONDS or not self.seconds or number == count - 1
            yield scene.picture(frame, self.verdict if is_told else "", self.winner)

    @property
    def size(self) -> tuple[float, float]:
        return self.width, HEIGHT
