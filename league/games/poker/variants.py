"""The two small pokers, and the bots that play them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.games.choice_rules import RANDOM_BOT, Positions, ScriptedBot, always

ACTIONS = ("fold", "call", "raise")
FOLD, CALL, RAISE = range(3)
"""A call where nothing is to be paid is a check, a raise there is a bet. Folding then is not
allowed.
"""


@dataclass(frozen=True, kw_only=True)
class PokerVariant:
    """Fixed-limit poker of two players with one card each.

    Attributes:
        ranks: letters of the ranks, lowest first; suits: copies of each rank.
        bets: chips that a raise adds, by betting round. raises: most raises within a round.
        longest: choices of the longest hand.
    """

    name: str
    version: str
    ranks: str
    suits: int
    bets: tuple[int, ...]
    raises: int
    longest: int
    bots: tuple[ScriptedBot, ...]


CALLER = ScriptedBot(
    name="caller", summary="checks and calls whatever it holds", strategy=always(CALL)
)
AGGRESSIVE = ScriptedBot(
    name="aggressive",
    summary="bets and raises while it may, then calls",
    strategy=always(RAISE, CALL),
)

ALPHA = 1 / 6
"""Kuhn's free parameter: how often the first player bets the jack; every value in [0, 1/3] is an
equilibrium (H. W. Kuhn, "A simplified two-person poker", 1950), this is the middle."""
_FOLD, _CALL, _RAISE = np.eye(3)


def _bets(probability: float) -> NDArray[np.float64]:
    return probability * _RAISE + (1 - probability) * _CALL


def _calls(probability: float) -> NDArray[np.float64]:
    return probability * _CALL + (1 - probability) * _FOLD


# By player, whether a bet is to be answered, and rank: jack, queen, king.
_KUHN_NASH = np.array(
    [
        [[_bets(ALPHA), _bets(0), _bets(3 * ALPHA)], [_calls(0), _calls(ALPHA + 1 / 3), _calls(1)]],
        [[_bets(1 / 3), _bets(0), _bets(1)], [_calls(0), _calls(1 / 3), _calls(1)]],
    ]
)


def kuhn_nash(
    positions_N: Positions, players_N: NDArray[np.intp], legal_NA: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Kuhn's equilibrium at `ALPHA`; worth -1/18 to the first player, a chip being the ante."""
    # one suit: a card is its rank
    ranks_N = positions_N["cards"][np.arange(len(players_N)), players_N]
    answers: NDArray[np.float64] = _KUHN_NASH[players_N, legal_NA[:, FOLD].astype(np.intp), ranks_N]
    return answers


KUHN = PokerVariant(
    name="kuhn",
    version="1",
    ranks="JQK",
    suits=1,
    bets=(1,),
    raises=1,
    longest=3,
    bots=(
        RANDOM_BOT,
        CALLER,
        AGGRESSIVE,
        ScriptedBot(name="nash", summary="plays Kuhn's equilibrium", strategy=kuhn_nash),
    ),
)
# Southey et al., "Bayes' bluff: opponent modelling in poker" (2005).
LEDUC = PokerVariant(
    name="leduc",
    version="1",
    ranks="JQK",
    suits=2,
    bets=(2, 4),
    raises=2,
    longest=8,
    bots=(RANDOM_BOT, CALLER, AGGRESSIVE),
)
