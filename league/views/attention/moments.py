"""What happened in a match by its frames: hits and knock-outs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Frame = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Hit:
    """Damage that `victim` (a seat) took in one frame, in points."""

    frame: int
    victim: int
    damage: float


@dataclass(frozen=True, kw_only=True)
class KnockOut:
    """A stock that `victim` (a seat) lost."""

    frame: int
    victim: int


@dataclass(frozen=True, kw_only=True)
class Course:
    """Hits and knock-outs of a match in order; none in games whose frames have no fighters."""

    hits: tuple[Hit, ...] = ()
    knock_outs: tuple[KnockOut, ...] = ()


def course_of(frames: Sequence[Frame], winner: int | None, most_frames: int) -> Course:
    """Finds the hits and knock-outs in frames.

    Args:
        frames: from the first to the last before the end.
        winner: seat of the winner, None for a draw. A match that ended early with one ended by a
            knock-out, which its last frame does not show yet.
        most_frames: frames after which time is up.
    """
    hits, knock_outs = [], []
    for number in range(1, len(frames)):
        before, now = frames[number - 1].get("players", ()), frames[number].get("players", ())
        for seat, (old, new) in enumerate(zip(before, now, strict=True)):
            if new["damage"] > old["damage"]:
                hits.append(Hit(frame=number, victim=seat, damage=new["damage"] - old["damage"]))
            if new["stocks"] < old["stocks"]:
                knock_outs.append(KnockOut(frame=number, victim=seat))
    if frames and frames[0].get("players") and winner is not None and len(frames) < most_frames:
        knock_outs.append(KnockOut(frame=len(frames) - 1, victim=1 - winner))
    return Course(hits=tuple(hits), knock_outs=tuple(knock_outs))


def key_frames(course: Course, first: int, last: int, count: int) -> list[int]:
    """Up to `count` frames of first … last worth a picture, in order and apart from each other.

    Knock-outs come first, then hits by their damage, then what lies furthest from all of them.
    """
    wanted = [one.frame for one in course.knock_outs]
    wanted += [hit.frame for hit in sorted(course.hits, key=lambda hit: -hit.damage)]
    apart = max(1, (last - first) // (count + 1))
    chosen: list[int] = []
    for frame in wanted:
        if first <= frame <= last and all(abs(frame - other) >= apart for other in chosen):
            chosen.append(frame)
        if len(chosen) == count:
            return sorted(chosen)
    while len(chosen) < count:
        gaps = sorted({first, last, *chosen})
        spans = [(b - a, (a + b) // 2) for a, b in pairwise(gaps)]
        widest, middle = max(spans, default=(0, first))
        if widest < 2:
            break
        chosen.append(middle)
    return sorted(chosen) or [first]
