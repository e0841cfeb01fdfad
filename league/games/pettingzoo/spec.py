"""What a league must know of a PettingZoo environment, read from the environment itself.

Shape suffixes: A action width.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from league.errors import ConfigError
from league.games.base import CHOICE, BotSpec, GameSpec
from league.games.pettingzoo.environment import build
from league.games.pettingzoo.spaces import Actions, Encoder, actions, encoder

MAX_FRAMES: Final = 1000
STATS: Final = ("illegal_moves", "moves", "reward")
TERMS: Final = ("reward", "win")
BOTS: Final = (BotSpec(name="random", summary="makes any legal choice with equal probability"),)
PRESETS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {"dense": MappingProxyType({"reward": 1.0}), "sparse": MappingProxyType({"win": 1.0})}
)


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

    @property
    def own_size(self) -> int:
        """Which seat (2), whether it is to act (1), and its legal choices (A; none in games of
        keys).
        """
        return 3 + (self.action_size if self.kind == CHOICE else 0)


def face(env: Any, name: str) -> Face:
    """The face of `env`; raises `ConfigError` unless two agents play it with spaces that can be
    taken.
    """
    agents = list(env.possible_agents)
    if len(agents) != 2:
        raise ConfigError(f"{name} is played by {len(agents)} agents: a league plays games of two")
    try:
        seen_by = [env.observation_space(agent) for agent in agents]
        done_by = [env.action_space(agent) for agent in agents]
    except Exception as error:
        raise ConfigError(
            f"{name} does not tell its spaces: {type(error).__name__}: {error}"
        ) from error
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
    """Spec and face of the environment `argument`, which is made and closed again in this
    process.
    """
    env = build(argument, options)
    try:
        seen = face(env, argument)
        metadata = dict(getattr(env, "metadata", {}))
    finally:
        env.close()
    wide = max(seen.actions, key=lambda one: one.size)
    package = sys.modules.get("pettingzoo")
    spec = GameSpec(
        name=f"pettingzoo:{argument}",
        version=f"{getattr(package, '__version__', '0')} {metadata.get('name', argument)}",
        frames_per_second=max(1, round(float(metadata.get("render_fps") or 1))),
        observation_size=seen.own_size + seen.view_size,
        own_size=seen.own_size,
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
