"""PettingZoo environments made for tests: what they do is decided by options and by what is
played.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import parallel_to_aec

PASS, SCORE, HANG, RAISE, EXIT, CRASH, NAN = range(7)


class Push(ParallelEnv):
    """Keys: each seat pushes a number with three keys; whose is greater after `length` steps has
    won.
    """

    metadata = {"name": "push_v0", "render_modes": ["ansi"], "render_fps": 20}  # noqa: RUF012

    def __init__(self, length: int = 1200, render_mode: str | None = None) -> None:
        self.possible_agents = ["left", "right"]
        self.length, self.render_mode = length, render_mode
        self._sees = spaces.Dict(
            {
                "place": spaces.Box(-np.inf, np.inf, (2,), np.float64),
                "time": spaces.Tuple((spaces.Box(0, length, (1,), np.int64), spaces.Discrete(2))),
                "keys": spaces.MultiBinary(3),
            }
        )
        self._does = spaces.MultiBinary(3)

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.agents = self.possible_agents[:]
        self._luck = np.random.default_rng(seed)
        self._places, self._keys = self._luck.normal(size=2), np.zeros((2, 3), np.int8)
        self._time = 0
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict:
        places, keys = self._places, self._keys
        return {
            agent: {
                "place": places if seat == 0 else places[::-1],
                "time": (np.array([self._time]), self._time % 2),
                "keys": keys[1 - seat],
            }
            for seat, agent in enumerate(self.possible_agents)
        }

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        self._keys = np.array([actions[agent] for agent in self.possible_agents], np.int8)
        pushes = self._keys @ np.array([1.0, -0.5, 0.25])
        if pushes.any():
            self._places = self._places + pushes * self._luck.random()
        self._time += 1
        rewards = dict(zip(self.agents, pushes.tolist(), strict=True))
        cut = dict.fromkeys(self.agents, self._time >= self.length)
        going = dict.fromkeys(self.agents, False)
        infos: dict = {agent: {} for agent in self.agents}
        if self._time >= self.length:
            self.agents = []
        return self._seen(), rewards, going, cut, infos

    def render(self) -> str:
        return f"{self._places[0]:.2f} against {self._places[1]:.2f}"


class Buttons(ParallelEnv):
    """Choices that score, hang, raise, leave, crash or answer NaN; ends after `length` steps.

    `bad_starts` is the share of seeds with which `reset` raises, `forgets` makes the seed mean
    nothing, `noisy` prints to standard output, and `cut` ends by truncation.
    """

    metadata = {"name": "buttons_v0"}  # noqa: RUF012

    def __init__(
        self,
        length: int = 12,
        bad_starts: float = 0.0,
        forgets: bool = False,
        noisy: bool = False,
        cut: bool = False,
    ) -> None:
        self.possible_agents = ["one", "two"]
        self.length, self.bad_starts, self.forgets = length, bad_starts, forgets
        self.noisy, self.cut = noisy, cut
        self._sees = spaces.Box(-1.0, 1.0, (4,), np.float32)
        self._does = spaces.Discrete(7, start=3)

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self._luck = np.random.default_rng(None if self.forgets else seed)
        if self._luck.random() < self.bad_starts:
            raise RuntimeError("got out of bed on the wrong side")
        self.agents, self._time = self.possible_agents[:], 0
        return self._seen(), {}

    def _seen(self) -> dict:
        now = np.array([self._time / self.length, *self._luck.random(3)], np.float32)
        return dict.fromkeys(self.possible_agents, now)

    def step(self, actions: dict[str, int]) -> tuple[dict, dict, dict, dict, dict]:
        if self.noisy:
            print("a step was made")
        pressed = [actions[agent] - 3 for agent in self.possible_agents]
        if HANG in pressed:
            time.sleep(3600)
        if RAISE in pressed:
            raise ArithmeticError("a button that raises\nwas pressed")
        if EXIT in pressed:
            os._exit(7)
        if CRASH in pressed:
            os.kill(os.getpid(), signal.SIGKILL)
        self._time += 1
        rewards = {
            agent: float("nan") if button == NAN else float(button == SCORE)
            for agent, button in zip(self.possible_agents, pressed, strict=True)
        }
        over = self._time >= self.length
        done = dict.fromkeys(self.agents, over and not self.cut)
        cut = dict.fromkeys(self.agents, over and self.cut)
        return self._seen(), rewards, done, cut, {}


class Nim(AECEnv):
    """Turns: take 1 to 3 of `stones`, who takes the last has won. The mask is in the info.

    `one_leaves`: the loser is done at once, and the winner may take one more step that pays 1.
    `paid` is what each stone pays on top.
    """

    metadata = {"name": "nim_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self, stones: int = 11, one_leaves: bool = False, blind: bool = False, paid: float = 0.0
    ) -> None:
        self.possible_agents = ["first", "second"]
        self.paid = paid
        self.stones, self.one_leaves, self.blind = stones, one_leaves, blind

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.MultiDiscrete([self.stones + 1, 2])

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        self.agents = self.possible_agents[:]
        self.left = self.stones - np.random.default_rng(seed).integers(0, 4)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.agent_selection = self.agents[0]
        self._tell()

    def _tell(self) -> None:
        allowed = np.array([self.left >= n for n in (1, 2, 3)], np.int8)
        if self.left == 0:
            allowed[:] = 1
        self.infos = {
            agent: {} if self.blind else {"action_mask": allowed} for agent in self.agents
        }

    def observe(self, agent: str) -> np.ndarray:
        return np.array([self.left, int(agent == "second")])

    def step(self, action: int | None) -> None:
        mover = self.agent_selection
        if self.terminations[mover]:
            self._was_dead_step(action)
            return
        if action + 1 > self.left and self.left > 0:
            raise ValueError(f"{action + 1} can't be taken of {self.left}")
        self._clear_rewards()
        self._cumulative_rewards[mover] = 0
        other = self.possible_agents[1 - self.possible_agents.index(mover)]
        if self.left == 0:  # the winner's step alone
            self.rewards[mover] = 1.0
            self.terminations[mover] = True
        else:
            self.left -= action + 1
            self.rewards[mover] = self.paid * (action + 1)
            if self.left == 0:
                self.rewards[mover], self.rewards[other] = 1.0, -1.0
                self.terminations[other] = True
                self.terminations[mover] = not self.one_leaves
        if other in self.agents and not self.terminations[other]:
            self.agent_selection = other
        self._tell()
        self._accumulate_rewards()
        self._deads_step_first()


class Late(ParallelEnv):
    """Choices 0 and 1: 1 is paid. Agent `late` joins after `joins` steps, `early` leaves two steps
    before the end, and an agent `stranger` joins with `late` if asked for.
    """

    metadata = {"name": "late_v0"}  # noqa: RUF012

    def __init__(self, joins: int = 3, length: int = 9, stranger: bool = False) -> None:
        self.possible_agents = ["early", "late"]
        self.joins, self.length, self.stranger = joins, length, stranger
        self._sees = spaces.Box(0.0, 1.0, (2,), np.float32)
        self._does = spaces.Discrete(2)

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.agents, self._time = ["early"], 0
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict:
        now = self._time / self.length
        return {agent: np.array([now, agent == "late"], np.float32) for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        if set(actions) != set(self.agents) and not self.stranger:
            raise ValueError(f"{sorted(actions)} have acted, {self.agents} are there")
        self._time += 1
        if self._time == self.joins:
            self.agents = ["early", "late", *(["stranger"] if self.stranger else [])]
        rewards = {agent: float(actions.get(agent, 0)) for agent in self.agents}
        done = {agent: self._time >= self.length - 2 * (agent == "early") for agent in self.agents}
        seen, infos = self._seen(), {agent: {} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not done[agent]]
        return seen, rewards, done, dict.fromkeys(done, False), infos


class LateTurns(AECEnv):
    """`Late` by turns: `late` joins after `joins` turns of `early`."""

    metadata = {"name": "late_turns_v0"}  # noqa: RUF012

    def __init__(self, joins: int = 3, length: int = 10) -> None:
        self.possible_agents = ["early", "late"]
        self.joins, self.length = joins, length
        self._sees, self._does = spaces.Box(0.0, 1.0, (2,), np.float32), spaces.Discrete(2)

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> None:
        self.agents, self._time = [], 0
        self.rewards, self._cumulative_rewards, self.infos = {}, {}, {}
        self.terminations, self.truncations = {}, {}
        self._join("early")

    def _join(self, agent: str) -> None:
        self.agents.append(agent)
        self.rewards[agent] = self._cumulative_rewards[agent] = 0.0
        self.terminations[agent] = self.truncations[agent] = False
        self.infos[agent] = {}
        self.agent_selection = agent

    def observe(self, agent: str) -> np.ndarray:
        return np.array([self._time / self.length, agent == "late"], np.float32)

    def step(self, action: int | None) -> None:
        mover = self.agent_selection
        if self.terminations[mover]:
            self._was_dead_step(action)
            return
        self._clear_rewards()
        self._cumulative_rewards[mover] = 0.0
        self.rewards[mover] = float(action or 0)
        self._time += 1
        if self._time == self.joins:
            self._join("late")
        elif len(self.agents) > 1:
            self.agent_selection = self.agents[1 - self.agents.index(mover)]
        if self._time >= self.length:
            self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()


class Instalments(ParallelEnv):
    """Keys: each seat is paid for the key that it presses, `prices` by key, in `number`s.

    After `length` steps it ends.
    """

    metadata = {"name": "instalments_v0"}  # noqa: RUF012

    def __init__(
        self, prices: Sequence[float] = (0.1, 1.0), number: str = "float", length: int = 10
    ) -> None:
        self.possible_agents = ["one", "two"]
        self.prices, self.length = prices, length
        self._number = float if number == "float" else np.dtype(number).type
        self._sees = spaces.Box(0.0, 1.0, (1,), np.float32)
        self._does = spaces.MultiBinary(len(prices))

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        self.agents, self._time = self.possible_agents[:], 0
        return self._seen(), {agent: {} for agent in self.agents}

    def _seen(self) -> dict:
        share = np.array([self._time / self.length], np.float32)
        return dict.fromkeys(self.agents, share)

    def step(self, actions: dict[str, Any]) -> tuple[dict, dict, dict, dict, dict]:
        self._time += 1
        rewards = {
            agent: self._number(sum(p for p, key in zip(self.prices, keys, strict=True) if key))
            for agent, keys in actions.items()
        }
        over = dict.fromkeys(self.agents, self._time >= self.length)
        seen, infos = self._seen(), {agent: {} for agent in self.agents}
        if self._time >= self.length:
            self.agents = []
        return seen, rewards, over, dict.fromkeys(over, False), infos


def instalments_by_turns(**options: Any) -> AECEnv:
    return parallel_to_aec(Instalments(**options))


class Trio(Nim):
    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = ["a", "b", "c"]


class Steered(Buttons):
    """Played by an axis, which no league takes."""

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Box(-1, 1, (1,))


def parallel_env(**options: Any) -> Push:
    return Push(**options)
