"""Two-player PettingZoo environments as games of the league: `pettingzoo:MODULE`.

`spec.py` reads what an environment is, `environment.py` plays one, `worker.py` holds several of
them in a process of its own, `pool.py` ends the processes that hang, `matches.py` plays what was
lost with one anew, and `game.py` is the game that the league sees.
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

    A module's `parallel_env` is taken, else its `env`, else its `raw_env`; `options` are its
    arguments.

    Args:
        num_matches: matches that step together. argument: what follows `pettingzoo:` in the game's
        name. max_frames: steps after which a match ends as its rewards stand; None is 1000.
        step_seconds: longest time that one call of the environment may take; the match fails beyond
        it. workers: processes that hold the environments; 0 chooses by the matches and the
        processor cores.

    Raises:
        ConfigError: when there is no such environment, or it isn't one of two players, or its
        spaces
            can't be taken.
    """
    if not argument:
        raise ConfigError("game 'pettingzoo' needs an environment: name it as pettingzoo:MODULE")
    if step_seconds <= 0 or workers < 0:
        raise ConfigError(
            f"step_seconds = {step_seconds}, workers = {workers}: take seconds above 0 and workers from 0"
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
