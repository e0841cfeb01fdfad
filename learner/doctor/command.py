"""``league doctor``: why does it not learn?"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
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

MARKS = {"ok": "✓ green", "warning": "! yellow", "failure": "✗ bright_red", "unknown": "· grey58"}


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
    if run_dir is not None and (preset or config or game or assignments):
        raise InvalidInput(
            "--run-dir has its own settings: leave out --preset, --config, --game and --set"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    from learner.doctor.findings import Diagnosis, ordered
    from learner.doctor.game import examine_environment, examine_game
    from learner.doctor.minimal_agent import emergency as train_minimal_agent
    from learner.doctor.run import judge_run, read_run
    from learner.doctor.setup import set_up_of
    from learner.doctor.training import examine_training

    torch.set_num_threads(1)
    started = time.monotonic()
    findings: list[Finding] = []
    curve: tuple[float, ...] = ()
    if run_dir is not None:
        checked_run(run_dir)
        league = League(run_dir=run_dir, token_file=token_file, tls=tls)
        evidence = read_run(run_dir, name, _clean_matches(league, name))
        findings += judge_run(evidence)
        set_up, subject = evidence.set_up, f"{run_dir.name} at step {evidence.step:,}"
    else:
        preset, assignments = _named(preset, config, game, assignments or [])
        set_up = set_up_of(resolve(preset, config, assignments))
        subject = f"{set_up.spec.name}, {config or f'preset {preset}'}"
    _show_step(f"playing {set_up.spec.name}: what changes, what acts, what repeats, what pays")
    findings += examine_game(set_up)
    _show_step("following rewards and ends of matches to the learner")
    findings += examine_environment(set_up)
    _show_step("training for a few updates")
    findings += examine_training(set_up)
    if emergency:
        finding, curve = train_minimal_agent(set_up, _show_step)
        findings.append(finding)
    _show_step("")
    diagnosis = Diagnosis(
        subject=subject,
        findings=ordered(findings),
        seconds=time.monotonic() - started,
        curve=curve,
    )
    if json_file is not None:
        write_whole(json_file, json.dumps(diagnosis.to_dict(), indent=1) + "\n")
    show(diagnosis)
    return int(diagnosis.verdict.value == "failure")


def _named(
    preset: str | None, config: Path | None, game: str | None, assignments: list[str]
) -> tuple[str | None, list[str]]:
    """Preset and flags that are meant; games of choices get the preset made for them."""
    from league.games.registry import game_spec

    if game:
        flags = [f"game.name={json.dumps(game)}"]
        if preset is None and config is None:
            preset = "board" if game_spec(game).action_kind == CHOICE else None
            if preset is None and game != "brawl":
                flags.append("game.reward=dense")
        assignments = [*flags, *assignments]
    return preset or (None if config else "laptop"), assignments


def _clean_matches(league: League, name: str) -> list[PayoffCell]:
    """Clean matches of this learner's snapshots; none, with a line, where the league is down."""
    try:
        with league.connect() as client:
            return cells_of(name, client.payoff(Book.EVAL))
    except LeagueError as error:
        say(f"(without clean matches: {error})")
        return []


def cells_of(name: str, cells: list[PayoffCell]) -> list[PayoffCell]:
    """The cells of a learner's own snapshots, also those of its generations."""
    return [cell for cell in cells if cell.row.startswith((f"{name}@", f"{name}."))]


def _show_step(text: str) -> None:
    """Shows the current step on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def show(diagnosis: Diagnosis) -> None:
    """Prints a line for each system and reason, then what to fix first.

    Drawn on a terminal, tab-separated elsewhere.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"{diagnosis.subject}: {diagnosis.headline} ({diagnosis.seconds:.0f} s)"
    lines = []
    if diagnosis.curve:
        parts = np.array_split(diagnosis.curve, min(8, len(diagnosis.curve)))
        curve = " ".join(f"{part.mean():.3g}" for part in parts)
        lines.append(f"minimal agent, reward of a match: {curve}")
    for finding, consequences in diagnosis.causes:
        lines.append(f"{finding.verdict}: {finding.title} ({finding.key})")
        lines += [f"  measured: {finding.measured}", f"  fix: {finding.fix}"]
        lines += [f"  follows: {one.title} ({one.key})" for one in consequences]
    if not sys.stdout.isatty():
        print(title)
        for name, verdict in diagnosis.systems().items():
            print(f"system\t{name}\t{verdict}")
        print("reason\ttitle\tverdict\tmeasured")
        for one in diagnosis.findings:
            print(f"{one.key}\t{one.title}\t{one.verdict}\t{one.measured}")
        print("\n".join(lines))
        return
    console = Console(highlight=False)
    marked = [f"[{colour}]{mark}{{}}[/]" for mark, colour in map(str.split, MARKS.values())]
    marks = dict(zip(MARKS, marked, strict=True))
    console.print(f"[bold]{title}[/]")
    console.print(*(marks[verdict].format(name) for name, verdict in diagnosis.systems().items()))
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False, expand=True)
    for ratio in (None, None, None, 1):
        table.add_column(ratio=ratio, no_wrap=True)
    for one in diagnosis.findings:
        table.add_row(marks[one.verdict].format(""), one.key, one.title, Text(one.measured))
    console.print(table, Text("\n".join(lines)))
