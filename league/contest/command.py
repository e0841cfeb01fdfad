"""Defines the flags that name a league, and classes for commands that have these flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

from league.console.options import RUN_HELP, SeveralValues
from league.contest.league import League

LEAGUE = (
    TyperOption(
        param_decls=["--address"],
        metavar="HOST:PORT",
        help="The address of a running matchmaker.",
    ),
    TyperOption(param_decls=["--run-dir"], type=Path, metavar="DIR", help=RUN_HELP),
    TyperOption(
        param_decls=["--token-file"],
        type=Path,
        metavar="FILE",
        help="A file with the token to send (default: KUMITE_TOKEN, KUMITE_TOKEN_FILE, or the "
        "run's own).",
    ),
    TyperOption(
        param_decls=["--tls"],
        type=Path,
        metavar="FOLDER",
        help="A folder with ca.pem, and with client.pem and client.key for mutual TLS (default: "
        "KUMITE_TLS, or the folder in the run's settings).",
    ),
)
"""Flags that name a league."""
AT = TyperOption(
    param_decls=["--at"],
    metavar="WHEN",
    help="Show the league as it was then: a time (2026-11-21T14:00, UTC by default), Unix "
    "seconds, or a log position.",
)


class LeagueContext(typer.Context):
    """Holds the context of a `LeagueCommand`. `league` is the league that the flags name."""

    league: League


class LeagueCommand(TyperCommand):
    """Adds the flags `LEAGUE` to a command, whose function takes a `LeagueContext`."""

    context_class = LeagueContext
    flags: tuple[TyperOption, ...] = LEAGUE

    def __init__(self, *arguments: Any, params: list[Any], **more: Any) -> None:
        super().__init__(*arguments, params=[*params, *self.flags], **more)

    def invoke(self, ctx: LeagueContext) -> Any:  # pyrefly: ignore[bad-override]
        names = [str(flag.name) for flag in self.flags]
        ctx.league = League(**{name: ctx.params.pop(name) for name in names})
        return super().invoke(ctx)


class PastLeagueCommand(LeagueCommand):
    """Adds the flag `--at`, which shows an earlier state of the league, to a `LeagueCommand`."""

    flags = (*LEAGUE, AT)


class SeveralPlayers(SeveralValues, LeagueCommand):
    """Lets a `LeagueCommand` take several players after a flag."""
