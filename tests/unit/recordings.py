"""Recorded and made-up matches to clone from, for the tests of behaviour cloning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from agents import TINY, network

from league.agent.config import AgentConfig
from league.contest.matches import paired, play_bouts
from league.games.settings import GameSettings
from league.replay import Contender, Recipe, Replay
from learner.cloning.demonstrations import Demonstration, demonstrations

GAME = GameSettings(name="brawl", match_seconds=5, frame_skip=4, reward="laptop")
BASED, RANDOM = (GAME.spec().bot_index(name) for name in ("based", "random"))
SMALL = replace(TINY, width=16, feed_forward=32, memory=16, observation_hidden=16)


def played(**options: Any) -> list[tuple[Path, Replay]]:
    """Four seeds of `based`, the pupil, against `random`, from both seats."""
    seats = Contender(name="based"), Contender(name="random")
    bouts = paired(*seats, (BASED, RANDOM), 8, 3, "based")
    options = {"frame_skip": 1, "seed": 0, **options}
    replays = play_bouts(Recipe.of(GAME), bouts, lambda _: network(SMALL), **options)
    return [(Path(f"{n}.replay"), replay) for n, replay in enumerate(replays)]


@cache
def recorded(disturb: float = 0.0) -> Sequence[tuple[Path, Replay]]:
    """The same for every test."""
    return tuple(played(disturb=disturb))


def demos(replays: Sequence[tuple[Path, Replay]], name: str = "based") -> list[Demonstration]:
    return demonstrations(replays, name, frame_skip=4)


def made_up(lengths: list[int], config: AgentConfig = SMALL, seed: int = 0) -> list[Demonstration]:
    """Matches of random numbers; some decisions are not the player's own."""
    rng = np.random.default_rng(seed)
    return [
        Demonstration(
            n,
            rng.uniform(-1, 1, (length, config.observation_size)).astype(np.float32),
            (rng.random((length, config.action_size)) < 0.3).astype(np.uint8),
            None,
            rng.random(length) < 0.8,
        )
        for n, length in enumerate(lengths)
    ]
