"""``league doctor``: finds out why an agent does not learn."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from league.console.options import Assignments, Heading
from league.console.output import folded, say
from league.errors import InvalidInput, NotFound, Unavailable
from league.runs.files import write_whole
from league.runs.finding import checked_run, newest_run

if TYPE_CHECKING:
    from learner.doctor.findings import Finding

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command()
def doctor(
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings to examine (without a run: laptop, or board for games of choices)."
        ),
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
        typer.Option(
            metavar="DIR",
            help="A run: its settings, weights and files (default: the newest in runs/).",
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="The run's learner.")] = "main",
    emergency: Annotated[
        bool, typer.Option("--emergency", help="Train the minimal agent too: a minute more.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything to FILE too.")
    ] = None,
) -> int:
    """Finds out why an agent does not learn: measures game, rewards, network and updates.

    It examines a run, or the settings that --preset, --config, --game and --set name.
    The exit status is 1 when a check failed.
    """
    if not (preset or config or game or assignments):
        with suppress(NotFound):  # before the first run, the default settings are examined
            run_dir = run_dir or newest_run()
    elif run_dir is not None:
        raise InvalidInput(
            "--run-dir has its own settings: leave out --preset, --config, --game and --set"
        )

    from league.settings.base import resolve
    from learner.doctor.findings import FAILS, Diagnosis, judged, ordered
    from learner.doctor.game import GameFails, examine_game
    from learner.doctor.run import judge_run, read_run
    from learner.doctor.setup import set_up_of
    from learner.doctor.training import OF_WEIGHTS, examine_training, train_minimal_agent

    started = time.monotonic()
    findings: list[Finding] = []
    curve: tuple[float, ...] = ()
    too_early, updates = "", 0
    if run_dir is not None:
        evidence = read_run(checked_run(run_dir), name)
        findings += judge_run(evidence)
        set_up, too_early, updates = evidence.set_up, evidence.too_early, evidence.updates
        subject = f"{run_dir.name} at step {evidence.step:,}"
    else:
        preset, flags = _named(preset, config, game)
        set_up = set_up_of(resolve(preset, config, [*flags, *(assignments or [])]))
        subject = f"{set_up.spec.name}, {config or f'preset {preset}'}"

    def of_newest(measured: list[Finding]) -> list[Finding]:
        """Dates to the newest update whatever depends on its weights."""
        return [replace(one, since=updates) if one.key in OF_WEIGHTS else one for one in measured]

    say(f"playing {set_up.spec.name}, then training for a few updates")
    try:
        findings += [*examine_game(set_up), *of_newest(examine_training(set_up))]
        if emergency:
            say("training the minimal agent")
            finding, curve = train_minimal_agent(set_up)
            findings += of_newest([finding])
    except (GameFails, Unavailable) as error:
        fix = "let the game play every match to its end, without a failure: the reason says more"
        findings = [judged(FAILS, str(error), failure=True, fix=fix)]
    seconds = round(time.monotonic() - started, 1)
    diagnosis = Diagnosis(subject, seconds, ordered(findings), curve, too_early)
    if json_file is not None:
        write_whole(json_file, json.dumps(diagnosis.to_json(), indent=1) + "\n")
    for line in diagnosis.lines():
        print(folded(line, indent=4))
    return int(diagnosis.verdict == "failure")


def _named(
    preset: str | None, config: Path | None, game: str | None
) -> tuple[str | None, list[str]]:
    """Returns the preset and the assignments (`SECTION.KEY=VALUE`) from which the settings are
    made.

    If neither a preset nor a file is named, a game whose actions are choices gets the preset
    `board`. Any other game except `brawl` then gets dense rewards.
    """
    from league.games.base import CHOICE
    from league.games.registry import game_spec
    from league.settings.base import DEFAULT_PRESET

    flags = []
    if game:
        flags.append(f"game.name={json.dumps(game)}")
        if preset is None and config is None:
            if game_spec(game).action_kind == CHOICE:
                preset = "board"
            elif game != "brawl":
                flags.append("game.reward=dense")
    return preset or DEFAULT_PRESET, flags
