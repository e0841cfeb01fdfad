"""What a picture costs: bytes of a frame and of a page, and milliseconds of drawing.

python tests/bench/render.py [SEED]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from league.games.base import EXTERNAL
from league.games.drawing import moving_part, still_part
from league.games.drawing.painter import Painter
from league.games.registry import make_batched
from league.replay import Contender, MatchRecorder, Playback, Recipe, Replay, final_digest
from league.replay.file import encode
from league.views.film import write_film


def record(seed: int) -> Replay:
    """based against random keys, drawn again every 4 frames."""
    game = make_batched("brawl", 1)
    bots = game.spec.bot_index("based"), EXTERNAL
    game.bots_N2[0] = bots
    game.reset(np.array([seed], np.uint64))
    seats = Contender(name="based"), Contender(name="random keys")
    take = MatchRecorder(
        recipe=Recipe(name="brawl", version=game.spec.version), seats=seats, bots=bots, seed=seed
    )
    generator = np.random.default_rng(seed)
    while not game.ended_N[0]:
        keys_N2A = (generator.random((1, 2, game.spec.action_size)) < 0.3).astype(np.uint8)
        take.note(keys_N2A[0], 4)
        game.step(keys_N2A, 4)
    return take.finish(float(game.outcomes_N[0]), final_digest(game, 0))


def size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def tell(what: str, figure: str) -> None:
    print(f"| {what} | {figure} |")


def main() -> None:
    replay = record(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    frames = list(Playback(replay).frames())
    tell("replay", f"{len(encode(replay)):,} bytes for {len(frames)} frames")
    moving = np.mean([size(moving_part(frame)) for frame in frames])
    tell("frame as JSON", f"{size(still_part(frames[0]))} bytes once, {moving:.0f} a frame")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "x.html"
        write_film(page, replay)
        tell("page", f"{page.stat().st_size / 1000:,.0f} kB")
    for width, height in ((1280, 720), (640, 360), (320, 180)):
        painter, times = Painter(width, height), []
        for frame in frames[:300]:
            began = time.process_time()
            painter.see(frame)
            painter.paint()
            times.append(time.process_time() - began)
        tell(f"pixels, {width} × {height}", f"{1000 * float(np.median(times)):.1f} ms a picture")


if __name__ == "__main__":
    main()
