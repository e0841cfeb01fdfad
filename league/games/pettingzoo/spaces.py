"""What the league sees of an environment: its spaces as numbers and actions, and its spec.

Shape suffixes: A action width, W width of what is encoded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import CHOICE, KEYS, BotSpec, GameSpec
from league.games.pettingzoo.environment import build

MAX_FRAMES: Final = 1000
STATS: Final = ("illegal_moves", "moves", "reward")
TERMS: Final = ("reward", "win")
BOTS: Final = (BotSpec(name="random", summary="makes any legal choice with equal probability"),)
PRESETS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {"dense": MappingProxyType({"reward": 1.0}), "sparse": MappingProxyType({"win": 1.0})}
)

MOST_NUMBERS = 65_536
MOST_CHOICES = 65_536


@dataclass(frozen=True)
class Encoder:
    """Turns values of a space into `width` numbers in [-1, 1]; `write` fills a row of them."""

    width: int
    write: Callable[[Any, NDArray[np.float32]], None]


@dataclass(frozen=True)
class Actions:
    """What a seat may do: `size` wide; `decode` makes the environment's action of such a row."""

    kind: str
    size: int
    names: tuple[str, ...]
    decode: Callable[[NDArray[np.uint8]], Any]


def encoder(space: spaces.Space, name: str) -> Encoder:
    """The encoder of an observation space; raises `ConfigError` for one that has no fixed width.

    An action mask is left out: it is seen as the legal choices.
    """
    if isinstance(space, spaces.Dict):
        space = spaces.Dict({key: space[key] for key in space.spaces if key != "action_mask"})
    made = _encoder(space, name)
    if not 1 <= made.width <= MOST_NUMBERS:
        raise ConfigError(f"{name} observes {made.width} numbers: 1 to {MOST_NUMBERS} can be taken")
    return made


def _encoder(space: spaces.Space, name: str) -> Encoder:
    if isinstance(space, spaces.Box):
        return _box(space)
    if isinstance(space, spaces.Discrete):
        return _one_hot(np.array([space.n]), np.array([space.start]))
    if isinstance(space, spaces.MultiDiscrete):
        return _one_hot(space.nvec.ravel(), np.ravel(space.start))
    if isinstance(space, spaces.MultiBinary):
        return Encoder(int(np.prod(space.shape)), _write_flat)
    if isinstance(space, spaces.Dict):
        return _joined(space.spaces, name)
    if isinstance(space, spaces.Tuple):
        return _joined(dict(enumerate(space.spaces)), name)
    raise ConfigError(
        f"{name} observes a {type(space).__name__}: Box, Discrete, MultiDiscrete, MultiBinary, "
        "and Dict and Tuple of these can be taken"
    )


def _write_flat(value: Any, out_W: NDArray[np.float32]) -> None:
    out_W[:] = np.asarray(value).reshape(-1)


def _box(space: spaces.Box) -> Encoder:
    """By the declared bounds onto [-1, 1]; numbers without bounds through tanh."""
    low_W, high_W = (bound.reshape(-1).astype(np.float64) for bound in (space.low, space.high))
    span_W = high_W - low_W
    bounded_W = np.isfinite(span_W) & (span_W < 1e30)
    scaled_W = bounded_W & (span_W > 0)
    scale_W = np.divide(2.0, span_W, out=np.zeros_like(span_W), where=scaled_W)
    offset_W = np.where(scaled_W, -1.0 - np.where(bounded_W, low_W, 0.0) * scale_W, 0.0)
    endless_W = np.flatnonzero(~bounded_W)

    def write(value: Any, out_W: NDArray[np.float32]) -> None:
        value_W = np.asarray(value, np.float64).reshape(-1)
        out_W[:] = value_W * scale_W + offset_W
        if endless_W.size:
            out_W[endless_W] = np.tanh(value_W[endless_W])

    return Encoder(low_W.size, write)


def _one_hot(sizes: NDArray[np.integer], starts: NDArray[np.integer]) -> Encoder:
    first = np.cumsum([0, *sizes[:-1]]) - starts

    def write(value: Any, out_W: NDArray[np.float32]) -> None:
        out_W[:] = 0.0
        out_W[first + np.asarray(value).reshape(-1)] = 1.0

    return Encoder(int(sizes.sum()), write)


def _joined(parts: Mapping[Any, spaces.Space], name: str) -> Encoder:
    encoders = [(key, _encoder(part, name)) for key, part in parts.items()]
    ends = np.cumsum([0, *(part.width for _, part in encoders)]).tolist()

    def write(value: Any, out_W: NDArray[np.float32]) -> None:
        for (key, part), (begin, end) in zip(encoders, pairwise(ends), strict=True):
            part.write(value[key], out_W[begin:end])

    return Encoder(ends[-1], write)


