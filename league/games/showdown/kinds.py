"""Defines singles and doubles: a player's choices, their Showdown commands, and the bots.

Singles have the choices of poke-env's `SinglesEnv`: 6 switches and 4 moves, then the same 4 moves
in each of four special forms. Generation 9 allows only the last of these forms, terastallizing.

In doubles a choice is a pair, with a choice for each fighting Pokémon. Each Pokémon has 45 choices
(pass, 4 switches, 4 moves at 5 targets, and the same moves terastallized), so there are 2,025
pairs. Before the battle a player picks 4 of its 6 Pokémon and decides which two of them fight
first. There are 90 ways to do this.

Shape suffixes: R rows, A choices, S choices of one Pokémon of doubles.
"""

from __future__ import annotations

import logging
import random
from abc import ABC, abstractmethod
from itertools import combinations
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from poke_env.battle import AbstractBattle, Battle, DoubleBattle
from poke_env.environment import DoublesEnv, SinglesEnv
from poke_env.player import MaxBasePowerPlayer, SimpleHeuristicsPlayer
from poke_env.player.battle_order import BattleOrder, DefaultBattleOrder

from league.games.base import BotSpec
from league.games.showdown.observation import GEN, MOVES, TEAM, own_team

BOTS = (
    BotSpec(name="random", summary="makes any legal choice with equal probability"),
    BotSpec(name="max_power", summary="makes the move of the most base power"),
    BotSpec(name="heuristics", summary="weighs types, stats, hazards and switches by fixed rules"),
)
_SPECIAL = ("", "mega ", "z-move ", "dynamax ", "tera ")
_PICKED, _TARGETS = 4, 5
_EACH = 1 + _PICKED + 2 * MOVES * _TARGETS
_JOINT = _EACH * _EACH
PREVIEWS = tuple(
    (*front, *back)
    for front in combinations(range(1, TEAM + 1), 2)
    for back in combinations([n for n in range(1, TEAM + 1) if n not in front], 2)
)
"""Choices of four Pokémon, by their places in the team. The first two fight first."""
_OF_ONE = (
    "pass",
    *(f"switch {n + 1}" for n in range(_PICKED)),
    *(
        f"{special}move {move + 1} at {target}"
        for special in ("", "tera ")
        for move in range(MOVES)
        for target in range(-2, 3)
    ),
)
Followed = TypeVar("Followed", bound=AbstractBattle)
_log = logging.getLogger(__name__)
_log.setLevel(logging.CRITICAL)  # hides poke-env's warnings of messages that it doesn't know


