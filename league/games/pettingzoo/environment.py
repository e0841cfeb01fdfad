"""One PettingZoo environment: found by name, played from two seats, shown as text."""

from __future__ import annotations

import contextlib
import importlib
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from league.errors import ConfigError

FACTORIES = ("parallel_env", "env", "raw_env")
_EXTRA = ("pettingzoo", "pygame")
_MARKS = ".XO#@%&*+="
_LONGEST = 20_000


def _factory(argument: str) -> Callable[..., Any]:
    module_name, _, attribute = argument.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        if error.name in _EXTRA:
            raise ConfigError(
                f"{module_name} needs {error.name}, which isn't installed: pip install "
                "pettingzoo pygame-ce"
            ) from error
        raise ConfigError(f"module {module_name} can't be imported: {error}") from error
    except Exception as error:  # a module may raise anything at its import
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"module {module_name!r} can't be imported: {reason}") from error
    for name in [attribute] if attribute else FACTORIES:
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    wanted = attribute or ", ".join(FACTORIES)
    raise ConfigError(f"module {module_name} makes no environment: it has no function {wanted}")


def build(argument: str, options: Mapping[str, Any]) -> Any:
    """The environment `argument` (`MODULE` or `MODULE:FACTORY`) made with `options`.

    One that can be printed is made so (`render_mode="ansi"`). Raises `ConfigError` when it can't be
    made.
    """
    factory = _factory(argument)
    with contextlib.redirect_stdout(io.StringIO()):  # our standard output is for answers
        try:
            env = factory(**options)
            if "render_mode" not in options and "ansi" in getattr(env, "metadata", {}).get(
                "render_modes", ()
            ):
                env.close()
                env = factory(render_mode="ansi", **options)
        except Exception as error:
            raise ConfigError(
                f"{argument} can't be made with {dict(options)}: {type(error).__name__}: {error}"
            ) from error
    if not hasattr(env, "possible_agents") or not hasattr(env, "step"):
        raise ConfigError(
            f"{argument} makes a {type(env).__name__}: it must be a PettingZoo environment"
        )
    return env


def seats_of(env: Any) -> Seats:
    """`env`, whose first possible agent has seat 0, played from its two seats."""
    asks_in_turn = hasattr(env, "agent_iter")  # an AECEnv
    return TurnSeats(env) if asks_in_turn else ParallelSeats(env)


class Seats(ABC):
    """An environment as two seats see it; what the environment raises comes through.

    Attributes:
        observations, infos: of the seats; a seat that left keeps its last ones.
        acting: whether a seat's next action counts.
        rewards: of the last step.
        over: whether no seat can act any more.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents: list[Any] = list(env.possible_agents)
        self.observations: list[Any] = [None, None]
        self.infos: list[Any] = [{}, {}]
        self.acting = [False, False]
        self.rewards = [0.0, 0.0]

    @property
    def over(self) -> bool:
        return not any(self.acting)

    def reset(self, seed: int) -> None:
        """Begins the match of `seed`."""
        self.rewards = [0.0, 0.0]
        self._reset(seed)
        if self.over:
            raise RuntimeError("no agent can act after its reset")

    @abstractmethod
    def _reset(self, seed: int) -> None: ...

    @abstractmethod
    def step(self, actions: Sequence[Any]) -> None:
        """One step with the actions of the acting seats."""

    def close(self) -> None:
        """Closes the environment and ignores its errors."""
        with contextlib.suppress(Exception):
            self.env.close()


class ParallelSeats(Seats):
    """An environment in which all agents act at once."""

    def _reset(self, seed: int) -> None:
        observations, infos = self.env.reset(seed=seed)
        self._see(observations, infos)
        self.acting = [agent in self.env.agents for agent in self.agents]

    def step(self, actions: Sequence[Any]) -> None:
        """Steps the agents that are still there."""
        chosen = {a: actions[seat] for seat, a in enumerate(self.agents) if self.acting[seat]}
        observations, rewards, terminations, truncations, infos = self.env.step(chosen)
        self._see(observations, infos)
        self.rewards = [float(rewards.get(agent, 0.0)) for agent in self.agents]
        self.acting = [
            acting
            and agent in self.env.agents
            and not terminations.get(agent, False)
            and not truncations.get(agent, False)
            for acting, agent in zip(self.acting, self.agents, strict=True)
        ]

    def _see(self, observations: Mapping[Any, Any], infos: Mapping[Any, Any]) -> None:
        for seat, agent in enumerate(self.agents):
            if agent in observations:
                self.observations[seat] = observations[agent]
            self.infos[seat] = infos.get(agent, {})


class TurnSeats(Seats):
    """An environment that asks one agent at a time."""

    def _reset(self, seed: int) -> None:
        self.env.reset(seed=seed)
        self._see()
        self._find_turn()

    def step(self, actions: Sequence[Any]) -> None:
        """Steps the agent whose turn it is, and lets those that are done leave."""
        self.env.step(actions[self.acting.index(True)])
        rewards = self.env.rewards
        self.rewards = [float(rewards.get(agent, 0.0)) for agent in self.agents]
        self._see()
        self._find_turn()

    def _find_turn(self) -> None:
        """Finds the next agent that can act; agents that are done take the step None and leave."""
        playing, turn = self._playing(), self.env.agent_selection
        if playing and turn not in playing:
            for _ in range(len(self.env.agents)):
                self.env.step(None)
                turn = self.env.agent_selection
                if turn in playing:
                    break
            self._see()
        self.acting = [agent == turn and agent in playing for agent in self.agents]

    def _playing(self) -> list[Any]:
        """The agents that are not done."""
        env = self.env  # its attributes come through several wrappers: ask for each once
        ended, cut = env.terminations, env.truncations
        return [
            agent for agent in env.agents if not (ended.get(agent, True) or cut.get(agent, True))
        ]

    def _see(self) -> None:
        here, infos = self.env.agents, self.env.infos
        for seat, agent in enumerate(self.agents):
            if agent in here:
                self.observations[seat] = self.env.observe(agent)
                self.infos[seat] = infos.get(agent, {})


def board_text(seats: Seats) -> str:
    """The environment's own text if it renders some, else what the seat to act observes."""
    if getattr(seats.env, "render_mode", None) == "ansi":
        rendered = seats.env.render()
        if isinstance(rendered, str):
            return rendered[:_LONGEST]
    seat = seats.acting.index(True) if any(seats.acting) else 0
    return f"{seats.agents[seat]} sees:\n{observation_text(seats.observations[seat])}"[:_LONGEST]


def observation_text(observation: Any) -> str:
    """An observation in text; planes [height, width, marks] of zeros and ones as a board."""
    if isinstance(observation, dict):
        rest = {key: value for key, value in observation.items() if key != "action_mask"}
        return "\n".join(
            observation_text(value) if len(rest) == 1 else f"{key}: {observation_text(value)}"
            for key, value in rest.items()
        )
    numbers = np.asarray(observation)
    is_board = (
        numbers.ndim == 3 and numbers.shape[2] < len(_MARKS) and np.isin(numbers, (0, 1)).all()
    )
    if not is_board:
        return np.array2string(numbers, precision=3, threshold=500)
    marks = np.where(numbers.any(axis=2), numbers.argmax(axis=2) + 1, 0)
    return "\n".join(" ".join(_MARKS[mark] for mark in line) for line in marks)
