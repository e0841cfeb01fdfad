"""Adapts a PettingZoo environment: finds it by name, maps its spaces to numbers and choices, plays
it from two seats, and shows it as text.

Shape suffixes: A action width, W width of a seat's observation.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, KEYS
from league.games.choice_game import ROUNDING
from league.games.registry import users_module
from league.games.seen import CLOSE, MOST_NAMED, MOST_NUMBERS

FACTORIES = ("parallel_env", "env", "raw_env")
_EXTRA = ("pettingzoo", "pygame")
_UNNAMED = re.compile(r"[^A-Za-z0-9_.-]")
_MARKS = ".XO#@%&*+="
_LONGEST = 20_000


def build(argument: str, options: Mapping[str, Any]) -> Any:
    """Makes an environment, with `render_mode="ansi"` if the environment supports this mode.

    Args:
        argument: `MODULE` or `MODULE:FACTORY`.
        options: the factory's options.

    Raises:
        ConfigError: the environment can't be made.
    """
    module_name, _, attribute = argument.partition(":")
    try:
        module = users_module(module_name)
    except Exception as error:  # a module may raise anything at its import
        if isinstance(error, ImportError) and error.name in _EXTRA:
            raise ConfigError(
                f"{module_name} needs {error.name}, which isn't installed: pip install "
                "'kumite[pettingzoo]'"
            ) from error
        raise ConfigError(f"module {module_name} can't be imported: {reason(error)}") from error
    names = [attribute] if attribute else FACTORIES
    factory: Any = next((made for name in names if (made := getattr(module, name, None))), None)
    if factory is None:
        raise ConfigError(
            f"module {module_name} makes no environment: it has no function {', '.join(names)}"
        )
    with contextlib.redirect_stdout(io.StringIO()):  # keeps the module's output off our own
        try:
            env = factory(**options)
            modes = getattr(env, "metadata", {}).get("render_modes", ())
            if "render_mode" not in options and "ansi" in modes:
                env.close()
                env = factory(render_mode="ansi", **options)
        except Exception as error:
            raise ConfigError(
                f"{argument} can't be made with {dict(options)}: {reason(error)}"
            ) from error
    if not hasattr(env, "possible_agents") or not hasattr(env, "step"):
        raise ConfigError(
            f"{argument} makes a {type(env).__name__}: it must be a PettingZoo environment"
        )
    return env


def reason(error: Exception) -> str:
    """Returns an error's class and the first line of its message."""
    lines = str(error).strip().splitlines()
    return type(error).__name__ + (f": {lines[0][:200]}" if lines else "")