class Kind(ABC, Generic[Followed]):
    """Defines the differences between singles and doubles.

    Attributes:
        active: number of Pokémon of a side that fight at the same time.
        action_names: names of the choices.
        shown_names: an observation shows a player its legal choices as numbers. These are the
            numbers' names.
        brings_team: whether players bring their own teams. Otherwise the format draws them.
    """

    active: int
    brings_team: bool
    action_names: tuple[str, ...]
    shown_names: tuple[str, ...]

    @abstractmethod
    def battle(self, name: str) -> Followed:
        """Returns poke-env's object for a battle, seen by the player called `name`."""

    @abstractmethod
    def legal(self, battle: Followed) -> NDArray[np.bool_]:
        """Returns the legal choices of a player that must choose, [A]."""

    @abstractmethod
    def shown(self, legal_RA: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns the legal choices in the form of observations, `[..., len(shown_names)]`."""

    @abstractmethod
    def order(self, battle: Followed, action: int) -> str:
        """Writes a choice as a command of Showdown.

        Raises:
            ValueError: the choice can't be made.
        """

    @abstractmethod
    def planned(self, battle: Followed, bot: str) -> int:
        """Asks a bot for its order in a battle, and returns the choice that means this order.

        Not for the random bot. Raises `ValueError` if no choice means the order.
        """

    def words(self, battle: Followed, action: int) -> str:
        """Returns a choice as a command of Showdown, or "default" if the choice can't be made."""
        try:
            return self.order(battle, action).removeprefix("/choose ")
        except ValueError:
            return "default"

    def chosen(self, battle: Followed, bot: str, legal_A: NDArray[np.bool_], seed: int) -> int:
        """Returns a bot's choice, or a random legal choice if the bot's own choice isn't legal."""
        if bot != "random":
            random.seed(seed)  # poke-env's bots draw from this generator
            try:
                action = self.planned(battle, bot)
            except (AssertionError, IndexError, ValueError):
                action = -1
            if 0 <= action < len(legal_A) and legal_A[action]:
                return action
        return int(np.flatnonzero(legal_A)[seed % int(legal_A.sum())])


class Singles(Kind[Battle]):
    """Defines singles: one Pokémon of each side fights at a time."""

    active, brings_team = 1, False
    action_names = (
        *(f"switch {n + 1}" for n in range(TEAM)),
        *(f"{special}move {n + 1}" for special in _SPECIAL for n in range(MOVES)),
    )
    shown_names = action_names

    def battle(self, name: str) -> Battle:
        return Battle("battle", name, _log, GEN)

    def legal(self, battle: Battle) -> NDArray[np.bool_]:
        legal_A = np.array(SinglesEnv.get_action_mask(battle), np.bool_)
        legal_A[0] |= not legal_A.any()
        return legal_A

    def shown(self, legal_RA: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return legal_RA

    def order(self, battle: Battle, action: int) -> str:
        return SinglesEnv.action_to_order(np.int64(action), battle, fake=True).message

    def planned(self, battle: Battle, bot: str) -> int:
        order: BattleOrder
        if bot == "max_power":
            order = MaxBasePowerPlayer.choose_singles_move(battle)
        else:
            order, _ = SimpleHeuristicsPlayer.choose_singles_move(battle)
        return int(SinglesEnv.order_to_action(order, battle, fake=True))


class Doubles(Kind[DoubleBattle]):
    """Defines doubles: two Pokémon of each side fight at a time. Before the battle, each player
    sees both teams and picks four of its own Pokémon.
    """

    active, brings_team = 2, True
    action_names = (
        *(f"{first}, {second}" for first in _OF_ONE for second in _OF_ONE),
        *(f"team {''.join(map(str, places))}" for places in PREVIEWS),
    )
    shown_names = (
        *(f"{slot}: {name}" for slot in ("first", "second") for name in _OF_ONE),
        "team",
    )

    def __init__(self) -> None:
        switches_S = np.arange(_EACH) * ((np.arange(_EACH) > 0) & (np.arange(_EACH) <= _PICKED))
        tera_S = np.arange(_EACH) > _PICKED + MOVES * _TARGETS
        same_SS = (switches_S[:, None] == switches_S) & (switches_S > 0)
        self._together_SS = ~(same_SS | (tera_S[:, None] & tera_S))
        self._heuristics = object.__new__(SimpleHeuristicsPlayer)  # without its connection

    def battle(self, name: str) -> DoubleBattle:
        return DoubleBattle("battle", name, _log, GEN)

    def legal(self, battle: DoubleBattle) -> NDArray[np.bool_]:
        if battle.teampreview:
            return np.arange(len(self.action_names)) >= _JOINT
        first_S, second_S = (
            np.array(DoublesEnv.get_action_mask_individual(battle, slot), np.bool_)[
                self._numbers(battle)
            ]
            for slot in (0, 1)
        )
        legal_SS = first_S[:, None] & second_S & self._together_SS
        legal_SS[0, 0] &= legal_SS.sum() == 1
        legal_A = np.zeros(len(self.action_names), np.bool_)
        legal_A[:_JOINT] = legal_SS.ravel()
        legal_A[0] |= not legal_A.any()
        return legal_A

    def shown(self, legal_RA: NDArray[np.bool_]) -> NDArray[np.bool_]:
        rows = legal_RA.shape[:-1]
        joint_RSS = legal_RA[..., :_JOINT].reshape(*rows, _EACH, _EACH)
        picks_R1 = legal_RA[..., _JOINT:].any(-1, keepdims=True)
        return np.concatenate([joint_RSS.any(-1), joint_RSS.any(-2), picks_R1], -1)

    def order(self, battle: DoubleBattle, action: int) -> str:
        if action >= _JOINT:
            return self.action_names[action]
        both = self._numbers(battle)[list(divmod(action, _EACH))]
        return DoublesEnv.action_to_order(both, battle, fake=True).message

    def planned(self, battle: DoubleBattle, bot: str) -> int:
        if battle.teampreview:
            raise ValueError("a team is picked by chance")
        if bot == "max_power":
            order = MaxBasePowerPlayer.choose_doubles_move(battle)
        else:
            order = self._heuristics.choose_move(battle)
        if isinstance(order, DefaultBattleOrder):
            raise ValueError("the bot leaves the choice to Showdown")
        numbers = self._numbers(battle).tolist()
        first, second = DoublesEnv.order_to_action(order, battle, fake=True).tolist()
        return numbers.index(first) * _EACH + numbers.index(second)

    @staticmethod
    def _numbers(battle: DoubleBattle) -> NDArray[np.int64]:
        """Returns poke-env's number (of 107) for each of the 45 choices.

        In poke-env's numbering, 1 is a switch to the team's first Pokémon, and 7 is the first move
        at the first target.
        """
        team, picked = list(battle.team.values()), own_team(battle)[:_PICKED]
        switches = [1 + team.index(pokemon) for pokemon in picked]
        switches += [0] * (_PICKED - len(switches))
        moves = np.arange(7, 7 + MOVES * _TARGETS)
        return np.array([0, *switches, *moves, *(moves + 4 * MOVES * _TARGETS)], np.int64)


FORMATS: dict[str, Kind[Any]] = {"gen9randombattle": Singles(), "gen9vgc2025regi": Doubles()}
"""The formats of Showdown that the league plays."""
