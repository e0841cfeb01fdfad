"""The command line of ``bin/start-league``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from league.cluster.topology import LearnerOptions
from league.errors import ConfigError
from league.runs.folder import Request
from league.settings.device_flags import DeviceFlags, add_device_flags

_DESCRIPTION = """\
Trains a league: a matchmaker, a learner and an evaluator, in one terminal view. Without arguments it runs
the preset "laptop" in a new folder runs/laptop-N until its steps are done. Ctrl-C saves and stops; the same
command with --run-dir goes on where it stopped."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """What was asked on the command line."""

    request: Request
    learner: LearnerOptions
    headless: bool


class _Parser(argparse.ArgumentParser):
    """Reports a wrong flag as every other wrong input: one sentence."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}: see bin/start-league --help")


def parse(arguments: Sequence[str] | None = None) -> Command:
    """Raises `ConfigError` for flags that can't be used."""
    flags = _parser().parse_args(arguments)
    return Command(
        request=Request(
            preset=flags.preset,
            config=flags.config,
            assignments=tuple(flags.assignments),
            run_dir=flags.run_dir,
        ),
        learner=LearnerOptions(
            steps=flags.steps,
            device=DeviceFlags.of(flags),
            origin=flags.origin,
            weights_only=flags.weights_only,
        ),
        headless=flags.headless,
    )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bin/start-league",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--preset", metavar="NAME", help="settings to run with (default: laptop)")
    add("--config", type=Path, metavar="FILE", help="TOML file laid over the preset")
    add(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="S.K=V",
        help="one setting; repeatable",
    )
    add(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help="folder of the run; goes on with it if there is one",
    )
    add(
        "--steps",
        type=_positive,
        metavar="N",
        help="train until this many steps, instead of the preset's",
    )
    add_device_flags(parser)
    add("--headless", action="store_true", help="plain lines instead of the terminal view")
    add(
        "--from",
        dest="origin",
        metavar="X",
        help="start from a snapshot (a player's name or a file) or a checkpoint's file; steps begin at 0",
    )
    add(
        "--weights-only",
        action="store_true",
        help="with --from a checkpoint: take its weights alone, not its optimizer and return scale",
    )
    return parser


def _positive(text: str) -> int:
    number = _number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _number(text: str) -> int:
    digits = text.replace("_", "").replace(",", "")
    if not digits.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(digits)
