"""Games by name: the built-in ones, and those that packages add under the entry point group below.

An entry point's value names a class or function `game(num_matches, *, stage, max_frames)` that returns
a BatchedGame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.errors import ConfigError
from league.games.base import BatchedGame, GameSpec

GROUP = "kumite.games"


def _brawl(num_matches: int, **options: Any) -> BatchedGame:
    from league.games.brawl.game import BrawlGame

    return BrawlGame(num_matches, **options)


_BUILT_IN: dict[str, Callable[..., BatchedGame]] = {"brawl": _brawl}


def game_names() -> list[str]:
    """Every game that can be named."""
    return sorted(_BUILT_IN.keys() | {point.name for point in entry_points(group=GROUP)})


@cache
def _factory(name: str) -> Callable[..., BatchedGame]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point.load()
    raise ConfigError(f"there is no game {name!r}: choose one of {', '.join(game_names())}")


def make_batched(
    name: str, num_matches: int, *, stage: str = "warehouse", max_frames: int | None = None, **options: Any
) -> BatchedGame:
    """N matches of the game called `name`; raises `ConfigError` when there is none."""
    return _factory(name)(num_matches, stage=stage, max_frames=max_frames, **options)


def game_spec(name: str, *, stage: str = "warehouse", max_frames: int | None = None) -> GameSpec:
    """The spec of the game called `name` (the built-in ones' without loading the compiler)."""
    if name == "brawl":
        from league.games.brawl.spec import brawl_spec

        return brawl_spec(max_frames)
    return make_batched(name, 1, stage=stage, max_frames=max_frames).spec


def reward_weights(name: str, preset: str, overrides: Mapping[str, float]) -> NDArray[np.float32]:
    """Weight of each reward term of the game called `name`, [K].

    Games from outside have no presets: what `overrides` does not weigh counts nothing.
    """
    if name == "brawl":
        from league.games.brawl import rewards

        return rewards.reward_weights(preset, overrides)
    terms = game_spec(name).reward_terms
    unknown = set(overrides) - set(terms)
    if unknown:
        raise ConfigError(f"game {name} has no reward term {sorted(unknown)[0]!r}: it has {', '.join(terms)}")
    return np.array([overrides.get(term, 0.0) for term in terms], np.float32)
