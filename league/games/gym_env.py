"""`gymnasium.make("league/Brawl-v0", opponent="based")`: one seat of the game as a Gymnasium
environment.

`import league.games` registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import EXTERNAL, BatchedGame, GameSpec
from league.games.drawing.live import LivePictures
from league.games.registry import game_spec, make_batched, reward_weights

Opponent = str | Callable[[NDArray[np.float32]], Any]
"""A bot's name, or a function from the opponent's observation to its keys."""

GREATEST_SEED = 2**63 - 1
IMAGE_MODES = ("rgb_array", "human")
RENDER_SIZE = (640, 360)


class BrawlEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.int8]]):
    """Seat `seat` of one match against `opponent`; a time-out is an end (`terminated`), not a
    cut-off.

    Observations are float32[64] in [-1, 1] (`raw=True`: units of the game, unbounded), actions
    MultiBinary(10): W A S D space H L J K G, held for `frame_skip` frames. The reward is the
    weighted sum of the named terms of preset `reward`; `info["reward_terms"]` holds each weighted
    term, and at the end `info["outcome"]` 1, 0.5 or 0. Pictures ("rgb_array", or "human": a window,
    which needs pygame) have `render_size` (width, height). Raises `ConfigError` for an unknown
    opponent, preset, stage or mode.
    """

    metadata = {"render_modes": ["ansi", *IMAGE_MODES], "render_fps": 30}  # noqa: RUF012

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
        render_size: tuple[int, int] = RENDER_SIZE,
    ) -> None:
        check_options(seat, frame_skip, render_mode, self.metadata["render_modes"])
        spec = game_spec("brawl")
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": spec.frames_per_second / frame_skip}
        self._seat, self._opponent, self._frames = seat, opponent, frame_skip
        self._terms = spec.reward_terms
        self._weights_K = reward_weights(spec, reward, reward_overrides or {})
        bot = bot_index(spec, opponent)
        self._game = make_game(1, stage, match_seconds, raw)
        self._game.bots_N2[0, 1 - seat] = bot
        self._keys_N2A = np.zeros((1, 2, spec.action_size), np.uint8)
        self._last_words = ""  # of a match that ended: the game holds the next one already
        self.observation_space, self.action_space = spaces_of(spec, raw)
        self._pictures = live_pictures(self._game, render_mode, render_size, frame_skip)
        names = ["this seat", opponent if isinstance(opponent, str) else "opponent"]
        self._names = (names[seat], names[1 - seat])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a match whose sides follow from `seed`."""
        super().reset(seed=seed)
        self._last_words = ""
        self._game.reset(self.np_random.integers(GREATEST_SEED, size=1).astype(np.uint64))
        if self._pictures is not None:
            self._pictures.begin(0, self._names)
        return self._observation(self._seat), {}

    def step(
        self, action: NDArray[np.int8]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Holds the keys for `frame_skip` frames."""
        self._keys_N2A[0, self._seat] = action
        if not isinstance(self._opponent, str):
            self._keys_N2A[0, 1 - self._seat] = self._opponent(self._observation(1 - self._seat))
        self._game.step(self._keys_N2A, self._frames)
        terms_K = self._game.reward_terms_N2K[0, self._seat] * self._weights_K
        info: dict[str, Any] = {
            "reward_terms": dict(zip(self._terms, terms_K.tolist(), strict=True))
        }
        ended = bool(self._game.ended_N[0])
        if ended:
            outcome = float(self._game.outcomes_N[0])
            info["outcome"] = outcome if self._seat == 0 else 1.0 - outcome
            self._last_words = (
                f"ended in frame {self._game.final_frames_N[0]}: outcome {info['outcome']}"
            )
        if self._pictures is not None:
            self._pictures.see(0, float(self._game.outcomes_N[0]) if ended else None)
        return self._observation(self._seat, final=ended), float(terms_K.sum()), ended, False, info

    def _observation(self, seat: int, *, final: bool = False) -> NDArray[np.float32]:
        game = self._game
        views = game.final_observations_N2O if final else game.observations_N2O
        return views[0, seat].copy()

    def close(self) -> None:
        """Closes the window. Twice is fine."""
        if self._pictures is not None:
            self._pictures.close()
        self._game.close()

    def render(self) -> str | NDArray[np.uint8] | None:
        """A line of text (mode "ansi") or a picture, uint8 [H, W, 3]; the window shows itself."""
        if self.render_mode is None or self.render_mode == "human":
            return None
        if self._pictures is not None:
            return self._pictures.draw(0)
        return self._last_words or in_words(self._game.frame(0))


def live_pictures(
    game: BatchedGame, render_mode: str | None, size: tuple[int, int], frame_skip: int
) -> LivePictures | None:
    """Pictures for the modes that have some; "human" opens a window."""
    if render_mode not in IMAGE_MODES:
        return None
    fps = game.spec.frames_per_second / frame_skip
    return LivePictures(game, size, fps if render_mode == "human" else None)


def in_words(frame: Mapping[str, Any]) -> str:
    """A frame of the game in a line of text."""
    players = (
        f"({p['x']:.1f}, {p['y']:.1f}) damage {p['damage']:.0f} "
        f"stocks {p['stocks']} {p['move']}".rstrip()
        for p in frame["players"]
    )
    return f"frame {frame['frame']}: " + " | ".join(players)


def bot_index(spec: GameSpec, opponent: object) -> int:
    """The bot's index, EXTERNAL for a function. Raises `ConfigError`."""
    if not isinstance(opponent, str):
        return EXTERNAL
    try:
        return spec.bot_index(opponent)
    except KeyError:
        names = ", ".join(bot.name for bot in spec.bots)
        raise ConfigError(
            f"there is no bot {opponent!r}: choose one of {names}, or pass a function"
        ) from None


def check_options(
    seat: int, frame_skip: int, render_mode: str | None, modes: Sequence[str]
) -> None:
    """Raises `ConfigError` for a seat, frame skip or render mode that can't be."""
    if seat not in (0, 1):
        raise ConfigError(f"there is no seat {seat!r}: choose 0 or 1")
    if frame_skip < 1:
        raise ConfigError(f"frame_skip is {frame_skip}: a decision lasts at least 1 frame")
    if render_mode not in (None, *modes):
        raise ConfigError(
            f"there is no render mode {render_mode!r}: choose one of {', '.join(modes)}, or None"
        )


def make_game(num_envs: int, stage: str, match_seconds: float, raw: bool) -> BatchedGame:
    """The matches that the environments show."""
    max_frames = round(match_seconds * game_spec("brawl").frames_per_second)
    return make_batched("brawl", num_envs, stage=stage, max_frames=max_frames, raw=raw)


def spaces_of(
    spec: GameSpec, raw: bool
) -> tuple[gymnasium.Space[NDArray[np.float32]], gymnasium.spaces.MultiBinary]:
    """Of one environment: observations and actions."""
    bound = np.inf if raw else 1.0
    observations: Any = gymnasium.spaces.Box(-bound, bound, (spec.observation_size,), np.float32)
    return observations, gymnasium.spaces.MultiBinary(spec.action_size)