class Face:
    """Converts between an environment and the game: observations to numbers, and keys or choices to
    the environment's actions.

    The two seats may have spaces of different sizes. `action_size` and `view_size` are the larger
    of the two seats' sizes.

    Raises:
        ConfigError: the environment doesn't have two agents, or its spaces aren't supported.
    """

    def __init__(self, env: Any, name: str) -> None:
        agents = list(env.possible_agents)
        if len(agents) != 2:
            raise ConfigError(
                f"{name} is played by {len(agents)} agents: a league plays games of two"
            )
        try:
            seen = [env.observation_space(agent) for agent in agents]
            done = [env.action_space(agent) for agent in agents]
        except Exception as error:
            raise ConfigError(f"{name} has no readable spaces: {reason(error)}") from error
        self._seen = [_without_mask(space) for space in seen]
        self._scales = [_scale(space, name) for space in self._seen]
        self._flatten = [_flattening(space) for space in self._seen]
        self._names = [_UNNAMED.sub("_", str(agent))[:24] for agent in agents]
        self._clipped = [np.zeros(len(scale.low_W), np.int64) for scale in self._scales]
        self._done, self._sizes = done, [_action_size(space, name) for space in done]
        kinds = {KEYS if isinstance(space, spaces.MultiBinary) else CHOICE for space in done}
        if len(kinds) > 1:
            raise ConfigError(
                f"one seat of {name} has keys and the other choices: both must have the same"
            )
        (self.kind,), self.action_size = kinds, max(self._sizes)
        self.view_size = max(map(len, self._clipped))

    def write(self, seat: int, observation: Any, out_W: NDArray[np.float32]) -> None:
        """Writes an observation as numbers in [-1, 1].

        Numbers with bounds are scaled by the bounds, and numbers without bounds by tanh. Values
        outside the bounds are clipped, and counted for `clipped`.

        Args:
            seat: 0 or 1.
            observation: the seat's observation.
            out_W: float32, the array to write.

        Raises:
            ValueError: NaN, infinity, or a choice outside a discrete space.
        """
        scale_W, offset_W, endless_W, low_W, high_W = self._scales[seat]
        value_W = self._flatten[seat](observation)
        is_inside = not endless_W.size and ((value_W >= low_W) & (value_W <= high_W)).all()
        if is_inside:  # as nearly always, so the checks below are left out
            out_W[: len(scale_W)] = value_W * scale_W + offset_W
            return
        if not np.isfinite(value_W).all():
            raise ValueError("an observation holds NaN or infinity")
        scaled_W = value_W * scale_W + offset_W
        if endless_W.size:
            scaled_W[endless_W] = np.tanh(value_W[endless_W])
        np.clip(scaled_W, -1.0, 1.0, out=out_W[: len(scaled_W)])
        beyond_W = np.abs(value_W - np.clip(value_W, low_W, high_W))
        outside_W = beyond_W > CLOSE * (np.abs(value_W) + high_W - low_W)
        if outside_W.any():
            self._clipped[seat] += outside_W

    def clipped(self) -> dict[str, int]:
        """Counts the values that were clipped since the last call.

        Returns:
            A count for each of the `MOST_NAMED` numbers that were clipped most often. Its key is
            AGENT/INDEX/LOW/HIGH, where INDEX is a position in the flattened observation. A key has
            only characters that a metric's name may have.
        """
        counts: dict[str, int] = {}
        for name, scale, count_W in zip(self._names, self._scales, self._clipped, strict=True):
            for index in np.argsort(-count_W, kind="stable")[:MOST_NAMED].tolist():
                bounds = f"{scale.low_W[index]:g}/{scale.high_W[index]:g}".replace("+", "")
                key = f"{name}/{index}/{bounds}"  # shortened agent names may be equal
                counts[key] = counts.get(key, 0) + int(count_W[index])
            count_W[:] = 0
        return {name: count for name, count in counts.items() if count}

    def legal(self, seat: int, observation: Any, info: Any) -> NDArray[np.bool_]:
        """Returns a seat's legal choices, from the mask in its observation or its info.

        Args:
            seat: 0 or 1.
            observation: the seat's observation.
            info: the seat's info.

        Returns:
            bool[A]. Without a mask all choices are legal.

        Raises:
            ValueError: the mask does not fit, or it allows no choice.
        """
        legal_A, size = np.zeros(self.action_size, np.bool_), self._sizes[seat]
        mask = observation.get("action_mask") if isinstance(observation, dict) else None
        if mask is None and isinstance(info, dict):
            mask = info.get("action_mask")
        allowed_A = np.ones(size) if mask is None else np.asarray(mask).reshape(-1)
        if allowed_A.size != size:
            raise ValueError(f"its action mask has {allowed_A.size} places for {size} choices")
        legal_A[:size] = allowed_A
        if not legal_A.any():
            raise ValueError("the agent to act has an action mask that allows nothing")
        return legal_A

    def action(self, seat: int, row_A: NDArray[np.uint8]) -> Any:
        """Returns a seat's action in the form that the environment expects."""
        space = self._done[seat]
        if isinstance(space, spaces.Discrete):
            return int(space.start) + int(row_A.argmax())
        return row_A[: self._sizes[seat]].astype(space.dtype).reshape(space.shape)


def _flattening(space: spaces.Space) -> Callable[[Any], NDArray[np.float64]]:
    """Returns a function that turns an observation into float64[W] as `spaces.flatten` does, and
    raises `ValueError` for a choice outside its space. For a single Box, which most boards are, it
    takes a seventh of the time.
    """
    if isinstance(space, spaces.Box):
        return lambda seen: np.asarray(seen, space.dtype).reshape(-1).astype(np.float64)
    if isinstance(space, spaces.Dict) and len(space) == 1:
        ((key, only),) = space.items()
        inner = _flattening(only)
        return lambda seen: inner(seen[key])

    def flatten(seen: Any) -> NDArray[np.float64]:
        _check_choices(space, seen)
        return np.asarray(spaces.flatten(space, seen), np.float64)

    return flatten


