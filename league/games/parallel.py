"""`league.games.parallel_env()`: the built-in game with both seats open, as a PettingZoo
environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.gym_env import (
    GREATEST_SEED,
    IMAGE_MODES,
    RENDER_SIZE,
    check_options,
    in_words,
    live_pictures,
    make_game,
    spaces_of,
)
from league.games.registry import game_spec, reward_weights

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ConfigError("parallel_env needs PettingZoo: pip install pettingzoo pygame-ce") from error

AGENTS = ("player_0", "player_1")
Views = dict[str, NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]


class BrawlParallelEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.int8]]):
    """One match, `player_0` in seat 0; the time limit is an end (`terminations`), not a cut-off.

    Options, observations, actions, rewards and infos are those of `league.games.gym_env.BrawlEnv`,
    for each seat. Raises `ConfigError` for an unknown preset, stage or render mode.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's own form)
        "name": "brawl_v0",
        "render_modes": ["ansi", *IMAGE_MODES],
        "render_fps": 30,
    }

    def __init__(
        self,
        *,
        stage: str = "warehouse",
        match_seconds: float = 90.0,
        frame_skip: int = 1,
        reward: str = "dense",
        reward_overrides: Mapping[str, float] | None = None,
        raw: bool = False,
        render_mode: str | None = None,
        render_size: tuple[int, int] = RENDER_SIZE,
    ) -> None:
        check_options(0, frame_skip, render_mode, self.metadata["render_modes"])
        spec = game_spec("brawl")
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.render_mode = render_mode
        self._frames, self._terms = frame_skip, spec.reward_terms
        self._weights_K = reward_weights(spec, reward, reward_overrides or {})
        self._game = make_game(1, stage, match_seconds, raw)
        self._last_words = ""  # of a match that ended: the game holds the next one already
        self._pictures = live_pictures(self._game, render_mode, render_size, frame_skip)
        self._random: np.random.Generator | None = None
        self.observation_spaces = {agent: spaces_of(spec, raw)[0] for agent in AGENTS}
        self.action_spaces = {agent: spaces_of(spec, raw)[1] for agent in AGENTS}

    def observation_space(self, agent: str) -> gymnasium.Space[NDArray[np.float32]]:
        """float32[64] of each agent."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.MultiBinary:
        """The ten keys of each agent."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Views, Infos]:
        """Begins a match whose sides follow from `seed`, or from the seed given before."""
        if seed is not None or self._random is None:
            self._random, _ = seeding.np_random(seed)
        self.agents = self.possible_agents[:]
        self._last_words = ""
        self._game.reset(self._random.integers(GREATEST_SEED, size=1).astype(np.uint64))
        if self._pictures is not None:
            self._pictures.begin(0, AGENTS)
        return self._seen(self._game.observations_N2O), {agent: {} for agent in AGENTS}

    def step(
        self, actions: Mapping[str, NDArray[np.int8]]
    ) -> tuple[Views, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Holds both agents' keys for `frame_skip` frames; before `reset` nothing happens."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        game = self._game
        game.step(np.array([[actions[agent] for agent in AGENTS]], np.uint8), self._frames)
        terms_2K = game.reward_terms_N2K[0] * self._weights_K
        infos: Infos = {
            agent: {"reward_terms": dict(zip(self._terms, terms_K.tolist(), strict=True))}
            for agent, terms_K in zip(AGENTS, terms_2K, strict=True)
        }
        ended = bool(game.ended_N[0])
        if ended:
            self._end(infos)
        if self._pictures is not None:
            self._pictures.see(0, float(game.outcomes_N[0]) if ended else None)
        return (
            self._seen(game.final_observations_N2O if ended else game.observations_N2O),
            dict(zip(AGENTS, terms_2K.sum(axis=1).tolist(), strict=True)),
            dict.fromkeys(AGENTS, ended),
            dict.fromkeys(AGENTS, False),
            infos,
        )

    def _end(self, infos: Infos) -> None:
        outcome = float(self._game.outcomes_N[0])
        for agent, its_own in zip(AGENTS, (outcome, 1.0 - outcome), strict=True):
            infos[agent]["outcome"] = its_own
        self._last_words = f"ended in frame {self._game.final_frames_N[0]}: outcome {outcome}"
        self.agents = []

    def _seen(self, views_N2O: NDArray[np.float32]) -> Views:
        return {agent: views_N2O[0, seat].copy() for seat, agent in enumerate(AGENTS)}

    def render(self) -> NDArray[np.uint8] | str | None:
        """A line of text (mode "ansi") or a picture, uint8 [H, W, 3]; the window shows itself."""
        if self.render_mode == "ansi":
            return self._last_words or in_words(self._game.frame(0))
        if self._pictures is None or self.render_mode == "human":
            return None
        return self._pictures.draw(0)

    def close(self) -> None:
        """Closes the window, if there is one. Twice is fine."""
        if self._pictures is not None:
            self._pictures.close()
        self._game.close()
