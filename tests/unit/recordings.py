"""Recorded and made-up matches to clone from, for the tests of behaviour cloning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from agents import TINY, network

from league.agent.config import AgentConfig
from league.agent.recorded_matches import paired, play_bouts
from league.games.settings import GameSettings
from league.replay import Bout, Contender, Recipe, Replay
from learner.cloning.demonstrations import Demonstration, demonstrations
from learner.cloning.settings import CloningSettings

GAME = GameSettings(name="brawl", match_seconds=5, frame_skip=4, reward="laptop")
BASED, RANDOM = (GAME.spec().bot_index(name) for name in ("based", "random"))
SMALL = replace(TINY, width=16, feed_forward=32, memory=16, observation_hidden=16)
QUICK = CloningSettings(epochs=2)


def bouts(matches: int = 8) -> list[Bout]:
    return paired(
        Contender(name="based"), Contender(name="random"), (BASED, RANDOM), matches, 3, "based"
    )


def recorded(disturb: float = 0.0, matches: int = 8) -> list[tuple[Path, Replay]]:
    replays = play_bouts(
        Recipe.of(GAME), bouts(matches), lambda _: network(), frame_skip=1, seed=0, disturb=disturb
    )
    return [(Path(f"{n}.replay"), replay) for n, replay in enumerate(replays)]


def demos(replays: list[tuple[Path, Replay]], name: str = "based") -> list[Demonstration]:
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