def _check_choices(space: spaces.Space, value: Any) -> None:
    """Raises `ValueError` if a discrete value is outside its space.

    Without this check, `flatten` may turn it into another value.
    """
    if isinstance(space, spaces.Dict):
        for key, subspace in space.items():
            _check_choices(subspace, value[key])
    elif isinstance(space, spaces.Tuple):
        for subspace, inside in zip(space.spaces, value, strict=True):
            _check_choices(subspace, inside)
    elif isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        choice, size = value - space.start, getattr(space, "n", getattr(space, "nvec", None))
        if np.any((choice < 0) | (choice >= size)):
            raise ValueError(f"an observation holds {value}, which {space} lacks")


def _without_mask(space: spaces.Space) -> spaces.Space:
    """Returns the space without its action mask. The game shows legal choices in its own way."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict(
            {key: subspace for key, subspace in space.items() if key != "action_mask"}
        )
    return space


class _Scale(NamedTuple):
    """Holds the factor, the offset and the bounds of each number, and the indices of numbers
    without bounds.
    """

    scale_W: NDArray[np.float64]
    offset_W: NDArray[np.float64]
    endless_W: NDArray[np.intp]
    low_W: NDArray[np.float64]
    high_W: NDArray[np.float64]


def _scale(space: spaces.Space, name: str) -> _Scale:
    flat = spaces.flatten_space(space)
    if not isinstance(flat, spaces.Box):
        raise ConfigError(
            f"{name} observes a {type(space).__name__}: Box, Discrete, MultiDiscrete, MultiBinary, "
            "and Dict and Tuple of these can be taken"
        )
    if not 1 <= flat.shape[0] <= MOST_NUMBERS:
        raise ConfigError(
            f"{name} observes {flat.shape[0]} numbers: 1 to {MOST_NUMBERS} can be taken"
        )
    low_W, high_W = flat.low.astype(np.float64), flat.high.astype(np.float64)
    span_W = high_W - low_W
    bounded_W = np.isfinite(span_W) & (span_W < 1e30)
    scaled_W = bounded_W & (span_W > 0)
    scale_W = np.divide(2.0, span_W, out=np.zeros_like(span_W), where=scaled_W)
    offset_W = np.where(scaled_W, -1.0 - np.where(bounded_W, low_W, 0.0) * scale_W, 0.0)
    low_W, high_W = np.where(bounded_W, (low_W, high_W), [[-np.inf], [np.inf]])
    return _Scale(scale_W, offset_W, np.flatnonzero(~bounded_W), low_W, high_W)


def _action_size(space: spaces.Space, name: str) -> int:
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiBinary):
        return int(np.prod(space.shape))
    raise ConfigError(
        f"{name} is played by a {type(space).__name__}: Discrete and MultiBinary can be taken"
    )


def _rounding(reward: Any) -> float:
    """Returns the largest relative rounding error of a reward. A whole number is exact."""
    kind = np.asarray(reward).dtype
    return max(ROUNDING, 4 * float(np.finfo(kind).eps)) if kind.kind == "f" else 0.0


class Seats(ABC):
    """Plays an environment from two seats. Errors of the environment pass through.

    Attributes:
        observations, infos: the latest values by seat. After a seat's agent has left the match, the
            seat keeps its last values.
        acting: whether each seat has to act next. After the match both are False.
        rewards: rewards of the last step, by seat.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents: list[Any] = list(env.possible_agents)
        self.observations: list[Any] = [None, None]
        self.infos: list[Any] = [{}, {}]
        self.acting = [False, False]
        self.rewards = [0.0, 0.0]
        self._lead = self._rounding = 0.0

    @staticmethod
    def of(env: Any) -> Seats:
        """Returns the seats of `env`. Its first possible agent has seat 0."""
        return TurnSeats(env) if hasattr(env, "agent_iter") else ParallelSeats(env)

    def reset(self, seed: int) -> None:
        """Begins a match with `seed`, and forgets the rewards of the previous match."""
        self._lead = self._rounding = 0.0
        self.begin(seed)

    @abstractmethod
    def begin(self, seed: int) -> None:
        """Begins a match with `seed` in the environment."""

    @abstractmethod
    def step(self, actions: Sequence[Any]) -> None:
        """Plays a step with the actions of the acting seats."""

    def lead(self) -> float:
        """Returns the sign of seat 0's total reward minus seat 1's total reward: 1, 0 or -1.

        A difference that is no larger than rounding errors counts as 0.
        """
        return 0.0 if abs(self._lead) <= self._rounding else math.copysign(1.0, self._lead)

    def set_acting(self, acting: Iterable[Any]) -> None:
        """Sets the agents that have to act next. Raises `ValueError` for an unknown agent."""
        turns = list(acting)
        for agent in turns:
            if agent not in self.agents:
                raise ValueError(f"agent {agent!r} is to act, but possible_agents lacks it")
        self.acting = [agent in turns for agent in self.agents]

    def earn(self, paid: Mapping[Any, Any]) -> None:
        """Adds a step's rewards by agent. Raises `ValueError` for NaN and infinity."""
        rewards = [paid.get(agent, 0.0) for agent in self.agents]
        self.rewards = [float(reward) for reward in rewards]
        if not all(map(math.isfinite, self.rewards)):
            raise ValueError(f"a reward is {self.rewards}")
        self._lead += self.rewards[0] - self.rewards[1]
        self._rounding += sum(abs(float(reward)) * _rounding(reward) for reward in rewards)


