"""Provides a seat of the built-in game as a Gymnasium environment.

`import league.games` registers the environment for `gymnasium.make("league/Brawl-v0",
opponent="based")`. `Matches` and `OneMatch` hold the shared parts of the three environments (this
file, vector_env.py and parallel.py): options, weighted reward terms and pictures. Shape suffixes: N
matches, 2 seats, A keys, O observation width, K reward terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.errors import ConfigError, InvalidInput
from league.games.base import EXTERNAL, pressed
from league.games.drawing import verdict
from league.games.registry import game_spec, make_batched, reward_weights

Opponent = str | Callable[[NDArray[np.float32]], Any]
"""A bot's name, or a function from the opponent's observation to its keys."""

GREATEST_SEED = 2**63 - 1
RENDER_MODES = ["ansi", "rgb_array"]
ACTIONS: Mapping[str, Callable[[int], Any]] = {
    "multi_binary": spaces.MultiBinary,
    "multi_discrete": lambda keys: spaces.MultiDiscrete([2] * keys),
}
"""Action spaces of the keys. sb3-contrib's RecurrentPPO passes the int8 of `MultiBinary` to torch
and fails, but it works with `MultiDiscrete`.
"""


class Matches:
    """Holds matches of the built-in game, and applies an environment's options to them.

    Args:
        num_matches: N, matches that step together.
        stage: a stage of `league.games.brawl.stage`.
        match_seconds: time limit of a match, in seconds.
        frame_skip: number of frames in a step. The keys are held for all frames of the step.
        reward: preset of the reward's weights.
        reward_overrides: weights by term, which replace the preset's weights.
        actions: the action space, one of `ACTIONS`.

    Raises:
        ConfigError: an unknown preset, stage or action space.
    """

    def __init__(
        self,
        num_matches: int,
        *,
        stage: str = "warehouse",
        match_seconds: float = 90.0,
        frame_skip: int = 1,
        reward: str = "dense",
        reward_overrides: Mapping[str, float] | None = None,
        actions: str = "multi_binary",
    ) -> None:
        if frame_skip < 1:
            raise ConfigError(f"frame_skip is {frame_skip}: a decision lasts at least 1 frame")
        if actions not in ACTIONS:
            raise ConfigError(f"there are no actions {actions!r}: choose {' or '.join(ACTIONS)}")
        self.spec, self.frame_skip = game_spec("brawl"), frame_skip
        self.fps = self.spec.frames_per_second / frame_skip
        self.weights_K = reward_weights(self.spec, reward, reward_overrides)
        max_frames = round(match_seconds * self.spec.frames_per_second)
        self.game = make_batched("brawl", num_matches, stage=stage, max_frames=max_frames)
        self.observation_space: Any = spaces.Box(-1.0, 1.0, (self.spec.observation_size,))
        self.action_space: Any = ACTIONS[actions](self.spec.action_size)
        self._keys_N2A = np.zeros((num_matches, 2, self.spec.action_size), np.uint8)
        self._is_begun = False

    def reset(self, seeds_N: NDArray[np.uint64], where_N: NDArray[np.bool_] | None = None) -> None:
        """Begins new matches."""
        self.game.reset(seeds_N, where_N)
        self._is_begun = True

    def check_begun(self) -> None:
        """Raises `InvalidInput` before the first reset."""
        if not self._is_begun:
            raise InvalidInput("no match was begun: call reset before step and render")

    def press(self, seat: int, keys: Any) -> None:
        """Sets the keys that a seat holds in the next step.

        Args:
            seat: 0 or 1.
            keys: [N, A]. Keys above 0.5 are held.

        Raises:
            InvalidInput: a wrong shape, or a value that is not a number.
        """
        down, keys_NA = pressed(keys), self._keys_N2A[:, seat]
        if down.shape not in (keys_NA.shape, keys_NA.shape[1:] if len(keys_NA) == 1 else ()):
            raise InvalidInput(f"keys have shape {down.shape}: {keys_NA.shape} is wanted")
        keys_NA[:] = down.reshape(keys_NA.shape)

    def step(self) -> NDArray[np.float32]:
        """Holds the keys from `press` for a step. Returns the weighted reward terms, [N, 2, K]."""
        self.check_begun()
        self.game.step(self._keys_N2A, self.frame_skip)
        return self.game.reward_terms_N2K * self.weights_K

    def named(self, terms_K: NDArray[np.float32]) -> dict[str, float]:
        """Returns a seat's reward terms by name."""
        return dict(zip(self.spec.reward_terms, terms_K.tolist(), strict=True))

    def bot_index(self, opponent: object) -> int:
        """Returns the bot's index, or EXTERNAL for a function. Raises `ConfigError` for an unknown
        bot.
        """
        if not isinstance(opponent, str):
            return EXTERNAL
        names = [bot.name for bot in self.spec.bots]
        if opponent not in names:
            raise ConfigError(
                f"there is no bot {opponent!r}: choose one of {', '.join(names)}, or pass a "
                "function"
            )
        return names.index(opponent)


