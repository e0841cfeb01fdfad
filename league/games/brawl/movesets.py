"""All moves, 33 rows: the tables of the three weapons in one, as the compiled step is given
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from league.games.brawl.moves import HAMMER, SPEAR, UNARMED, Move
from league.games.brawl.moveset_hammer import HAMMER_MOVES
from league.games.brawl.moveset_spear import SPEAR_MOVES
from league.games.brawl.moveset_unarmed import UNARMED_MOVES

MOVES: Final[Mapping[tuple[int, int], Move]] = {
    (weapon, move_type): move
    for weapon, table in ((UNARMED, UNARMED_MOVES), (SPEAR, SPEAR_MOVES), (HAMMER, HAMMER_MOVES))
    for move_type, move in table.items()
}
"""Rows by (weapon, move type)."""
