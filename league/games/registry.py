"""Finds games by name: built-in games, registered games, and games from installed packages.

A name may carry an argument after a colon: `matrix:rps`, `pettingzoo:MODULE`, `openspiel:NAME`,
`ai2:FOLDER`, `grpc:HOST:PORT`, and `python:MODULE:FACTORY` for a game in a user's module.
A game's factory is called as `factory(num_matches, *, max_frames=None, **options)` and returns a
`BatchedGame`. If the name has an argument, the factory also gets `argument=`.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.entry_points import entry_points
from league.errors import ConfigError, nearest
from league.games.base import BatchedGame, GameSpec

PATH = "KUMITE_PATH"
GROUP = "kumite.games"
"""Entry point group in which packages declare their games. An entry's value names the factory."""

GameFactory = Callable[..., BatchedGame]

_BUILT_IN = {
    "brawl": "league.games.brawl.game:BrawlGame",
    "matrix": "league.games.matrix:make_matrix",
    "kuhn": "league.games.poker:make_kuhn",
    "leduc": "league.games.poker:make_leduc",
    "pettingzoo": "league.games.pettingzoo.game:PettingZooGame",
    "ai2": "league.games.ai2.game:Ai2Game",
    "showdown": "league.games.showdown.game:ShowdownGame",
    "grpc": "league.games.remote:RemoteGame",
    "openspiel": "league.games.openspiel:OpenSpielGame",
}
_SPELLED = {
    "matrix": "matrix:NAME",
    "pettingzoo": "pettingzoo:MODULE",
    "ai2": "ai2:FOLDER",
    "showdown": "showdown:FORMAT",
    "grpc": "grpc:HOST:PORT",
    "openspiel": "openspiel:NAME",
    "python": "python:MODULE:FACTORY",
}
_OF_FILES: Mapping[str, Mapping[str, type]] = {
    "brawl": {
        **{"stage": str, "rules": str, "loop": str, "threads": int},
        **{"variation": float, "off_stage_starts": float},
    },
    "kuhn": {},
    "leduc": {},
    "matrix:brps": {"rounds": int},
    "matrix:mp": {"rounds": int},
    "matrix:rps": {"rounds": int},
    "showdown": {"step_seconds": float, "workers": int},
}
"""Games that a file may choose without the user's consent, with the types of their options. These
games and options refer to no file, program or module.
"""
_registered: dict[str, GameFactory] = {}


def register(name: str, factory: GameFactory) -> None:
    """Registers a game under `name`, in this process only.

    A league has several processes. To train on a game in a league, give it an entry point in the
    group `kumite.games`, or name it `python:MODULE:FACTORY`.

    Args:
        name: the game's name, without a colon.
        factory: makes the game. The docstring of this module describes the arguments of the call.

    Raises:
        ConfigError: the name is taken, empty or has a colon.
    """
    if not name or ":" in name or name in game_names():
        raise ConfigError(
            f"a game can't be registered as {name!r}: the name is taken, empty or has a colon"
        )
    _registered[name] = factory


def game_names() -> list[str]:
    """Returns the names of all games. The name of a game that takes an argument includes a word for
    the argument, as in `matrix:NAME`.
    """
    names = (
        _BUILT_IN.keys() | _registered.keys() | {point.name for point in entry_points(group=GROUP)}
    )
    return sorted({_SPELLED.get(name, name) for name in names | {"python"}})


def users_module(name: str) -> ModuleType:
    """Imports a user's module. The module may also be in the working folder or on `PYTHONPATH`.

    The scripts in `bin/` move the value of `PYTHONPATH` to `KUMITE_PATH`. This function appends the
    working folder and the folders in `KUMITE_PATH` to the end of the import path. So no file in
    these folders can replace a module of Python, of a package or of the project.
    """
    # If the project is an editable install, its folder is not on the path, and Python would look
    # there last. So the project's folder is added before the user's folders.
    entries = [str(Path(__file__).parents[2]), *os.environ.get(PATH, "").split(os.pathsep)]
    with suppress(FileNotFoundError):  # the folder was removed
        entries.insert(1, os.getcwd())
    for entry in filter(None, entries):
        if os.path.abspath(entry) not in sys.path:
            sys.path.append(os.path.abspath(entry))
    return importlib.import_module(name)


def users_path() -> dict[str, str]:
    """Returns the environment variable that lets another process find the same modules."""
    return {PATH: os.pathsep.join(entry or os.getcwd() for entry in sys.path)}


def absolute_users_path() -> str:
    """Returns the value of `KUMITE_PATH` with absolute folders, for processes that start in another
    working folder.
    """
    entries = os.environ.get(PATH, "").split(os.pathsep)
    return os.pathsep.join(os.path.abspath(entry) for entry in entries if entry)


