"""GAME.md's table of moves, written out for the tests, and matches in which a move is
begun.

Reach is (from, to) forward of the attacker, over all boxes of the move; `up` and `down` where
given.
"""

from __future__ import annotations

from typing import NamedTuple

from arena import LEFT_GROUND_Y, RIGHT_GROUND_Y, Arena

from league.games.brawl import moves, rules
from league.games.brawl.moves import HAMMER, MOVES, SPEAR, UNARMED


class Figures(NamedTuple):
    """One row. `late` is the damage of a later blow, to a victim that the first one missed."""

    first_hit: int
    whiff: int
    damage: tuple[int, ...]
    fixed: int
    variable: int
    angle: float  # of the last stage
    stuns: tuple[int, ...]  # that the stages may have
    reach: tuple[float, float]
    up: float | None = None
    down: float | None = None
    late: int | None = None


TABLE = {
    (UNARMED, "NLight"): Figures(3, 15, (3, 3, 3, 5), 52, 31, 30, (11,), (-0.1, 0.8)),
    (UNARMED, "DLight"): Figures(5, 16, (8,), 45, 5, 90, (15,), (0.0, 0.8)),
    (UNARMED, "SLight"): Figures(7, 17, (13,), 80, 20, 0, (9,), (-0.1, 0.9)),
    (UNARMED, "NSig"): Figures(10, 17, (20,), 40, 46, 90, (9,), (0.0, 0.45), up=0.97),
    (UNARMED, "DSig"): Figures(7, 25, (16, 16), 40, 60, 170, (9,), (-0.8, 1.1)),
    (UNARMED, "SSig"): Figures(11, 22, (18,), 45, 55, 0, (9,), (0.2, 1.0)),
    (UNARMED, "NAir"): Figures(4, 19, (3, 3, 5), 71, 37, 45, (9,), (-0.1, 0.8)),
    (UNARMED, "DAir"): Figures(6, 23, (16,), 65, 5, 0, (9,), (0.0, 0.45), down=0.6),
    (UNARMED, "SAir"): Figures(7, 20, (13,), 45, 40, 0, (8,), (0.3, 1.0)),
    (UNARMED, "Recovery"): Figures(6, 22, (15,), 55, 40, 80, (12,), (0.0, 0.4), up=0.9),
    (UNARMED, "Groundpound"): Figures(10, 32, (17,), 48, 46, -90, (9,), (-0.3, 0.35), down=0.86),
    (SPEAR, "NLight"): Figures(4, 24, (4, 5, 5), 67, 5, 0, (8,), (0.8, 1.8)),
    (SPEAR, "DLight"): Figures(5, 23, (1, 2, 3), 48, 0, 0, (12,), (0.0, 1.6)),
    (SPEAR, "SLight"): Figures(7, 27, (8, 7), 110, 0, 55, (9,), (-0.2, 2.0)),
    (SPEAR, "NSig"): Figures(11, 25, (24,), 50, 56, 70, (8,), (-0.5, 1.7), up=1.4),
    (SPEAR, "DSig"): Figures(19, 35, (27,), 65, 52, 0, (7,), (0.1, 2.1)),
    (SPEAR, "SSig"): Figures(16, 23, (25,), 72, 54, 0, (8,), (0.5, 2.4)),
    (SPEAR, "NAir"): Figures(8, 21, (12, 3), 100, 10, 90, (13,), (-1.2, 1.2), up=1.2, down=1.2),
    (SPEAR, "DAir"): Figures(7, 17, (13,), 49, 28, 0, (5,), (-0.1, 0.45), up=-0.9, down=1.9),
    (SPEAR, "SAir"): Figures(7, 20, (17,), 45, 42, 0, (11,), (1.35, 2.2)),
    (SPEAR, "Recovery"): Figures(8, 27, (18,), 61, 44, 90, (12,), (-0.7, 1.4), up=0.7),
    (SPEAR, "Groundpound"): Figures(10, 38, (18,), 53, 42, 0, (11,), (-1.3, 1.2), down=0.4),
    (HAMMER, "NLight"): Figures(4, 21, (5, 5, 9), 65, 45, 0, (16,), (0.2, 1.8)),
    (HAMMER, "DLight"): Figures(5, 21, (7,), 35, 6, 90, (13,), (0.1, 1.6)),
    (HAMMER, "SLight"): Figures(7, 20, (17,), 56, 8, 0, (12,), (0.5, 2.0), late=15),
    (HAMMER, "NSig"): Figures(10, 32, (9, 18), 60, 52, 0, (12,), (0.0, 2.0), up=1.9),
    (HAMMER, "DSig"): Figures(16, 53, (18, 12), 57, 54, 0, (12, 17), (-0.2, 1.7)),
    (HAMMER, "SSig"): Figures(17, 40, (26,), 65, 58, 15, (12,), (0.0, 2.2)),
    (HAMMER, "NAir"): Figures(9, 22, (20,), 40, 50, 80, (14,), (-0.7, 1.0), up=1.8),
    (HAMMER, "DAir"): Figures(6, 24, (2, 4), 45, 48, 90, (12,), (-0.8, 0.5), down=1.3),
    (HAMMER, "SAir"): Figures(9, 23, (20,), 58, 44, 0, (12,), (0.4, 1.85), late=18),
    (HAMMER, "Recovery"): Figures(7, 22, (2, 13), 45, 29, -80, (8,), (-0.9, 0.1), up=1.4),
    (HAMMER, "Groundpound"): Figures(13, 36, (25,), 48, 55, 0, (11,), (-0.5, 0.3), down=1.3),
}
KEYS = {
    "NLight": "J",
    "DLight": "S J",
    "SLight": "D J",
    "NSig": "K",
    "DSig": "S K",
    "SSig": "D K",
    "NAir": "J",
    "DAir": "S J",
    "SAir": "D J",
    "Recovery": "K",
    "Groundpound": "S K",
}
TYPES = {name: number for number, name in moves.MOVE_NAMES.items()}
AERIAL = ("NAir", "DAir", "SAir", "Recovery", "Groundpound")
IN_THE_AIR = {"Recovery": -4.0}  # others -6.5: room to fall


