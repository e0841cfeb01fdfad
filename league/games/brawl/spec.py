"""What a learner must know of the game, without loading the compiler."""

from __future__ import annotations

from typing import Final

from league.games.base import GameSpec
from league.games.brawl import rules
from league.games.brawl.cast import BOTS, STATS
from league.games.brawl.layout import FIELDS
from league.games.brawl.rewards import PRESETS
from league.games.brawl.terms import TERMS

NAME: Final = "brawl"
VERSION: Final = "3"
OWN_SIZE: Final = 32


def brawl_spec(max_frames: int | None = None) -> GameSpec:
    """The spec of a match of at most `max_frames` frames (None: 90 s)."""
    return GameSpec(
        name=NAME,
        version=VERSION,
        frames_per_second=rules.FRAMES_PER_SECOND,
        observation_size=2 * OWN_SIZE,
        own_size=OWN_SIZE,
        observation_names=(
            *(f"own {name}" for name in FIELDS),
            *(f"opponent {name}" for name in FIELDS),
        ),
        action_size=len(rules.KEY_NAMES),
        action_names=rules.KEY_NAMES,
        reward_terms=TERMS,
        stats=STATS,
        bots=BOTS,
        max_frames=max_frames
        if max_frames is not None
        else rules.MATCH_SECONDS * rules.FRAMES_PER_SECOND,
        reward_presets=PRESETS,
    )
