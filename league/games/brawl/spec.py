"""Defines the game's spec (scripted bots, stats and sizes) without loading the compiler."""

from __future__ import annotations

from typing import Final

from league.games.base import BotSpec, GameSpec
from league.games.brawl import rules
from league.games.brawl.layout import FIELDS, STATS
from league.games.brawl.rewards import PRESETS, TERMS

OWN_SIZE: Final = 32
MAX_FRAMES: Final = rules.MATCH_SECONDS * rules.FRAMES_PER_SECOND

_SUMMARIES: Final = {
    "constant": "presses nothing",
    "random": "presses each key with probability 1/2 in every frame",
    "based": "walks up to its opponent, jumps back up and strikes lightly within reach",
    "clockwork": "plays a fixed list of keys, then presses nothing",
    "aggressive": "runs up to its opponent and strikes whatever comes into reach",
    "defensive": "waits on its own ground, dodges attacks and strikes back",
    "kiter": "hits and runs, and keeps its distance in between",
    "aerial": "stays in the air and strikes from above",
    "sig_spammer": "uses heavy attacks alone, charged until the opponent is in reach",
    "weapon_seeker": "fetches every weapon that comes, then attacks",
    "edge_guarder": "stands at the edge of the pit and strikes who comes back over it",
    "mirror": "repeats its opponent's keys after half a second",
    "drunk": "plays like based, with 30 % of its keys left to chance",
    "camper": "waits at a camp and strikes an opponent that comes, with new habits in each match",
    "fencer": "attacks when an attack will hit, else keeps away, with new habits in each match",
    "platform_holder": "stays on the moving platform and pounds opponents below it",
}
_HELD_OUT: Final = ("edge_guarder", "mirror", "drunk")
BOTS: Final = tuple(
    BotSpec(name=name, summary=summary, held_out=name in _HELD_OUT)
    for name, summary in _SUMMARIES.items()
)
CONSTANT, RANDOM, BASED, CLOCKWORK, AGGRESSIVE, DEFENSIVE, KITER = range(7)
AERIAL, SIG_SPAMMER, WEAPON_SEEKER, EDGE_GUARDER, MIRROR, DRUNK = range(7, 13)
CAMPER, FENCER, PLATFORM_HOLDER = range(13, 16)
ROLLOUTS: Final = (8, 16, 64, 256, 1024)
"""Number of rollouts per decision of each planner, a bot that searches in the game itself."""
PLANNERS: Final = tuple(
    BotSpec(
        name=f"planner_{rollouts}",
        summary=f"plays the best plan of {rollouts} rollouts in the game itself",
        held_out=True,
    )
    for rollouts in ROLLOUTS
)
PLANNER: Final = len(BOTS)
"""Index of the first planner."""


def brawl_spec(max_frames: int | None = None) -> GameSpec:
    """Returns the spec for matches of at most `max_frames` frames. None means 90 s."""
    return GameSpec(
        name="brawl",
        version="7",
        frames_per_second=rules.FRAMES_PER_SECOND,
        observation_size=2 * OWN_SIZE + len(rules.KEY_NAMES),
        own_size=OWN_SIZE,
        observation_names=(
            *(f"own {name}" for name in FIELDS),
            *(f"opponent {name}" for name in FIELDS),
            *(f"held {key}" for key in rules.KEY_NAMES),
        ),
        action_size=len(rules.KEY_NAMES),
        action_names=rules.KEY_NAMES,
        action_words=rules.KEY_WORDS,
        reward_terms=TERMS,
        stats=STATS,
        bots=BOTS,
        yardsticks=PLANNERS,
        max_frames=MAX_FRAMES if max_frames is None else max_frames,
        reward_presets=PRESETS,
        places=(FIELDS.index("x"), FIELDS.index("y")),
        older_versions=("3", "4", "5", "6"),
        training_options=("off_stage_starts",),
    )