class OneMatch(Matches):
    """Holds a single match. After its end, pictures and observations show its last frame.

    Args:
        names: the seats' names in pictures.
        render_mode: one of `RENDER_MODES`, or None.
        render_size: (width, height) of pictures, in pixels.
        options: options of `Matches`.

    Raises:
        ConfigError: a wrong option.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        render_mode: str | None = None,
        render_size: tuple[int, int] = (640, 360),
        **options: Any,
    ) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise ConfigError(
                f"there is no render mode {render_mode!r}: choose one of "
                f"{', '.join(RENDER_MODES)}, or None"
            )
        super().__init__(1, **options)
        self.names, self.render_mode, self._render_size = names, render_mode, render_size
        self.ended = False

    def begin(self, random: np.random.Generator) -> None:
        """Begins a match, whose seed (drawn from `random`) also decides the players' sides."""
        self.ended = False
        self.reset(random.integers(GREATEST_SEED, size=1).astype(np.uint64))
        if self.render_mode == "rgb_array":
            from league.games.drawing.painter import Painter  # loads a JavaScript engine

            self._painter = Painter(*self._render_size, self.names)
            self._shown = self.game.frame(0)

    def step(self) -> NDArray[np.float32]:
        """Holds the keys from `press` for a step. Returns the weighted reward terms, [1, 2, K]."""
        terms_N2K = super().step()
        self.ended = bool(self.game.ended_N[0])
        if self.render_mode == "rgb_array" and not self.ended:
            self._shown = self.game.frame(0)  # after the end, the game already holds the next match
        return terms_N2K

    def outcome(self, seat: int) -> float:
        """Returns the outcome of the ended match for a seat: 1, 0.5 or 0."""
        outcome = float(self.game.outcomes_N[0])
        return outcome if seat == 0 else 1.0 - outcome

    def view(self, seat: int) -> NDArray[np.float32]:
        """Returns a copy of a seat's observation, [O]."""
        game = self.game
        views = game.final_observations_N2O if self.ended else game.observations_N2O
        return views[0, seat].copy()

    def render(self, seat: int = 0) -> str | NDArray[np.uint8] | None:
        """Returns a line of text (mode "ansi") or a picture, uint8 [H, W, 3]."""
        self.check_begun()
        if self.render_mode == "ansi":
            if self.ended:
                frames = self.game.final_frames_N[0]
                return f"ended in frame {frames}: outcome {self.outcome(seat)}"
            return in_words(self.game.frame(0))
        if self.render_mode is None:
            return None
        winner = {1.0: 0, 0.0: 1}.get(self.outcome(0))
        self._painter.see(self._shown, verdict(self.names, winner) if self.ended else None)
        return self._painter.paint()


class BrawlEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.int8]]):
    """Plays a seat of a match. At the time limit the match is `terminated`, not truncated.

    Observations are float32[74] in [-1, 1]. Actions are MultiBinary(10), the keys W A S D space H L
    J K G. A value above 0.5 presses a key. The reward is the sum of the weighted terms in
    `info["reward_terms"]`. At the end `info["outcome"]` is 1, 0.5 or 0.

    Args:
        opponent: a bot's name, or a function from the opponent's observation to its keys.
        seat: 0 or 1.
        options: options of `OneMatch`.

    Raises:
        ConfigError: an unknown opponent or option.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 30}  # noqa: RUF012

    def __init__(self, opponent: Opponent = "based", *, seat: int = 0, **options: Any) -> None:
        check_seat(seat)
        names = ["this seat", opponent if isinstance(opponent, str) else "opponent"]
        self._match = OneMatch(names if seat == 0 else names[::-1], **options)
        self._match.game.bots_N2[0, 1 - seat] = self._match.bot_index(opponent)
        self._seat, self._opponent = seat, opponent
        self.render_mode = self._match.render_mode
        self.metadata = {**self.metadata, "render_fps": self._match.fps}
        self.observation_space = self._match.observation_space
        self.action_space = self._match.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a match."""
        super().reset(seed=seed)
        self._match.begin(self.np_random)
        return self._match.view(self._seat), {}

    def step(
        self, action: NDArray[np.int8]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Holds the keys for `frame_skip` frames, and returns Gymnasium's five values."""
        match, seat = self._match, self._seat
        match.press(seat, action)
        if not isinstance(self._opponent, str):
            match.ended = False
            match.press(1 - seat, self._opponent(match.view(1 - seat)))
        terms_K = match.step()[0, seat]
        info: dict[str, Any] = {"reward_terms": match.named(terms_K)}
        if match.ended:
            info["outcome"] = match.outcome(seat)
        return match.view(seat), float(terms_K.sum()), match.ended, False, info

    def render(self) -> str | NDArray[np.uint8] | None:
        """Returns a line of text (mode "ansi") or a picture, uint8 [H, W, 3]."""
        return self._match.render(self._seat)


def check_seat(seat: int) -> None:
    """Raises `ConfigError` for a seat other than 0 and 1."""
    if seat not in (0, 1):
        raise ConfigError(f"there is no seat {seat!r}: choose 0 or 1")


def in_words(frame: Mapping[str, Any]) -> str:
    """Describes a frame of the game in a line of text."""
    players = (
        f"({p['x']:.1f}, {p['y']:.1f}) damage {p['damage']:.0f} "
        f"stocks {p['stocks']} {p['move']}".rstrip()
        for p in frame["players"]
    )
    return f"frame {frame['frame']}: " + " | ".join(players)
