"""Finds replays: a file, or a match of a run by its id."""

from __future__ import annotations

import argparse
from pathlib import Path

from league.cli import connect
from league.errors import InvalidInput, NotFound
from league.replay import SUFFIX, Replay, load_replay

FOLDER = "replays"
"""In a run's folder; the evaluator fills it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flag that names a run; without it, the newest folder under runs/ is meant."""
    parser.add_argument(
        "--run-dir",
        type=Path,
        metavar="DIR",
        help="the run that the match is of (default: the newest in runs/)",
    )


def find(args: argparse.Namespace, word: str) -> Replay:
    """The replay that `word` names: a file, or the beginning of a match id."""
    if word.endswith(SUFFIX) or Path(word).is_file():
        return load_replay(Path(word))
    if not word.isalnum():
        raise NotFound(f"there is no file {word}, and no match has such an id: check the path")
    folder = _folder(args)
    found = sorted(folder.glob(f"{word}*{SUFFIX}"))
    if not found:
        raise NotFound(
            f"there is no replay of match {word} in {folder}: of each gauntlet the first match and the first "
            "loss against each opponent are kept, the newest evaluator.replays_kept of them; "
            "bin/league replay lists them"
        )
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} replays begin with {word}: give more of the match id")
    return load_replay(found[0])


def listed(args: argparse.Namespace) -> list[Path]:
    """The run's replays, the oldest first."""
    return sorted(
        _folder(args).glob(f"*{SUFFIX}"), key=lambda path: (path.stat().st_mtime, path.name)
    )


def _folder(args: argparse.Namespace) -> Path:
    return connect.run_folder(args) / FOLDER
