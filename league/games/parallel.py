"""Provides the built-in game with both seats open, as a PettingZoo environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.gym_env import RENDER_MODES, OneMatch

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ConfigError("parallel_env needs PettingZoo: pip install 'kumite[pettingzoo]'") from error

AGENTS = ("player_0", "player_1")
Views = dict[str, NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]


class BrawlParallelEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.int8]]):
    """Plays a match with `player_0` in seat 0.

    At the time limit both agents are terminated, not truncated. The options are the same as for
    `league.games.gym_env.BrawlEnv`. Each seat's observations, actions, rewards and infos have the
    same form too.

    Raises:
        ConfigError: an unknown preset, stage or render mode.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's own form)
        "name": "brawl_v0",
        "render_modes": RENDER_MODES,
        "render_fps": 30,
    }

    def __init__(self, **options: Any) -> None:
        self._match = OneMatch(AGENTS, **options)
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.render_mode = self._match.render_mode
        self._random: np.random.Generator | None = None
        self.observation_spaces = dict.fromkeys(AGENTS, self._match.observation_space)
        self.action_spaces = dict.fromkeys(AGENTS, self._match.action_space)

    def observation_space(self, agent: str) -> gymnasium.Space[NDArray[np.float32]]:
        """Returns the space of an agent's observations, float32[74]."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """Returns the space of an agent's ten keys."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Views, Infos]:
        """Begins a match."""
        if seed is not None or self._random is None:
            self._random, _ = seeding.np_random(seed)
        self.agents = self.possible_agents[:]
        self._match.begin(self._random)
        return self._views(), {agent: {} for agent in AGENTS}

    def step(
        self, actions: Mapping[str, NDArray[np.int8]]
    ) -> tuple[Views, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Holds both agents' keys for `frame_skip` frames. Before `reset` it does nothing."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        match = self._match
        for seat, agent in enumerate(AGENTS):
            match.press(seat, actions[agent])
        terms_2K = match.step()[0]
        infos: Infos = {
            agent: {"reward_terms": match.named(terms_K)}
            for agent, terms_K in zip(AGENTS, terms_2K, strict=True)
        }
        if match.ended:
            self.agents = []
            for seat, agent in enumerate(AGENTS):
                infos[agent]["outcome"] = match.outcome(seat)
        return (
            self._views(),
            dict(zip(AGENTS, terms_2K.sum(axis=1).tolist(), strict=True)),
            dict.fromkeys(AGENTS, match.ended),
            dict.fromkeys(AGENTS, False),
            infos,
        )

    def _views(self) -> Views:
        return {agent: self._match.view(seat) for seat, agent in enumerate(AGENTS)}

    def render(self) -> NDArray[np.uint8] | str | None:
        """Returns a line of text (mode "ansi") or a picture, uint8 [H, W, 3]."""
        return self._match.render()
