"""Makes the pictures of docs/game.md: `.venv/bin/python docs/make_game_pictures.py docs/images`.

Shape suffixes: H height, W width, 3 colours.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from league.games.brawl import moves, rules
from league.games.drawing import still_part
from league.games.drawing.painter import Painter, draw_frame
from league.games.registry import make_batched

TILE = 220
COLOURS = 256
FIRST_POWER = moves.move_tables()["first_power"][0]
"""By weapon and move."""
Box = tuple[int, int, int, int]
CLOSE: Box = (545, 215, 815, 485)
"""Part of a picture around a fighter: left, top, right, bottom in pixels."""
FORWARD: Box = (560, 160, 930, 530)
"""The same with what lies before it."""

STATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("standing", {"state": rules.STANDING}),
    ("walking", {"state": rules.WALKING, "x": 4.25, "vx": rules.WALK_SPEED}),
    ("turning", {"state": rules.TURNAROUND}),
    ("dashing", {"state": rules.DASH, "x": 4.3, "vx": rules.DASH_SPEED}),
    ("sprinting", {"state": rules.SPRINTING, "x": 4.0, "vx": rules.RUN_SPEED}),
    ("dashing back", {"state": rules.BACKDASH, "vx": -rules.BACKDASH_SPEED}),
    ("rising", {"state": rules.IN_AIR, "y": -0.6, "vy": -8.0}),
    ("falling", {"state": rules.IN_AIR, "y": -0.6, "vy": 9.0}),
    ("dodging", {"state": rules.DODGE}),
    ("stunned", {"state": rules.STUN, "stun_left": 9, "vx": -3.0}),
    ("taunting", {"state": rules.TAUNT}),
    (
        "charging",
        {
            "state": rules.ATTACK,
            "power": FIRST_POWER[moves.UNARMED, moves.SSIG].item(),
            "power_frame": 9,
            "move_frame": 9,
        },
    ),
)
IN_THE_AIR = {moves.NAIR, moves.DAIR, moves.SAIR, moves.RECOVERY, moves.GROUNDPOUND}


def _example() -> dict[str, Any]:
    """A frame of the game to put fighters into."""
    game = make_batched("brawl", 1)
    game.reset(np.array([3], np.uint64))
    return game.frame(0)


def _tile(frame: dict[str, Any], words: str, part: Box, **changes: Any) -> Image.Image:
    """One fighter as changed, close up, with its name."""
    one, other = (dict(player) for player in frame["players"])
    still = {
        "x": 4.0,
        "y": 0.35,
        "facing": 1,
        "vx": 0.0,
        "vy": 0.0,
        "grounded": True,
        "weapon": "unarmed",
    }
    one |= {
        **still,
        "move": "",
        "move_frame": 0,
        "stun_left": 0,
        "keys": [],
        **changes,
    }
    one["grounded"] = one["y"] > 0
    other |= {"state": rules.KO}
    picture = draw_frame({**frame, "frame": 137, "players": [one, other]}, 1280, 720, (words, ""))
    return Image.fromarray(picture).resize((TILE, TILE), Image.Resampling.LANCZOS, box=part)


def _sheet(tiles: Sequence[Image.Image], columns: int) -> Image.Image:
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * TILE, rows * TILE), "#14122b")
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % columns * TILE, number // columns * TILE))
    return sheet


def states() -> Image.Image:
    """A fighter in every state that is drawn."""
    frame = _example()
    return _sheet([_tile(frame, words, CLOSE, **changes) for words, changes in STATES], 6)


def weapon_moves(weapon: int) -> Image.Image:
    """The eleven moves of a weapon, each in the frame in which its last cast begins to hit."""
    frame, tiles = _example(), []
    powers = still_part(frame)["powers"]
    for (of_weapon, move_type), move in moves.all_moves().items():
        if of_weapon != weapon:
            continue
        first = FIRST_POWER[weapon, move_type].item()
        numbers = range(first, first + len(move))
        power, begin = max((n, hit[0]) for n in numbers for hit in powers[n]["hits"] if hit[1] > 0)
        changes = {
            "state": rules.ATTACK,
            "weapon": moves.WEAPON_NAMES[weapon],
            "move": moves.MOVE_NAMES[move_type],
            "power": power,
            "power_frame": begin,
            "y": -0.6 if move_type in IN_THE_AIR else 0.35,
        }
        tiles.append(_tile(frame, moves.MOVE_NAMES[move_type], FORWARD, **changes))
    return _sheet(tiles, 6)


def fight(stage: str, *, seed: int = 5, frame: int = 477) -> NDArray[np.uint8]:
    """A moment of a match between two bots, [H, W, 3]."""
    game = make_batched("brawl", 1, stage=stage)
    game.bots_N2[0] = [game.spec.bot_index(name) for name in ("weapon_seeker", "aggressive")]
    game.reset(np.array([seed], np.uint64))
    painter = Painter(960, 540, ("weapon_seeker", "aggressive"))
    painter.see(game.frame(0))
    for _ in range(frame):
        game.step(game.idle_actions())
        painter.see(game.frame(0))
    return painter.paint()


def overview(stage: str) -> NDArray[np.uint8]:
    """The whole stage up to its blast zone, [H, W, 3]."""
    game = make_batched("brawl", 1, stage=stage)
    game.reset(np.array([3], np.uint64))
    frame = game.frame(0)
    for player, side in zip(frame["players"], (-1, 1), strict=True):
        player |= {"x": 12.5 * side, "y": 1.0 - 2.0 * side}
    return draw_frame(frame, 960, 540)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="docs/make_game_pictures.py", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "fight": Image.fromarray(fight("warehouse")),
        "stage-warehouse": Image.fromarray(overview("warehouse")),
        "stage-flat": Image.fromarray(overview("flat")),
        "states": states(),
    }
    for weapon, name in enumerate(moves.WEAPON_NAMES):
        pictures[f"moves-{name}"] = weapon_moves(weapon)
    for name, image in pictures.items():
        path = folder / f"game-{name}.png"
        if name != "fight":  # few colours do for a table
            image = image.quantize(
                COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
            )
        image.save(path, optimize=True)
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
