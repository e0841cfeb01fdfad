"""``league doctor``: why does it not learn?"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.cli.connection import League, Tls, TokenFile
from league.cli.output import say
from league.errors import InvalidInput, LeagueError
from league.games.base import CHOICE
from league.players import Book, PayoffCell
from league.runs.files import write_whole
from league.runs.finding import checked_run
from league.settings.base import resolve

if TYPE_CHECKING:
    from learner.doctor.findings import Diagnosis, Finding


def doctor(
    preset: Annotated[
        str | None,
        typer.Option(help="Settings to examine (default: laptop; board for games of choices)."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A settings file to examine.")
    ] = None,
    game: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The game to examine (default: that of the settings)."),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="One setting.")
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A run: its settings, weights and files."),
    ] = None,
    token_file: TokenFile = None,
    tls: Tls = None,
    name: Annotated[str, typer.Option(help="With --run-dir: the learner.")] = "main",
    emergency: Annotated[
        bool, typer.Option("--emergency", help="Train the minimal agent too: a minute more.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything to FILE too.")
    ] = None,
) -> int:
    """Finds out why an agent does not learn: measures game, rewards, network and updates.

    The exit status is 1 when a check failed.
    """
    args = argparse.Namespace(**locals() | {"assignments": assignments or [], "json": json_file})
    if args.run_dir is not None and (args.preset or args.config or args.game or args.assignments):
        raise InvalidInput(
            "--run-dir has its own settings: leave out --preset, --config, --game and --set"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    from learner.doctor.findings import Verdict
    from learner.doctor.report import show

    torch.set_num_threads(1)
    started = time.monotonic()
    diagnosis = replace(_examine(args), seconds=time.monotonic() - started)
    if args.json is not None:
        write_whole(args.json, json.dumps(diagnosis.to_dict(), indent=1) + "\n")
    show(diagnosis)
    return int(diagnosis.verdict is Verdict.FAILURE)


def _examine(args: argparse.Namespace) -> Diagnosis:
    from learner.doctor.checks import judge, measure
    from learner.doctor.findings import Diagnosis, ordered
    from learner.doctor.minimal_agent import emergency
    from learner.doctor.run import judge_run, read_run
    from learner.doctor.setup import set_up_of

    findings: list[Finding] = []
    if args.run_dir is not None:
        checked_run(args.run_dir)
        evidence = read_run(args.run_dir, args.name, _clean_matches(args))
        findings += judge_run(evidence)
        set_up, subject = evidence.set_up, f"{args.run_dir.name} at step {evidence.step:,}"
    else:
        preset, assignments = _named(args)
        set_up = set_up_of(resolve(preset, args.config, assignments))
        subject = f"{set_up.spec.name}, {args.config or f'preset {preset}'}"
    on_step = _progress()
    findings += judge(measure(set_up, on_step))
    curve: tuple[float, ...] = ()
    if args.emergency:
        finding, curve = emergency(set_up, on_step)
        findings.append(finding)
    on_step("")
    return Diagnosis(subject=subject, findings=ordered(findings), curve=curve)


def _named(args: argparse.Namespace) -> tuple[str | None, Sequence[str]]:
    """Preset and flags that `args` mean; games of choices get the preset made for them."""
    from league.games.registry import game_spec

    assignments = list(args.assignments)
    preset = args.preset
    if args.game:
        assignments.insert(0, f"game.name={json.dumps(args.game)}")
        if preset is None and args.config is None:
            preset = "board" if game_spec(args.game).action_kind == CHOICE else None
        if preset is None and args.config is None and args.game != "brawl":
            assignments.insert(1, "game.reward=dense")
    return preset or (None if args.config else "laptop"), assignments


def _clean_matches(args: argparse.Namespace) -> list[PayoffCell]:
    """Clean matches of this learner's snapshots; none, with a line, where the league is down."""
    league = League(run_dir=args.run_dir, token_file=args.token_file, tls=args.tls)
    try:
        with league.connect() as client:
            return cells_of(args.name, client.payoff(Book.EVAL))
    except LeagueError as error:
        say(f"(without clean matches: {error})")
        return []


def cells_of(name: str, cells: Sequence[PayoffCell]) -> list[PayoffCell]:
    """The cells of a learner's own snapshots, also those of its generations."""
    return [cell for cell in cells if cell.row.startswith((f"{name}@", f"{name}."))]


def _progress() -> Callable[[str], None]:
    """A function that shows the current step on one line of a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