class ParallelSeats(Seats):
    """Plays an environment in which all agents act at once."""

    def begin(self, seed: int) -> None:
        """Begins a match with `seed` in the environment."""
        self._done: set[Any] = set()  # these agents never act again, even if `env.agents` has them
        observations, infos = self.env.reset(seed=seed)
        self._see(observations, infos)

    def step(self, actions: Sequence[Any]) -> None:
        """Plays a step with the agents that have not finished."""
        chosen = {a: actions[seat] for seat, a in enumerate(self.agents) if self.acting[seat]}
        observations, rewards, terminations, truncations, infos = self.env.step(chosen)
        self.earn(rewards)
        for done in (terminations, truncations):
            self._done |= {agent for agent, is_so in done.items() if is_so}
        self._see(observations, infos)

    def _see(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> None:
        for seat, agent in enumerate(self.agents):
            if agent in observations:
                self.observations[seat] = observations[agent]
            self.infos[seat] = infos.get(agent, {})
        self.set_acting(agent for agent in self.env.agents if agent not in self._done)


class TurnSeats(Seats):
    """Plays an environment in which agents act in turns."""

    def begin(self, seed: int) -> None:
        """Begins a match with `seed` in the environment."""
        self.env.reset(seed=seed)
        self._see()
        self._find_turn()

    def step(self, actions: Sequence[Any]) -> None:
        """Plays the turn of the acting agent, and removes agents that have finished."""
        self.env.step(actions[self.acting.index(True)])
        self.earn(self.env.rewards)
        self._see()
        self._find_turn()

    def _find_turn(self) -> None:
        """Finds the next agent that can act. A finished agent's turn needs a step with None, which
        removes the agent.
        """
        env = self.env  # attributes pass through several wrappers, so each is read once
        for _ in range(1 + len(self.agents)):
            ended, cut, turn = env.terminations, env.truncations, env.agent_selection
            playing = [a for a in env.agents if not (ended.get(a, False) or cut.get(a, False))]
            if turn in playing or not playing:
                break
            env.step(None)
            self._see()
        else:
            raise ValueError(f"agent {turn!r} is to act, but agents lacks it")
        self.set_acting([turn] if playing else [])

    def _see(self) -> None:
        here, infos = self.env.agents, self.env.infos
        for seat, agent in enumerate(self.agents):
            if agent in here:
                self.observations[seat] = self.env.observe(agent)
                self.infos[seat] = infos.get(agent, {})


def board_text(seats: Seats) -> str:
    """Returns the environment's own text, or else the acting seat's observation."""
    if getattr(seats.env, "render_mode", None) == "ansi":
        rendered = seats.env.render()
        if isinstance(rendered, str):
            return rendered[:_LONGEST]
    seat = seats.acting.index(True) if any(seats.acting) else 0
    return f"{seats.agents[seat]} sees:\n{observation_text(seats.observations[seat])}"[:_LONGEST]


def observation_text(observation: Any) -> str:
    """Describes an observation. A binary array [height, width, marks] becomes a board."""
    if isinstance(observation, dict):
        rest = {key: value for key, value in observation.items() if key != "action_mask"}
        return "\n".join(
            observation_text(value) if len(rest) == 1 else f"{key}: {observation_text(value)}"
            for key, value in rest.items()
        )
    numbers = np.asarray(observation)
    is_board = numbers.ndim == 3 and numbers.shape[2] < len(_MARKS)
    if not is_board or not np.isin(numbers, (0, 1)).all():
        return np.array2string(numbers, precision=3, threshold=500)
    marks = np.where(numbers.any(axis=2), numbers.argmax(axis=2) + 1, 0)
    return "\n".join(" ".join(_MARKS[mark] for mark in line) for line in marks)
