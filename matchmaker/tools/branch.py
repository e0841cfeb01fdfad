"""Makes a run that continues from another run's newest checkpoint with other settings."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from league.errors import AlreadyExists, InvalidInput
from league.runs import finding
from league.runs.files import read_json, write_whole
from league.runs.folder import write_config
from league.settings.base import lay_over, resolve
from matchmaker.store import copies

FOLDERS = ("learner-*", "evaluator", "exploits", "replays")


def branch(source: Path, target: Path, assignments: Sequence[str]) -> int:
    """Copies a run's log, weights, checkpoints and tables to a new folder with other settings. The
    run may continue meanwhile.

    Args:
        source: the run.
        target: the new run's folder, which must not exist.
        assignments: settings that differ, as `SECTION.KEY=VALUE`.

    Returns:
        The position of the newest result in the new run's log.

    Raises:
        AlreadyExists: `target` exists.
        InvalidInput: the settings name another game or another agent.
        ConfigError: a setting can't be used.
    """
    database = finding.database_of(finding.checked_run(source))
    saved = resolve(file=source / "config.toml", environment={})
    sections = lay_over(saved, None, assignments)
    if sections["game"]["name"] != saved["game"]["name"] or sections["agent"] != saved["agent"]:
        raise InvalidInput(
            "a branch keeps the game and the agent of its run, because its checkpoint continues: "
            "for others start a new run (bin/start-league --from)"
        )
    if sections["cluster"]["store"] and sections["cluster"] == saved["cluster"]:
        raise InvalidInput(
            f"a branch shares no store with its run: give it a prefix of its own, by --set "
            f'cluster.store=ADDRESS, or "" for none (its run has {saved["cluster"]["store"]})'
        )
    if target.exists():
        raise AlreadyExists(f"{target} is there already: name a new folder")
    target.mkdir(mode=0o700, parents=True)
    try:
        # The log is copied after the checkpoints, so that it has their matches. Weights are copied
        # last, because a snapshot's weights are stored before the log has the snapshot.
        for folder in (folder for pattern in FOLDERS for folder in source.glob(pattern)):
            shutil.copytree(folder, target / folder.name, symlinks=True, copy_function=_copy)
        results = copies.backup(database, target / finding.DATABASE)
        if (source / "blobs").is_dir():
            shutil.copytree(source / "blobs", target / "blobs", symlinks=True, copy_function=_link)
        (target / "logs").mkdir()
        write_config(target / "config.toml", sections)
        origin = {"run": str(source), "results": results, "settings": list(assignments)}
        run = read_json(source / "run.json") | {"created_at": time.time(), "branch_of": origin}
        write_whole(target / "run.json", json.dumps(run, indent=1) + "\n")  # makes it a run
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return results


def _copy(source: str, target: str) -> None:
    with suppress(FileNotFoundError):  # the learner has just removed an old checkpoint
        shutil.copy2(source, target)


def _link(source: str, target: str) -> None:
    """Links a file of weights, which never changes. On another disk, where a hard link is not
    possible, the file is copied.
    """
    try:
        os.link(source, target)
    except OSError:
        _copy(source, target)
