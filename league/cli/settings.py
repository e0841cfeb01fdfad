"""``league config``: settings files and presets."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli.output import say
from league.errors import AlreadyExists
from league.settings.base import resolve
from league.settings.file import HEADING, dump_toml, write_config
from league.settings.presets import preset_names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    write = actions.add_parser("write", help="write a commented settings file to edit")
    write.add_argument("file", metavar="FILE", help="the file to write; - prints it")
    write.add_argument(
        "--preset", help="start from this preset (default: the classes' own defaults)"
    )
    write.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="start from this settings file"
    )
    write.add_argument(
        "--set", dest="assignments", action="append", default=[], metavar="SECTION.KEY=VALUE"
    )
    write.add_argument("--force", action="store_true", help="write over a file that exists")
    write.set_defaults(action=_write)
    actions.add_parser("presets", help="list the presets").set_defaults(action=_presets)


def run(args: argparse.Namespace) -> int:
    status: int = args.action(args)
    return status


def _write(args: argparse.Namespace) -> int:
    sections = resolve(args.preset, args.source, args.assignments, environment={})
    origin = f"preset {args.preset}" if args.preset else str(args.source or "the defaults")
    heading = f"{HEADING}The values are those of {origin}.\n"
    if args.file == "-":
        print(dump_toml(sections, heading), end="")
        return 0
    path = Path(args.file)
    if path.exists() and not args.force:
        raise AlreadyExists(
            f"{path} exists already: name another file, or add --force to write over it"
        )
    write_config(path, sections, heading)
    say(f"{path} holds {origin}: edit it, then bin/start-league --config {path}")
    return 0


def _presets(args: argparse.Namespace) -> int:
    print("\n".join(preset_names()))
    return 0