def _load(path: str, load: Callable[[str], ModuleType] = importlib.import_module) -> GameFactory:
    module, _, attribute = path.partition(":")
    try:
        return getattr(load(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"no game can be made by {path}: {error}") from error


def _factory(name: str) -> tuple[GameFactory, dict[str, str]]:
    """Returns the factory of `name`. If the name carries an argument, it also returns the argument
    in a dict.
    """
    head, colon, argument = name.partition(":")
    options = {"argument": argument} if colon else {}
    if head == "python" and argument:
        return _load(argument, users_module), {}
    if head in _BUILT_IN:
        return _load(_BUILT_IN[head]), options
    if name in _registered:
        return _registered[name], {}
    for point in entry_points(group=GROUP):
        if point.name == head:
            return point.load(), options
    message = f"there is no game {name!r}: choose one of {', '.join(game_names())}"
    near = nearest(name, game_names())
    if near:
        message += f"; {near}"
    raise ConfigError(message)


def make_batched(
    name: str, num_matches: int, *, max_frames: int | None = None, **options: Any
) -> BatchedGame:
    """Makes matches of the game called `name`.

    Args:
        name: the game's name.
        num_matches: N, matches that step together.
        max_frames: time limit in frames. None means the game's own limit.
        options: the game's options (brawl: `stage`, `rules`, `loop`, `variation`).

    Raises:
        ConfigError: there is no such game, or it takes no such option.
    """
    factory, carried = _factory(name)
    arguments = {**options, **carried}
    try:
        with suppress(ValueError):  # a callable written in C has no signature to check
            inspect.signature(factory).bind(num_matches, max_frames=max_frames, **arguments)
    except TypeError as error:
        raise ConfigError(f"game {name!r} can't be made with {arguments}: {error}") from error
    game = factory(num_matches, max_frames=max_frames, **arguments)
    # Players, cards and settings identify the game by the name that was passed in.
    game.spec = replace(game.spec, name=name)
    return game


def is_safe_in_files(name: str, options: Mapping[str, Any]) -> bool:
    """Returns whether a file from an unknown author may name this game with these options.

    The game and its options must be built in, and the options must have the right types. The game
    itself checks the bounds of its options.

    Args:
        name: the game's name.
        options: the game's options.
    """
    types = _OF_FILES.get("showdown" if name.startswith("showdown:") else name)
    return types is not None and all(
        type(value) in ((float, int) if types.get(option) is float else (types.get(option),))
        for option, value in options.items()
    )


def game_spec(name: str, *, max_frames: int | None = None, **options: Any) -> GameSpec:
    """Returns the spec of the game called `name`. For brawl this doesn't load the compiler.

    Raises:
        ConfigError: there is no such game, or it takes no such option.
    """
    if name == "brawl":
        from league.games.brawl.spec import brawl_spec
        from league.games.brawl.stage import stage as stage_named

        checked = ("stage", "rules", "loop", "variation", "off_stage_starts")
        # Looking up the stage checks the options' values.
        stage_named(**{name: options[name] for name in checked if name in options})
        return brawl_spec(max_frames)
    return _made_spec(name, max_frames, tuple(sorted(options.items())))


@cache
def _made_spec(name: str, max_frames: int | None, options: tuple[tuple[str, Any], ...]) -> GameSpec:
    game = make_batched(name, 1, max_frames=max_frames, **dict(options))
    try:
        return game.spec
    finally:
        game.close()


def family(game: str) -> str:
    """Returns the game that has the same observations and keys as `game`: "brawl" for `ai2:FOLDER`,
    and `game` itself for any other game."""
    return "brawl" if game.startswith("ai2:") else game


def takes_agents_of(spec: GameSpec, game: str, version: str) -> bool:
    """Returns whether an agent of `game`, under rules `version`, can play the game of `spec`.

    An agent of brawl can play `ai2:FOLDER`, and an agent of `ai2:FOLDER` can play brawl, under any
    version of the rules.
    """
    is_original = family(game) != game or family(spec.name) != spec.name
    return family(game) == family(spec.name) and (
        is_original or (game, version) == (spec.name, spec.version)
    )


def reward_weights(
    spec: GameSpec, preset: str, overrides: Mapping[str, float] | None = None
) -> NDArray[np.float32]:
    """Returns the weight of each of the game's reward terms.

    Args:
        spec: the game.
        preset: one of the game's reward presets.
        overrides: weights by term, which replace the preset's weights.

    Returns:
        float32[K].

    Raises:
        ConfigError: an unknown preset or term, or an infinite weight.
    """
    overrides = overrides or {}
    if preset not in spec.reward_presets:
        presets = ", ".join(spec.reward_presets) or "none"
        raise ConfigError(f"game {spec.name} has no reward preset {preset!r}: it has {presets}")
    unknown = sorted(set(overrides) - set(spec.reward_terms))
    if unknown:
        terms = ", ".join(spec.reward_terms)
        raise ConfigError(f"game {spec.name} has no reward term {unknown[0]!r}: it has {terms}")
    endless = [
        f"{term} = {weight}" for term, weight in overrides.items() if not math.isfinite(weight)
    ]
    if endless:
        raise ConfigError(f"reward weight {endless[0]} can't be used: weights are finite numbers")
    weights = {**spec.reward_presets[preset], **overrides}
    return np.array([weights.get(term, 0.0) for term in spec.reward_terms], np.float32)