def actions(space: spaces.Space, name: str) -> Actions:
    """What can be done in an action space; raises `ConfigError` for one that is neither keys nor
    choices.
    """
    if isinstance(space, spaces.MultiBinary):
        size = int(np.prod(space.shape))
        names = tuple(f"key {n}" for n in range(size))
        return Actions(
            KEYS, size, names, lambda row_A: row_A[:size].astype(space.dtype).reshape(space.shape)
        )
    if isinstance(space, spaces.Discrete):
        size = int(space.n)

        def decode(row_A: NDArray[np.uint8]) -> Any:
            return int(space.start) + int(row_A.argmax())

    elif isinstance(space, spaces.MultiDiscrete):
        size, starts = int(np.prod(space.nvec.astype(float))), np.asarray(space.start)

        def decode(row_A: NDArray[np.uint8]) -> Any:
            numbers = np.unravel_index(int(row_A.argmax()), space.nvec.ravel())
            return np.reshape(numbers, space.shape) + starts

    else:
        raise ConfigError(
            f"{name} is played by a {type(space).__name__}: Discrete, MultiDiscrete and "
            "MultiBinary can be taken"
        )
    if size > MOST_CHOICES:
        raise ConfigError(f"{name} has {size} choices: {MOST_CHOICES} are the most")
    return Actions(CHOICE, size, tuple(f"choice {n}" for n in range(size)), decode)


def mask(observation: Any, info: Any, size: int) -> NDArray[np.bool_] | None:
    """Which of `size` choices the environment allows, by its observation or its info; None: it says
    nothing.

    A MultiDiscrete's mask may be one for each of its numbers; all their combinations are then
    allowed.
    """
    found = observation.get("action_mask") if isinstance(observation, dict) else None
    if found is None and isinstance(info, dict):
        found = info.get("action_mask")
    if found is None:
        return None
    if isinstance(found, tuple):
        allowed_A = np.ones(1, np.bool_)
        for part in found:
            allowed_A = np.outer(allowed_A, np.asarray(part, np.bool_)).ravel()
    else:
        allowed_A = np.asarray(found).reshape(-1).astype(np.bool_)
    if allowed_A.size != size:
        raise ValueError(f"its action mask has {allowed_A.size} places for {size} choices")
    return allowed_A


@dataclass(frozen=True, kw_only=True)
class Face:
    """What the two seats of an environment see and do, by seat; the wider seat sets the width of
    both.
    """

    encoders: tuple[Encoder, ...]
    actions: tuple[Actions, ...]

    @property
    def kind(self) -> str:
        return self.actions[0].kind

    @property
    def action_size(self) -> int:
        return max(one.size for one in self.actions)

    @property
    def view_size(self) -> int:
        return max(one.width for one in self.encoders)


def face(env: Any, name: str) -> Face:
    """The face of `env`; raises `ConfigError` unless two agents play it in supported spaces."""
    agents = list(env.possible_agents)
    if len(agents) != 2:
        raise ConfigError(f"{name} is played by {len(agents)} agents: a league plays games of two")
    try:
        seen_by = [env.observation_space(agent) for agent in agents]
        done_by = [env.action_space(agent) for agent in agents]
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{name} has no readable spaces: {reason}") from error
    seen = Face(
        encoders=tuple(encoder(space, name) for space in seen_by),
        actions=tuple(actions(space, name) for space in done_by),
    )
    if seen.actions[0].kind != seen.actions[1].kind:
        raise ConfigError(
            f"one seat of {name} has keys and the other choices: both must have the same"
        )
    return seen


def read(
    argument: str, options: Mapping[str, Any], max_frames: int | None
) -> tuple[GameSpec, Face]:
    """Spec and face of the environment `argument`, which this process makes and closes again."""
    env = build(argument, options)
    try:
        seen = face(env, argument)
        metadata = dict(getattr(env, "metadata", {}))
    finally:
        env.close()
    wide = max(seen.actions, key=lambda one: one.size)
    package = sys.modules.get("pettingzoo")
    # which seat (2), whether it is to act (1), and its legal choices
    own_size = 3 + (seen.action_size if seen.kind == CHOICE else 0)
    spec = GameSpec(
        name=f"pettingzoo:{argument}",
        version=f"{getattr(package, '__version__', '0')} {metadata.get('name', argument)}",
        frames_per_second=max(1, round(float(metadata.get("render_fps") or 1))),
        observation_size=own_size + seen.view_size,
        own_size=own_size,
        action_size=wide.size,
        action_names=wide.names,
        reward_terms=TERMS,
        stats=STATS,
        bots=BOTS,
        max_frames=max_frames if max_frames is not None else MAX_FRAMES,
        action_kind=seen.kind,
        reward_presets=PRESETS,
    )
    return spec, seen
