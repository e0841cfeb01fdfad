"""Joins a league on another machine, given its address."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from league.errors import ConfigError
from league.games.registry import is_safe_in_files
from league.games.settings import GameSettings
from league.rpc.client import MatchmakerClient
from league.runs.files import private_folder, write_whole
from league.runs.finding import RUNS
from league.runs.folder import write_config
from league.runs.settings import SHARED
from league.security.credentials import Credentials
from league.settings.base import JOINED, Sections, lay_over, resolve
from league.settings.presets import Tables

HEADING = "Settings of a league on another machine, as its matchmaker sent them at the last start."


def join(
    address: str, credentials: Credentials, assignments: Sequence[str] = (), **waiting: Any
) -> Path:
    """Makes a folder with the league's settings, for the files of this machine.

    A second call fetches the settings again, and keeps the folder's other files.

    Args:
        address: HOST:PORT of the matchmaker.
        credentials: a token of the league.
        assignments: values of ``--set``.
        waiting: arguments of `MatchmakerClient` that control how it waits for the matchmaker.

    Returns:
        The folder, under runs/.

    Raises:
        ConfigError: the settings can't be used, or their game would run code that the user has not
            named.
        Refused: the matchmaker does not know the settings.
    """
    with MatchmakerClient(address, credentials=credentials, **waiting) as client:
        sections = _checked(address, client.settings(), assignments)
    folder = RUNS / f"joined-{re.sub('[^A-Za-z0-9.]+', '-', address)}"
    private_folder(folder)
    write_config(folder / "config.toml", sections, HEADING)
    write_whole(folder / JOINED, json.dumps({"address": address}) + "\n")
    return folder


def _checked(address: str, sent: Tables, assignments: Sequence[str]) -> Sections:
    """Returns the league's settings, with this machine's own values in the sections that the league
    doesn't share.

    The game is checked first, because reading a game's settings imports its code.
    """
    tables = {name: dict(sent[name]) for name in SHARED if name in sent}
    game = tables.get("game", {})
    name, options = game.get("name", "brawl"), game.get("options", {})
    is_readable = isinstance(name, str) and isinstance(options, dict)
    if not (is_readable and is_safe_in_files(name, options)):
        named = [one for one in assignments if one.lstrip().startswith("game.")]
        own = resolve(assignments=named).of(GameSettings)
        if (own.name, dict(own.options)) != (name, options):
            raise ConfigError(
                f"{address} plays {str(name)[:200]!r} with the options {str(options)[:200]}, which "
                "runs code of this machine: if you trust it, name the game here too, by --set "
                "game.name=NAME (KUMITE_GAME__NAME) and its options in the same way"
            )
    tables["cluster"] = {"store": _own_store(address, tables, assignments)}
    tables.get("learner", {}).pop("wandb", None)  # it would write to this user's account
    tables.get("evaluator", {}).pop("device", None)
    try:
        return lay_over(tables)
    except ConfigError as error:
        raise ConfigError(
            f"the settings of {address} can't be used here: {error} (are both of the same version?)"
        ) from None


def _own_store(address: str, sent: Tables, assignments: Sequence[str]) -> str:
    """Returns the object store that this machine names, because a league must not choose where
    files are written here. Without a store, everything goes over the matchmaker.

    Raises:
        ConfigError: it is not the league's store.
    """
    named = [one for one in assignments if one.lstrip().startswith("cluster.")]
    own = str(resolve(assignments=named)["cluster"]["store"])
    league = sent.get("cluster", {}).get("store", "")
    if own and own != league:
        raise ConfigError(
            f"cluster.store is {own} here, and {str(league)[:200] or 'no store'} in the league of "
            f"{address}: name the same, or none"
        )
    return own
