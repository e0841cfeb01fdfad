"""The folder of one run: made or opened, locked against a second supervisor, resumed unchanged."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from league.errors import ConfigError, Refused, VersionMismatch
from league.runs.files import read_json, write_whole
from league.runs.settings import SupervisorSettings
from league.settings import base as config
from league.settings.file import write_config

FORMAT = 1
DEFAULT_PRESET = "laptop"
RUNS = Path("runs")
DATABASE = "league.db"
CURVES = "training_curves.png"
# what a start that broke off may have left
_OURS = {"lock", "logs", "config.toml", "ports.json", "tokens"}
_ALL_OURS = (
    "run.json",
    *sorted(_OURS),
    "matchmaker.json",
    "evaluator.json",
    "blobs",
    "replays",
    "turns",
    "evaluator",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The command line's part of a run's settings."""

    preset: str | None = None
    config: Path | None = None
    assignments: tuple[str, ...] = ()
    run_dir: Path | None = None


class RunFolder:
    """An opened and locked run. Use it as a context manager."""

    def __init__(
        self, path: Path, *, preset: str, resumed: bool, lock: IO[str], made: bool = False
    ) -> None:
        self.path = path
        self.preset = preset
        self.resumed = resumed
        self._made = made  # the folder itself, not only what lies in it
        self._lock = lock

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def database(self) -> Path:
        return self.path / DATABASE

    def log(self, process: str) -> Path:
        return self.path / "logs" / f"{process}.log"

    def port(self, service: str) -> int:
        """The service's port: that of its last start while it is free, else a new one."""
        file = self.path / "ports.json"
        ports: dict[str, int] = read_json(file)
        if service not in ports or not _is_free(ports[service]):
            ports[service] = _free_port(set(ports.values()))
            _write_json(file, ports)
        return ports[service]

    def announce(self, service: str, address: str, pid: int) -> None:
        """Writes down where the service runs, for `bin/league --run-dir`."""
        _write_json(self.path / f"{service}.json", {"address": address, "pid": pid})

    def withdraw(self, service: str) -> None:
        """Forgets the address of a service that has stopped."""
        (self.path / f"{service}.json").unlink(missing_ok=True)

    def discard(self) -> None:
        """Removes a new run that never began, so that a later start does not continue it."""
        ours = [self.path / name for name in _ALL_OURS]
        for pattern in (f"{DATABASE}*", "learner-*"):
            ours += self.path.glob(pattern)
        for entry in ours:
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if self._made:
            with contextlib.suppress(OSError):  # it holds a file of the user
                self.path.rmdir()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def open_run(request: Request) -> RunFolder:
    """Opens the run that `request` names, or makes one.

    Raises `ConfigError` for settings that can't be used or contradict the run's own,
    `VersionMismatch` for another format, `Refused` when another supervisor has the folder.
    """
    preset = _preset_of(request)
    if request.run_dir is not None and (request.run_dir / "run.json").exists():
        return _resume(request.run_dir, request, preset)
    sections = config.resolve(preset or DEFAULT_PRESET, request.config, request.assignments)
    _check_learners(sections)
    made = request.run_dir is None or not request.run_dir.exists()
    path = request.run_dir or _next_folder(preset or DEFAULT_PRESET)
    return _create(path, preset or DEFAULT_PRESET, sections, made=made)


def _check_learners(sections: config.Sections) -> None:
    """Raises `ConfigError` now for settings that would stop a learner's process later."""
    settings = sections.of(SupervisorSettings)
    if not settings.evaluators and sections["matchmaker"]["admit"] == "gate":
        raise ConfigError(
            'snapshots\' gates (matchmaker.admit = "gate") are played by the evaluator: set '
            "supervisor.evaluators = 1"
        )
    for entry in settings.learners:
        try:
            config.lay_over(sections, None, entry.set)
        except ConfigError as error:
            raise ConfigError(f"learner {entry.name} of [[supervisor.learners]]: {error}") from None


def _preset_of(request: Request) -> str | None:
    """The preset asked for by flag or by the settings file's `extends`, which must not disagree."""
    named = config.base_preset(request.config)
    if named and request.preset and named != request.preset:
        raise ConfigError(
            f"{request.config} extends preset {named!r}, but --preset says {request.preset!r}: leave one out"
        )
    return request.preset or named


def _create(path: Path, preset: str, sections: config.Sections, *, made: bool) -> RunFolder:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "a file has that name" if isinstance(error, FileExistsError) else error.strerror
        raise ConfigError(
            f"{path} can't be made a run folder ({reason}): choose another --run-dir"
        ) from None
    strangers = sorted(
        entry.name for entry in path.iterdir() if entry.name not in _OURS and entry.name[0] != "."
    )
    if strangers:
        raise ConfigError(
            f"{path} holds {strangers[0]!r} but no run.json, so it is no run folder: choose another --run-dir"
        )
    lock = _locked(path)
    (path / "logs").mkdir(exist_ok=True)
    write_config(path / "config.toml", sections)
    run = {
        "format": FORMAT,
        "version": version("kumite"),
        "game": sections["game"]["name"],
        "preset": preset,
        "created_at": time.time(),
    }
    _write_json(path / "run.json", run)  # last: with it the folder counts as a run
    return RunFolder(path, preset=preset, resumed=False, lock=lock, made=made)


def _resume(path: Path, request: Request, preset: str | None) -> RunFolder:
    run = read_json(path / "run.json")
    if run.get("format") != FORMAT:
        raise VersionMismatch(
            f"{path} has run format {run.get('format')} (made by Kumite {run.get('version', 'unknown')}), "
            f"this Kumite {version('kumite')} knows format {FORMAT}: use that version, or another --run-dir"
        )
    if preset and preset != run["preset"]:
        raise ConfigError(
            f"{path} was made with preset {run['preset']!r}, not {preset!r}: "
            f"leave --preset out to continue it, or start another run with another --run-dir"
        )
    _refuse_contradictions(path, request)
    return RunFolder(path, preset=run["preset"], resumed=True, lock=_locked(path))


def _refuse_contradictions(path: Path, request: Request) -> None:
    """Settings stated now must be those that the run was made with."""
    own = config.resolve(file=path / "config.toml", environment={})
    asked = config.lay_over(own, request.config, request.assignments, os.environ)
    for section, values in asked.items():
        for key, value in values.items():
            if value != own[section][key]:
                raise ConfigError(
                    f"{path} was made with {section}.{key} = {own[section][key]!r}, not {value!r}: "
                    f"leave the setting out to continue it, or start another run with another --run-dir"
                )


def _next_folder(preset: str) -> Path:
    """A fresh runs/<preset>-<n>, n one above the highest there is."""
    RUNS.mkdir(exist_ok=True)
    pattern = re.compile(re.escape(preset) + r"-([0-9]+)")
    taken = [int(match[1]) for entry in RUNS.iterdir() if (match := pattern.fullmatch(entry.name))]
    number = max(taken, default=0) + 1
    while True:
        path = RUNS / f"{preset}-{number}"
        try:
            path.mkdir()
            return path
        except FileExistsError:  # another start has made it just now
            number += 1


def _locked(path: Path) -> IO[str]:
    """Takes the folder's lock, which the kernel frees at the end of this process."""
    file = (path / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise Refused(
            f"{path} is in use by another start-league (process {holder}): stop that one with Ctrl-C, "
            f"or choose another --run-dir"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
