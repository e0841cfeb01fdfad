"""Provides the games, and registers the built-in game with Gymnasium.

After `import league.games`, `gymnasium.make("league/Brawl-v0", opponent="based")` works.
`league.games.parallel_env()` makes the same game for PettingZoo, and `register` adds a game.
Importing this package loads neither a game nor the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium

from league.games.registry import register

if TYPE_CHECKING:
    from league.games.parallel import BrawlParallelEnv

__all__ = ["BRAWL_ENVIRONMENT", "parallel_env", "register"]

BRAWL_ENVIRONMENT = "league/Brawl-v0"

if BRAWL_ENVIRONMENT not in gymnasium.registry:
    gymnasium.register(
        id=BRAWL_ENVIRONMENT,
        entry_point="league.games.gym_env:BrawlEnv",
        vector_entry_point="league.games.vector_env:BrawlVectorEnv",
    )


def parallel_env(**options: Any) -> BrawlParallelEnv:
    """Makes the built-in game with both seats open, as a parallel environment of PettingZoo.

    Raises:
        ConfigError: a wrong option, or PettingZoo is missing.
    """
    from league.games.parallel import BrawlParallelEnv

    return BrawlParallelEnv(**options)
