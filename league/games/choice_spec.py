"""What a learner must know of a game of choices: its sizes, reward terms, stats and bots."""

from __future__ import annotations

from types import MappingProxyType

from league.games.base import CHOICE, BotSpec, GameSpec
from league.games.choice_rules import ChoiceRules

REWARD_TERMS = PAYOFF, WIN = ("payoff", "win")
FIRST = "first"
MAX_COUNTED = 32
"""A game of more actions does not count each of them in its stats."""


def choice_spec(rules: ChoiceRules) -> GameSpec:
    """The spec of a game of these rules.

    Term `payoff` is in the game's own units and preset `dense` weighs it so that the most that a
    match can pay is 1; `sparse` is the outcome alone.
    """
    counted = rules.action_names if len(rules.action_names) <= MAX_COUNTED else ()
    return GameSpec(
        name=rules.name,
        version=rules.version,
        frames_per_second=1,
        observation_size=rules.observation_size,
        own_size=rules.own_size,
        observation_names=rules.observation_names,
        action_size=len(rules.action_names),
        action_names=rules.action_names,
        reward_terms=REWARD_TERMS,
        stats=(PAYOFF, FIRST, *(f"chose_{name}" for name in counted)),
        bots=tuple(BotSpec(name=bot.name, summary=bot.summary) for bot in rules.bots),
        max_frames=rules.longest,
        action_kind=CHOICE,
        reward_presets=MappingProxyType(
            {
                "dense": MappingProxyType({PAYOFF: 1.0 / (rules.largest_payoff or 1.0)}),
                "sparse": MappingProxyType({WIN: 1.0}),
            }
        ),
    )
