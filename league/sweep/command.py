"""Defines ``league sweep``, which searches settings by whole small leagues."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from league.cluster.engine import EngineName
from league.console.options import Assignments, Heading
from league.console.output import print_table, say
from league.console.text import measured
from league.errors import ConfigError, InvalidInput, Refused
from league.games.settings import GameSettings
from league.runs.files import private_folder, read_json, write_whole
from league.runs.folder import locked
from league.runs.settings import SupervisorSettings
from league.settings.base import DEFAULT_PRESET, Sections, base_preset, resolve_run
from league.settings.file import dump_toml
from league.sweep import tune
from league.sweep.final import play_final
from league.sweep.results import ranked, rows_of, state_of, write_preset, write_results
from league.sweep.space import read_space, trials_of
from league.sweep.trial import RATING, Order, Rung, Trial, read_trial, write_trial

app = typer.Typer(rich_help_panel=Heading.TRAIN, add_completion=False)


@app.command()
def sweep(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Settings. Its section sweep says what to search."),
    ],
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The preset below FILE (default: laptop).")
    ] = None,
    assignments: Assignments = None,
    trials: Annotated[int, typer.Option(min=1, max=1000, help="Leagues to train.")] = 16,
    rungs: Annotated[
        int,
        typer.Option(
            min=1,
            max=8,
            help="Times that a trial is scored, each after three times as many steps. A third of "
            "the trials pass.",
        ),
    ] = 3,
    score: Annotated[
        str,
        typer.Option(
            metavar="rating|PLAYER", help="The field: every bot of the game, or one player."
        ),
    ] = "rating",
    average: Annotated[
        bool,
        typer.Option("--average", help="Score the later half of the snapshots, not the newest."),
    ] = False,
    matches: Annotated[
        int, typer.Option(min=2, max=100_000, help="Clean matches against each opponent.")
    ] = 400,
    final: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=1_000_000,
            help="Clean matches of each pair of the trials that reach the last rung. They rank "
            "these trials. 0: no final (default: as --matches, but 0 with a PLAYER as --score).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice of settings.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the sweep (default: sweeps/FILE's name)."),
    ] = None,
    cpus: Annotated[float, typer.Option(min=0.1, help="Cores that a trial takes.")] = 1.0,
    gpus: Annotated[float, typer.Option(min=0.0, help="GPUs that a trial takes.")] = 0.0,
    engine: Annotated[
        EngineName,
        typer.Option(help="local: this machine, or the cluster of RAY_ADDRESS. ray: only that."),
    ] = EngineName.LOCAL,
    preset_file: Annotated[
        Path | None,
        typer.Option("--write-preset", metavar="FILE", help="Write the best trial's settings."),
    ] = None,
) -> int:
    """Searches settings: trains small leagues and scores them by their own clean matches.

    The same command continues a sweep that was interrupted.
    """
    joins = bool(os.environ.get("RAY_ADDRESS"))
    if engine is EngineName.RAY and not joins:
        raise InvalidInput(
            "--engine ray joins the Ray cluster that RAY_ADDRESS names: set it to HOST:PORT"
        )
    space = read_space(file)
    sections = resolve_run(None, preset, file, assignments or ())
    chosen = trials_of(space, sections, trials, seed, str(file))
    order = _order(sections, out or Path("sweeps") / file.stem, rungs, score, average, matches)
    final = _final(final, order, chosen[0])
    tune.check_installed()
    base = base_preset(file) or preset or DEFAULT_PRESET
    with _folder(order, sections, base, {"trials": chosen}):

        def records() -> list[Trial]:
            return [read_trial(order.folder, at, one) for at, one in enumerate(chosen)]

        try:
            if any(state_of(order, one) in ("open", "failed") for one in records()):
                _train(order, records, tune.Resources(cpus=cpus, gpus=gpus, join=joins))
            ended = records()
            if final:
                write_results(order, ended)  # the final may take long, or fail
                ended = play_final(order, sections.of(GameSettings), ended, final, say)
        except KeyboardInterrupt:
            say(f"interrupted: the same command continues the sweep in {order.folder}")
            raise
        best = _show(order, ended)
        if preset_file is not None:
            write_preset(preset_file, best, sections, base)
            words = shlex.join(["bin/start-league", "--config", str(preset_file)])
            say(f"written: {preset_file} ({words})")
    return 0


def _order(
    sections: Sections, folder: Path, rungs: int, score: str, average: bool, matches: int
) -> Order:
    """Returns how trials are played. Raises `ConfigError` if their leagues could not be scored."""
    settings, steps = sections.of(SupervisorSettings), sections["learner"]["steps"]
    mains = [entry.name for entry in settings.learners if entry.role == "main"]
    if not mains or not settings.evaluators:
        raise ConfigError(
            "a sweep scores the first main by matches that the evaluator plays: give "
            "[supervisor] a learner and evaluators = 1"
        )
    first = max(1, steps // tune.REDUCTION ** (rungs - 1))
    return Order(
        folder=folder.absolute(),
        main=mains[0],
        rungs=(*(first * tune.REDUCTION**at for at in range(rungs - 1)), steps),
        score=score,
        average=average,
        matches=matches + matches % 2,
    )


def _final(asked: int | None, order: Order, searched: Collection[str]) -> int:
    """Returns how many matches each pair plays in the final, or 0 for no final. Raises
    `InvalidInput` if a final was asked of trials that play different games.
    """
    games = [
        name for name in searched if name.startswith("game.") and not name.startswith("game.reward")
    ]
    if asked and games:
        raise InvalidInput(
            f"the trials can't meet in a final, because {games[0]} makes their games differ: leave "
            "out --final"
        )
    if asked is None:
        return 0 if games or order.score != RATING else order.matches
    return asked + asked % 2


@contextmanager
def _folder(
    order: Order, sections: Sections, base: str, request: Mapping[str, Any]
) -> Iterator[None]:
    """Makes the sweep's folder, or continues the sweep in it, and locks it during the block.

    Raises:
        ConfigError: the sweep in the folder was made with other settings or flags.
        Refused: another command runs the sweep.
    """
    private_folder(order.folder)
    flags = {name: value for name, value in asdict(order).items() if name != "folder"}
    asked = json.loads(json.dumps({"settings": sections, **flags, **request}))
    try:
        lock = locked(order.folder)
    except Refused:
        raise Refused(f"another command runs the sweep in {order.folder}: stop it first") from None
    with lock:
        file = order.folder / "sweep.json"
        if noted := read_json(file):
            other = next((name for name in asked if noted.get(name) != asked[name]), "")
            if other:
                raise ConfigError(
                    f"the sweep in {order.folder} was made with other {other}: repeat its command "
                    "to continue it, or name another folder with --out"
                )
        else:
            text = f"extends = {json.dumps(base)}\n\n{dump_toml(sections)}"
            write_whole(order.config, text)
            write_whole(file, json.dumps(asked, indent=1) + "\n")
        yield


def _train(order: Order, records: Callable[[], list[Trial]], resources: tune.Resources) -> None:
    """Plays the trials that are not done, and keeps the sweep's files up to date."""

    def on_rung(number: int, rung: Rung) -> None:
        say(f"trial {number}: {rung.steps:,} steps, {measured(rung.score)} {rung.unit}")
        write_results(order, records())

    def on_end(number: int) -> None:
        trial = records()[number]
        if state_of(order, trial) == "open":
            write_trial(order.folder, replace(trial, stopped=True))

    trials = [replace(trial, fault="") for trial in records()]  # failed trials are tried again
    say(f"({len(trials)} trials of up to {order.rungs[-1]:,} steps in {order.folder})")
    tune.run(order, trials, resources, on_rung, on_end)


def _show(order: Order, trials: Sequence[Trial]) -> Trial:
    """Prints the trials, the best first, and returns the best.

    Raises:
        Refused: no trial has a score.
    """
    files = write_results(order, trials)
    best = ranked(trials)[0]
    if best.last is None:
        faults = [trial.fault for trial in trials if trial.fault]
        raise Refused(f"no trial was scored: {(faults or ['read the logs'])[0]} ({order.folder})")
    final = ["final", "final_low", "final_high"] if best.final else []
    names = ["steps", *final, "score", "low", "high", *best.settings]
    print_table(
        f"Sweep {order.folder.name}",
        ["trial#", "state", *(f"{name}#" for name in names)],
        [[str(row[name]) for name in ("trial", "state", *names)] for row in rows_of(order, trials)],
        caption=f"score{' and final' if final else ''}: {best.last.unit}, with the 95 % interval",
        spared="final_low final_high low high",
    )
    say(f"written: {' and '.join(map(str, files))}")
    return best
