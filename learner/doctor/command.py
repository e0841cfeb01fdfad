"""``league doctor``: why does it not learn?"""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from league.cli.options import Assignments
from league.cli.output import say
from league.errors import InvalidInput
from league.games.base import CHOICE
from league.runs.files import write_whole
from league.runs.finding import checked_run
from league.settings.base import DEFAULT_PRESET, resolve

if TYPE_CHECKING:
    from learner.doctor.findings import Finding


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
    assignments: Assignments = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A run: its settings, weights and files."),
    ] = None,
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

    from learner.doctor.findings import REASONS, ordered, primary_causes, systems_of
    from learner.doctor.game import examine_game
    from learner.doctor.run import judge_run, read_run
    from learner.doctor.setup import set_up_of
    from learner.doctor.training import examine_training, train_minimal_agent

    started = time.monotonic()
    findings: list[Finding] = []
    curve: tuple[float, ...] = ()
    if run_dir is not None:
        evidence = read_run(checked_run(run_dir), name)
        findings += judge_run(evidence)
        set_up, subject = evidence.set_up, f"{run_dir.name} at step {evidence.step:,}"
    else:
        preset, flags = _named(preset, config, game)
        set_up = set_up_of(resolve(preset, config, [*flags, *(assignments or [])]))
        subject = f"{set_up.spec.name}, {config or f'preset {preset}'}"
    say(f"playing {set_up.spec.name}, then training for a few updates")
    findings += [*examine_game(set_up), *examine_training(set_up)]
    if emergency:
        say("training the minimal agent")
        finding, curve = train_minimal_agent(set_up)
        findings.append(finding)
    found = ordered(findings)
    causes = primary_causes(found)
    systems = systems_of(found)
    verdict = max(systems.values(), key=lambda one: one.severity)
    seconds = round(time.monotonic() - started, 1)
    told = {
        "subject": subject,
        "verdict": verdict,
        "seconds": seconds,
        "systems": systems,
        "causes": [
            {"reason": finding.key, "consequences": [one.key for one in consequences]}
            for finding, consequences in causes
        ],
        "findings": [
            {
                "reason": one.key,
                "title": one.title,
                "system": REASONS[one.key].system,
                "measured": one.measured,
                "verdict": one.verdict,
                "fix": one.fix,
            }
            for one in found
        ],
        "curve": curve,
    }
    if json_file is not None:
        write_whole(json_file, json.dumps(told, indent=1) + "\n")
    counts = Counter(one.verdict for one in found if one.is_bad)
    bad = [f"{n} {kind}{'s' * (n > 1)}" for kind, n in sorted(counts.items())]
    print(f"{subject}: {', '.join(bad) or 'healthy'} ({seconds:.0f} s)")
    print(", ".join(f"{name} {worst}" for name, worst in systems.items()))
    for one in found:
        print(f"{one.verdict:<8} {one.key:>2}  {one.title:<32} {one.measured}")
    if curve:
        parts = np.array_split(curve, min(8, len(curve)))
        said = " ".join(f"{part.mean():.3g}" for part in parts)
        print(f"minimal agent, reward of a match: {said}")
    for finding, consequences in causes:
        print(f"{finding.verdict}: {finding.title} ({finding.key})")
        print(f"  measured: {finding.measured}\n  fix: {finding.fix}")
        for one in consequences:
            print(f"  follows: {one.title} ({one.key})")
    return int(verdict == "failure")


def _named(
    preset: str | None, config: Path | None, game: str | None
) -> tuple[str | None, list[str]]:
    """Preset and flags that are meant; games of choices get the preset made for them."""
    from league.games.registry import game_spec

    flags = []
    if game:
        flags.append(f"game.name={json.dumps(game)}")
        if preset is None and config is None:
            if game_spec(game).action_kind == CHOICE:
                preset = "board"
            elif game != "brawl":
                flags.append("game.reward=dense")
    return preset or DEFAULT_PRESET, flags
