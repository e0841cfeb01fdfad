"""Holds the parts that all services share: domain types, statistics, games, agents, the client.

`open` opens a league for notebooks and other programs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # services import this package but not this module
    from league.notebook import Run

__version__ = "0.1.0"


def open(
    run_dir: str | Path | None = None,
    *,
    address: str | None = None,
    token_file: str | Path | None = None,
    tls: str | Path | None = None,
    at: str | None = None,
    blobs: str | Path | None = None,
    game: str | None = None,
) -> Run:
    """Opens a league, running or finished. Each argument means the same as the flag of `bin/league`
    with the same name.

    Args:
        run_dir: the folder of a run, by default of the newest run.
        address: HOST:PORT of a running matchmaker, instead of the folder.
        token_file: a file with the token to send. By default, the environment or the run's folder
            gives the token.
        tls: a folder with certificates.
        at: opens the run as it was at this time (ISO 8601 or Unix seconds) or log position.
        blobs: a folder with the players' weights, by default the run's own folder.
        game: the game in which matches are played on this machine, by default the run's game.

    Returns:
        The league.

    Raises:
        InvalidInput: `run_dir` and `address` are both given.
        NotFound: there is no such run.
        VersionMismatch: another version of the project made the run.
    """
    from league.notebook import OpenLeague, Run

    def path(name: str | Path | None) -> Path | None:
        return None if name is None else Path(name)

    found = OpenLeague(
        address=address, run_dir=path(run_dir), token_file=path(token_file), tls=path(tls), at=at
    )
    return Run(found, path(blobs), game)
