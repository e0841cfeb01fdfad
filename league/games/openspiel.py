"""Plays OpenSpiel's two-player games: `openspiel:NAME`, such as `openspiel:leduc_poker`.

Shape suffixes: N positions, E edges, R rows, 2 seats, A action width, O observation width.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError, nearest
from league.games.base import CHOICE, GameSpec
from league.games.choice_game import PAYOFF, ROUNDING, WIN
from league.games.choice_rules import RANDOM_BOT, TreeRules
from league.games.hosted import Host
from league.games.seen import (
    MOST_NUMBERS,
    SeenGame,
    clip,
    match_seed,
    observed,
    seen_spec,
    seen_type,
)

try:
    import pyspiel
except ImportError as error:
    raise ConfigError(
        "game 'openspiel' needs OpenSpiel: pip install 'kumite[openspiel]'"
    ) from error

STATS = ("moves", PAYOFF)
LONGEST_TEXT = 20_000
MOST_POSITIONS = 100_000
"""Largest number of positions in a level of a tree. OpenSpiel makes positions one at a time and
takes 30 microseconds for each.
"""


class OpenSpielGame(SeenGame):
    """Plays N matches of a game of OpenSpiel.

    Seats 0 and 1 are OpenSpiel's players 0 and 1. A seat's view is the player's information state,
    or its observation in games without information states. A match's seed determines the chance
    events.

    Args:
        num_matches: matches that step together.
        argument: OpenSpiel's name of the game, with its parameters: `leduc_poker`,
            `goofspiel(num_cards=4)`.
        max_frames: frames after which a match ends with its payoffs so far. None means the length
            of the longest match.

    Raises:
        ConfigError: there is no such game, or a league can't play it.
    """

    def __init__(
        self, num_matches: int, *, argument: str = "", max_frames: int | None = None
    ) -> None:
        spiel = Spiel(argument)
        super().__init__(_spec(argument, spiel, max_frames), num_matches, _InProcess(spiel))
        self._spiel = spiel

    def step(self, actions_N2A: NDArray[np.uint8], frames: int = 1) -> None:
        """Plays a choice in every match."""
        self.refuse_illegal(self.checked_actions(actions_N2A, frames))
        super().step(actions_N2A, frames)

    def clipped(self) -> Counter[str]:
        """Counts observed values outside [-1, 1] since the last call."""
        counts, self._spiel.clipped = self._spiel.clipped, Counter()
        return counts

    def tree_rules(self) -> TreeRules | None:
        """Returns the rules for computing exact values, or None. A game has these rules only if it
        is zero-sum and no time limit cuts its matches short.
        """
        is_whole = self.spec.max_frames >= self._spiel.game.max_game_length()
        return SpielRules(self._spiel) if self._spiel.is_zero_sum and is_whole else None


class Spiel:
    """Wraps a game of OpenSpiel: checks it, turns its states into records, and plays choices.

    Attributes:
        clipped: how often each number was outside [-1, 1]. `BatchedGame.clipped` describes the
            keys.

    Raises:
        ConfigError: there is no such game, or a league can't play it.
    """

    def __init__(self, name: str) -> None:
        short, names = name.partition("(")[0], pyspiel.registered_names()
        if short not in names:
            question = nearest(short, names) or "name one as openspiel:NAME"
            raise ConfigError(f"OpenSpiel has no game {short[:60]!r}: {question}")
        try:
            self.game = pyspiel.load_game(name)
        except Exception as error:  # whatever a game may raise
            raise ConfigError(f"OpenSpiel can't make {name[:60]!r}: {str(error)[:200]}") from error
        self.name, kind = name, self.game.get_type()
        self.clipped: Counter[str] = Counter()
        self.is_zero_sum = kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        self._has_text = kind.provides_observation_string
        self._tensor = "observation_tensor"
        if kind.provides_information_state_tensor:
            self._tensor = "information_state_tensor"
        has_tensor = kind.provides_information_state_tensor or kind.provides_observation_tensor
        dynamics = pyspiel.GameType.Dynamics
        sampled = kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC
        for is_right, fault in (
            (self.game.num_players() == 2, f"has {self.game.num_players()} players, not 2"),
            (
                kind.dynamics in (dynamics.SEQUENTIAL, dynamics.SIMULTANEOUS),
                "has neither turns nor simultaneous choices",
            ),
            (not sampled, "draws its own luck, so that a seed does not repeat a match"),
            (
                kind.utility != pyspiel.GameType.Utility.IDENTICAL,
                "pays both players alike, so that nobody can win",
            ),
            (has_tensor, "has no tensor of what a player sees"),
        ):
            if not is_right:
                raise ConfigError(f"a league can't play {name}: the game {fault}")
        self.action_size = self.game.num_distinct_actions()
        self.view_size = int(np.prod(getattr(self.game, f"{self._tensor}_shape")()))
        if not 1 <= self.view_size <= MOST_NUMBERS:
            raise ConfigError(
                f"a league can't play {name}: a player sees {self.view_size} numbers, and 1 to "
                f"{MOST_NUMBERS} can be taken"
            )

    @cached_property
    def action_names(self) -> tuple[str, ...]:
        """The names of the choices: OpenSpiel's names if they are the same for both players,
        otherwise numbers.
        """
        numbers = tuple(f"choice {action}" for action in range(self.action_size))
        with contextlib.suppress(pyspiel.SpielError, RuntimeError):
            of_player = [
                tuple(self.game.action_to_string(player, action) for action in range(len(numbers)))
                for player in (0, 1)
            ]
            if of_player[0] == of_player[1] and len({*of_player[0]}) == len(numbers):
                return of_player[0]
        return numbers

    def seen(self, states: Sequence[Any] | NDArray[Any]) -> NDArray[np.void]:
        """Returns a record of `seen_type` for each state."""
        seen_R = np.zeros(len(states), seen_type(self.view_size, self.action_size))
        acting, legal, views = seen_R["acting"], seen_R["legal"], seen_R["views"]
        for index, state in enumerate(states):
            is_over, tensor = state.is_terminal(), getattr(state, self._tensor)
            for player in (0, 1):
                choices = [] if is_over else state.legal_actions(player)
                acting[index, player] = bool(choices)
                legal[index, player, choices or [0]] = True
                views[index, player] = tensor(player)
        clip(views, self.clipped)
        return seen_R

    def play(self, state: Any, choices: Sequence[int]) -> None:
        """Plays a choice of each player. The choice of a player that waits is ignored."""
        if state.is_simultaneous_node():
            # a player without a legal choice passes
            legal = [state.legal_actions(player) for player in (0, 1)]
            state.apply_actions(
                [choice if may else 0 for choice, may in zip(choices, legal, strict=True)]
            )
        else:
            state.apply_action(choices[state.current_player()])

    def text(self, state: Any) -> str:
        """Returns OpenSpiel's text: the acting player's observation, or else the whole state."""
        player = max(0, state.current_player())
        words = state.observation_string(player) if self._has_text else str(state)
        return words[:LONGEST_TEXT]


def _spec(argument: str, spiel: Spiel, max_frames: int | None) -> GameSpec:
    largest = max(abs(spiel.game.min_utility()), abs(spiel.game.max_utility()))
    is_bounded = bool(np.isfinite(largest) and largest > 0)
    return seen_spec(
        name=f"openspiel:{argument}",
        version=f"{version('open_spiel')} {spiel.game}",
        frames_per_second=1,
        view_size=spiel.view_size,
        action_names=spiel.action_names,
        action_kind=CHOICE,
        terms=(PAYOFF,),
        stats=STATS,
        max_frames=max_frames or spiel.game.max_game_length(),
        # if a match pays 1 or -1, payoffs tell no more than wins
        payoff_unit="" if largest == 1.0 else "points",
        largest_payoff=largest if is_bounded else None,
        reward_presets={
            "dense": {PAYOFF: 1.0 / largest if is_bounded else 1.0},
            "sparse": {WIN: 1.0},
        },
    )


class _InProcess(Host):
    """Plays matches in this process."""

    def __init__(self, spiel: Spiel) -> None:
        self._spiel, self._started = spiel, False
        self._states: dict[int, Any] = {}
        self._luck: dict[int, Random] = {}

    @property
    def is_started(self) -> bool:
        """Whether matches can be played."""
        return self._started

    def start(self) -> None:
        """Marks the host as started."""
        self._started = True

    def close(self) -> None:
        """Ends all matches."""
        self._started = False
        self._states.clear()

    def run(
        self, verb: str, rows: Sequence[int], arguments: Callable[[list[int]], tuple[Any, ...]]
    ) -> tuple[list[tuple[list[int], Any]], dict[int, str]]:
        """Calls the method for `verb`."""
        asked = list(rows)
        return [(asked, getattr(self, f"_{verb}")(asked, *arguments(asked)))], {}

    def _text(self, rows: list[int]) -> str:
        return self._spiel.text(self._states[rows[0]])

    def _begin(
        self, rows: list[int], seeds: list[int], played: list[bytes]
    ) -> tuple[bytes, dict[int, str]]:
        """Begins matches. To continue a saved match, its actions are played again."""
        for row, seed, actions in zip(rows, seeds, played, strict=True):
            self._states[row] = self._spiel.game.new_initial_state()
            self._luck[row] = Random(match_seed(seed))
            self._draw(row)
            for choices in self._choices(actions):
                self._play(row, choices)
        return self._spiel.seen([self._states[row] for row in rows]).tobytes(), {}

    def _step(
        self, rows: list[int], actions: bytes, is_last: list[bool]
    ) -> tuple[bytes, dict[int, str]]:
        before_R2 = np.array([self._states[row].returns() for row in rows]).reshape(-1, 2)
        for row, choices in zip(rows, self._choices(actions), strict=True):
            self._play(row, choices)
        seen_R = self._spiel.seen([self._states[row] for row in rows])
        after_R2 = np.array([self._states[row].returns() for row in rows]).reshape(-1, 2)
        seen_R["rewards"][:, :, 0] = after_R2 - before_R2
        over_R = [self._states[row].is_terminal() for row in rows]
        seen_R["ended"] = np.array(over_R, np.bool_) | np.array(is_last, np.bool_)
        lead_R, sum_R = after_R2[:, 0] - after_R2[:, 1], np.abs(after_R2).sum(-1)
        seen_R["lead"] = np.where(np.abs(lead_R) <= ROUNDING * sum_R, 0, np.sign(lead_R))
        return seen_R.tobytes(), {}

    def _choices(self, actions: bytes) -> list[list[int]]:
        bits = np.frombuffer(actions, np.uint8).reshape(-1, 2, self._spiel.action_size)
        return bits.argmax(-1).tolist()

    def _play(self, row: int, choices: list[int]) -> None:
        self._spiel.play(self._states[row], choices)
        self._draw(row)

    def _draw(self, row: int) -> None:
        """Draws the outcomes of chance events until a player has to choose or the match ends."""
        state, luck = self._states[row], self._luck[row]
        while state.is_chance_node():
            actions, weights = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(luck.choices(actions, weights)[0])


class SpielRules(TreeRules):
    """Provides the rules of an OpenSpiel game for computing exact values. A position is a state of
    OpenSpiel.
    """

    bots = (RANDOM_BOT,)

    def __init__(self, spiel: Spiel) -> None:
        self._spiel, self.name, self.most_positions = spiel, spiel.name, MOST_POSITIONS

    def deal(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Returns the states before the first choice, and their probabilities."""
        dealt = [*self._after_chance(self._spiel.game.new_initial_state(), 1.0)]
        return _states([state for state, _ in dealt]), np.array([chance for _, chance in dealt])

    def _after_chance(self, state: Any, chance: float) -> Iterator[tuple[Any, float]]:
        """Yields each state that the next chance events can lead to, with its probability."""
        if not state.is_chance_node():
            yield state, chance
            return
        for action, probability in state.chance_outcomes():
            yield from self._after_chance(state.child(action), chance * probability)

    def legal(self, positions_N: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns each player's legal choices."""
        return self._spiel.seen(positions_N)["legal"]

    def observe(self, positions_N: NDArray[Any]) -> NDArray[np.float32]:
        """Returns each player's observation, as in a match."""
        return observed(self._spiel.seen(positions_N), is_choice=True)

    def follow(
        self, positions_E: NDArray[Any], choices_E2: NDArray[np.intp]
    ) -> tuple[
        NDArray[np.intp], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[Any]
    ]:
        """Plays choices and the chance events after them."""
        edges, chances, paid, over, states = [], [], [], [], []
        for edge, (position, choices) in enumerate(
            zip(positions_E, choices_E2.tolist(), strict=True)
        ):
            before, state = position.returns()[0], position.clone()
            self._spiel.play(state, choices)
            for reached, chance in self._after_chance(state, 1.0):
                edges.append(edge)
                chances.append(chance)
                paid.append(reached.returns()[0] - before)
                over.append(reached.is_terminal())
                states.append(reached)
        numbers = np.array(edges, np.intp), np.array(chances), np.array(paid), np.array(over)
        return *numbers, _states(states)

    def label(self, position: Any, player: int) -> str:
        """Returns OpenSpiel's text of the player's information state, or of the whole state in
        games without information states.
        """
        has_text = self._spiel.game.get_type().provides_information_state_string
        return position.information_state_string(player) if has_text else str(position)


def _states(states: list[Any]) -> NDArray[Any]:
    """Returns states as an array."""
    found_N = np.empty(len(states), object)
    found_N[:] = states
    return found_N
