"""What a learner must know of the game, without loading the compiler."""

from __future__ import annotations

from typing import Final

from league.games.base import BotSpec, GameSpec
from league.games.brawl import rules
from league.games.brawl.rewards import PRESETS
from league.games.brawl.terms import TERMS

NAME: Final = "brawl"
VERSION: Final = "2"
OWN_SIZE: Final = 32

STATS: Final = (
    "damage_dealt",
    "damage_taken",
    "knockouts",
    "falls",
    "attacks",
    "hits",
    "jumps",
    "dodges",
    "air_frames",
    "distance_sum",
    "speed_sum",
    "pickups",
    "keys_pressed",
    "spawn_side",
)
(
    DAMAGE_DEALT,
    DAMAGE_TAKEN,
    KNOCKOUTS,
    FALLS,
    ATTACKS,
    HITS,
    JUMPS,
    DODGES,
    AIR_FRAMES,
    DISTANCE_SUM,
    SPEED_SUM,
    PICKUPS,
    KEYS_PRESSED,
    SPAWN_SIDE,
) = range(len(STATS))

BOTS: Final = (
    BotSpec(name="constant", summary="presses nothing"),
    BotSpec(name="random", summary="presses each key with probability 1/2 in every frame"),
    BotSpec(name="based", summary="walks up to its opponent, jumps back up and strikes lightly within reach"),
    BotSpec(name="clockwork", summary="plays a fixed list of keys and starts over"),
)
CONSTANT, RANDOM, BASED, CLOCKWORK = range(len(BOTS))


def brawl_spec(max_frames: int | None = None) -> GameSpec:
    """The spec of a match of at most `max_frames` frames (None: 90 s)."""
    return GameSpec(
        name=NAME,
        version=VERSION,
        frames_per_second=rules.FRAMES_PER_SECOND,
        observation_size=2 * OWN_SIZE,
        own_size=OWN_SIZE,
        action_size=len(rules.KEY_NAMES),
        action_names=rules.KEY_NAMES,
        reward_terms=TERMS,
        stats=STATS,
        bots=BOTS,
        max_frames=max_frames if max_frames is not None else rules.MATCH_SECONDS * rules.FRAMES_PER_SECOND,
        reward_presets=PRESETS,
    )