def row(weapon: int, name: str) -> moves.Move:
    """The game's own row."""
    return MOVES[weapon, TYPES[name]]


def far(arena: Arena) -> None:
    """Puts the opponent out of every reach."""
    arena.put(1, -6.0, LEFT_GROUND_Y)


def begun(weapon: int, name: str) -> Arena:
    """A match in which seat 0 has just pressed the keys of a move; the opponent is far away."""
    arena = Arena()
    x, y = (0.0, IN_THE_AIR.get(name, -6.5)) if name in AERIAL else (4.0, RIGHT_GROUND_Y)
    arena.put(0, x, y, grounded=name not in AERIAL, recoveries=1, weapon=weapon)
    far(arena)
    arena.play(KEYS[name])
    assert arena.of(0, "move") == TYPES[name]
    return arena


def offer(arena: Arena, stage: moves.Stage, damage: float = 0.0) -> None:
    """Puts the opponent into the middle of a stage's box, in the air and at rest when the blow
    comes.
    """
    near, reach, top, bottom = stage.box
    x = arena.of(0, "x") + arena.of(0, "facing") * (near + reach) / 2
    y = arena.of(0, "y") + (top + bottom) / 2
    arena.put(1, x, y, grounded=False, vy=-rules.GRAVITY_PER_FRAME, damage=damage)


def blows(weapon: int, name: str, damage: float = 0.0) -> list[tuple[int, float, float, float]]:
    """(frame, damage, Δvx, Δvy) of each blow to an opponent who is always offered to the next
    stage.
    """
    arena, stages = begun(weapon, name), row(weapon, name).stages
    found, frame = [], 0
    while arena.of(0, "state") == rules.ATTACK:
        waiting = [stage for stage in stages if stage.end > frame + 1]
        offer(arena, waiting[0] if waiting else stages[-1], damage)
        arena.play()
        frame += 1
        if arena.of(1, "damage") != damage:
            found.append(
                (frame, arena.of(1, "damage") - damage, arena.of(1, "vx"), arena.of(1, "vy"))
            )
    return found
