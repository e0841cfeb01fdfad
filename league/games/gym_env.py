"""`gymnasium.make("league/Brawl-v0", opponent="based")`: one seat of the game as a Gymnasium environment.

`import league.games` registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import EXTERNAL, GameSpec
from league.games.brawl.rewards import reward_weights
from league.games.registry import game_spec, make_batched

Opponent = str | Callable[[NDArray[np.float32]], Any]
"""A bot's name, or a function from the opponent's observation to its keys."""

_GREATEST_SEED = 2**63 - 1


class BrawlEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.int8]]):
    """Seat `seat` of one match against `opponent`; a time-out is an end (`terminated`), not a cut-off.

    Observations are float32[64] in [-1, 1] (`raw=True`: units of the game, unbounded), actions
    MultiBinary(10): W A S D space H L J K G, held for `frame_skip` frames. The reward is the weighted sum
    of the named terms of preset `reward`; `info["reward_terms"]` holds each weighted term, and at the end
    `info["outcome"]` 1, 0.5 or 0. Raises `ConfigError` for an unknown opponent, preset, stage or mode.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        opponent: Opponent = "based",
        *,
        seat: int = 0,
        stage: str = "warehouse",
        match_seconds: float = 90.0,
        frame_skip: int = 1,
        reward: str = "dense",
        reward_overrides: Mapping[str, float] | None = None,
        raw: bool = False,
        render_mode: str | None = None,
    ) -> None:
        if seat not in (0, 1):
            raise ConfigError(f"there is no seat {seat!r}: choose 0 or 1")
        if frame_skip < 1:
            raise ConfigError(f"frame_skip is {frame_skip}: a decision lasts at least 1 frame")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"there is no render mode {render_mode!r}: choose 'ansi' or None")
        spec = game_spec("brawl")
        self.render_mode = render_mode
        self._seat, self._opponent, self._frames = seat, opponent, frame_skip
        self._terms = spec.reward_terms
        self._weights_K = reward_weights(reward, reward_overrides)
        bot = _bot_index(spec, opponent)
        self._game = make_batched(
            "brawl", 1, stage=stage, max_frames=round(match_seconds * spec.frames_per_second), raw=raw
        )
        self._game.bots_N2[0, 1 - seat] = bot
        self._keys_N2A = np.zeros((1, 2, spec.action_size), np.uint8)
        self._last_words = ""  # of a match that ended: the game holds the next one already
        bound = np.inf if raw else 1.0
        self.observation_space = gymnasium.spaces.Box(-bound, bound, (spec.observation_size,), np.float32)
        self.action_space = gymnasium.spaces.MultiBinary(spec.action_size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a match whose sides follow from `seed`."""
        super().reset(seed=seed)
        self._last_words = ""
        self._game.reset(self.np_random.integers(_GREATEST_SEED, size=1).astype(np.uint64))
        return self._observation(self._seat), {}

    def step(self, action: NDArray[np.int8]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Holds the keys for `frame_skip` frames."""
        self._keys_N2A[0, self._seat] = action
        if not isinstance(self._opponent, str):
            self._keys_N2A[0, 1 - self._seat] = self._opponent(self._observation(1 - self._seat))
        self._game.step(self._keys_N2A, self._frames)
        terms_K = self._game.reward_terms_N2K[0, self._seat] * self._weights_K
        info: dict[str, Any] = {"reward_terms": dict(zip(self._terms, terms_K.tolist(), strict=True))}
        ended = bool(self._game.ended_N[0])
        if ended:
            outcome = float(self._game.outcomes_N[0])
            info["outcome"] = outcome if self._seat == 0 else 1.0 - outcome
            self._last_words = f"ended in frame {self._game.final_frames_N[0]}: outcome {info['outcome']}"
        return self._observation(self._seat, final=ended), float(terms_K.sum()), ended, False, info

    def _observation(self, seat: int, *, final: bool = False) -> NDArray[np.float32]:
        game = self._game
        views = game.final_observations_N2O if final else game.observations_N2O
        return views[0, seat].copy()

    def render(self) -> str | None:
        """The match in a line of text (mode "ansi")."""
        if self.render_mode is None:
            return None
        if self._last_words:
            return self._last_words
        frame = self._game.frame(0)
        players = (
            f"({p['x']:.1f}, {p['y']:.1f}) damage {p['damage']:.0f} stocks {p['stocks']} {p['move']}".rstrip()
            for p in frame["players"]
        )
        return f"frame {frame['frame']}: " + " | ".join(players)


def _bot_index(spec: GameSpec, opponent: Opponent) -> int:
    if not isinstance(opponent, str):
        return EXTERNAL
    try:
        return spec.bot_index(opponent)
    except KeyError:
        names = ", ".join(bot.name for bot in spec.bots)
        raise ConfigError(
            f"there is no bot {opponent!r}: choose one of {names}, or pass a function"
        ) from None
