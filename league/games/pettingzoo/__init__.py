"""Two-player PettingZoo environments as games of the league: `pettingzoo:MODULE`.

`spaces.py` reads what an environment is, `environment.py` plays one, `worker.py` holds several of
them in a process, `pool.py` replaces processes that hang or die, and `game.py` is the game that the
league sees.
"""

from __future__ import annotations

from league.errors import ConfigError
from league.games.base import BatchedGame

Option = bool | int | float | str


def make_pettingzoo(
    num_matches: int,
    *,
    argument: str = "",
    max_frames: int | None = None,
    step_seconds: float = 10.0,
    workers: int = 0,
    **options: Option,
) -> BatchedGame:
    """N matches of the environment `argument`, a module or `MODULE:FACTORY`.

    A module's `parallel_env` makes it, else its `env`, else its `raw_env`, with `options`.

    Args:
        num_matches: matches that step together.
        argument: what follows `pettingzoo:` in the game's name.
        max_frames: steps after which a match ends with its rewards so far; None is 1000.
        step_seconds: longest time that one call of the environment may take before its match fails.
        workers: processes that hold the environments; 0 chooses by matches and processor cores.

    Raises:
        ConfigError: there is no such environment, it isn't one of two players, or the league
            doesn't support its spaces.
    """
    if not argument:
        raise ConfigError("game 'pettingzoo' needs an environment: name it as pettingzoo:MODULE")
    if step_seconds <= 0 or workers < 0:
        raise ConfigError(
            f"step_seconds = {step_seconds}, workers = {workers}: take seconds above 0 and "
            "workers from 0"
        )
    from league.games.pettingzoo.game import PettingZooGame

    return PettingZooGame(
        num_matches,
        argument=argument,
        options=options,
        max_frames=max_frames,
        step_seconds=step_seconds,
        workers=workers,
    )
