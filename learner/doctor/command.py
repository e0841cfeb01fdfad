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
from typing import TYPE_CHECKING

from league.cli import connect
from league.cli.output import say
from league.errors import InvalidInput, LeagueError
from league.games.base import CHOICE
from league.players import Book, PayoffCell
from league.runs.files import write_whole
from league.security.flags import add_client_flags
from league.settings.base import resolve

if TYPE_CHECKING:
    from learner.doctor.diagnosis import Diagnosis
    from learner.doctor.findings import Finding

SUMMARY = "why does it not learn? measures game, rewards, network and updates, and names the cause"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset", help="settings to examine (default: laptop; board for games of choices)"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings file to examine")
    parser.add_argument(
        "--game", metavar="NAME", help="game to examine (default: that of the settings)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="SECTION.KEY=VALUE", dest="assignments"
    )
    parser.add_argument(
        "--run-dir", type=Path, metavar="DIR", help="a run: its settings, weights and files"
    )
    parser.set_defaults(address=None)  # what is examined is files, never a matchmaker alone
    add_client_flags(parser)
    parser.add_argument(
        "--name", default="main", help="with --run-dir: the learner (default: main)"
    )
    parser.add_argument(
        "--emergency", action="store_true", help="train the minimal agent too: a minute more"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE, too")


def run(args: argparse.Namespace) -> int:
    """0 when nothing failed, 1 when something did."""
    if args.run_dir is not None and (args.preset or args.config or args.game or args.assignments):
        raise InvalidInput(
            "--run-dir has its own settings: leave out --preset, --config, --game and --set"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    from learner.doctor.diagnosis import Verdict
    from learner.doctor.report import show

    torch.set_num_threads(1)
    started = time.monotonic()
    diagnosis = replace(_examine(args), seconds=time.monotonic() - started)
    if args.json is not None:
        write_whole(args.json, json.dumps(diagnosis.to_dict(), indent=1) + "\n")
    show(diagnosis)
    return int(diagnosis.verdict is Verdict.FAILURE)


def _examine(args: argparse.Namespace) -> Diagnosis:
    from learner.doctor.checks_run import RUN_CHECKS
    from learner.doctor.diagnosis import Diagnosis, judge, ordered
    from learner.doctor.emergency import emergency
    from learner.doctor.evidence import gather
    from learner.doctor.run_evidence import read_run
    from learner.doctor.setup import set_up_of

    findings: list[Finding] = []
    if args.run_dir is not None:
        connect.run_folder(args)
        evidence = read_run(args.run_dir, args.name, _clean_matches(args))
        findings += [check(evidence) for check in RUN_CHECKS]
        set_up, subject = evidence.set_up, f"{args.run_dir.name} at step {evidence.step:,}"
    else:
        preset, assignments = _named(args)
        set_up = set_up_of(resolve(preset, args.config, assignments))
        subject = f"{set_up.spec.name}, {args.config or f'preset {preset}'}"
    on_step = _progress()
    findings += judge(gather(set_up, on_step))
    curve: tuple[float, ...] = ()
    if args.emergency:
        finding, points = emergency(set_up, on_step)
        findings.append(finding)
        curve = tuple(reward for _, reward, _ in points)
    on_step("")
    return Diagnosis(subject=subject, findings=ordered(findings), curve=curve)


def _named(args: argparse.Namespace) -> tuple[str | None, Sequence[str]]:
    """Preset and flags that `args` mean; a game of choices gets the preset that is made for it."""
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
    """Clean matches of this learner's snapshots; none, with a word, where the league can't be
    asked.
    """
    try:
        with connect.connect(args) as client:
            cells = client.payoff(Book.EVAL)
    except LeagueError as error:
        say(f"(without clean matches: {error})")
        return []
    return [cell for cell in cells if cell.row.startswith((f"{args.name}@", f"{args.name}."))]


def _progress() -> Callable[[str], None]:
    """What is done now, on one line of a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
