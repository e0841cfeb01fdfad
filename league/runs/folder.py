"""Makes, opens, locks and resumes the folder of a run. A resumed run keeps its settings."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from league.errors import ConfigError, Refused, storage_fault
from league.runs.files import read_json, write_whole
from league.runs.finding import DATABASE, FORMAT, RUNS, WAITING, checked_run
from league.runs.settings import SupervisorSettings
from league.settings import base as config
from league.settings.file import HEADING, dump_toml
from league.settings.presets import Tables, load_preset, merge, read_tables

_OURS = {"lock", "logs", "config.toml", "ports.json", "tokens"}
"""Names that may be in the folder of a run whose earlier start failed."""
_MOVABLE = ("cluster", "security")
"""Sections that say where and how processes run. A start that continues a run may change them."""


def write_config(path: Path, sections: Tables, heading: str = HEADING) -> None:
    """Writes resolved sections as commented TOML under `heading`. The file is written as a whole or
    not at all.

    Raises:
        InvalidInput: the file can't be made there.
        StorageFull: no space is left.
    """
    write_whole(path, dump_toml(sections, heading))


@dataclass(frozen=True, kw_only=True)
class Request:
    """Keeps the flags of the command line that choose a run and its settings."""

    preset: str | None = None
    config: Path | None = None
    assignments: tuple[str, ...] = ()
    run_dir: Path | None = None


class RunFolder:
    """Represents a run that is open and locked. Use it as a context manager."""

    def __init__(
        self,
        path: Path,
        *,
        preset: str,
        resumed: bool,
        lock: IO[str],
        earlier: frozenset[str],
        user_config: bytes | None = None,
    ) -> None:
        self.path = path
        self.preset = preset
        self.resumed = resumed
        self._earlier = earlier  # names of earlier files in the folder
        self._user_config = user_config  # the user's own config.toml in a new folder
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
        """Returns a port for the service: the port of its last start if free, or a new port."""
        file = self.path / "ports.json"
        ports: dict[str, int] = read_json(file)
        configured = ports.pop(service, 0)
        port = _bindable(configured)
        while not port or port in ports.values():
            port = _bindable(0)
        if port != configured:
            _write_json(file, {**ports, service: port})
        return port

    def announce(self, service: str, address: str, pid: int) -> None:
        """Writes down where the service runs, for `bin/league --run-dir`."""
        _write_json(self.path / f"{service}.json", {"address": address, "pid": pid})

    def tell_waiting(self, waiting: Mapping[str, tuple[str, float]]) -> None:
        """Writes down which workers do not run yet (`league.runs.finding.waiting_workers`)."""
        _write_json(self.path / f"{WAITING}.json", waiting)

    def withdraw(self, service: str) -> None:
        """Forgets the address of a service that has stopped, or the waiting workers."""
        (self.path / f"{service}.json").unlink(missing_ok=True)

    def discard(self) -> None:
        """Removes a new run that never began, so that a later start does not continue it."""
        for entry in self.path.iterdir():
            if entry.is_dir() and entry.name not in self._earlier:
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name not in self._earlier:
                entry.unlink(missing_ok=True)
        if self._user_config is not None:
            self.config.write_bytes(self._user_config)
        with contextlib.suppress(OSError):  # it still has other files
            self.path.rmdir()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def open_run(request: Request) -> RunFolder:
    """Opens the run that `request` names, or makes a run.

    If the folder of a new run already contains a config.toml, the user wrote it. Its settings
    override the preset's.

    Raises:
        ConfigError: the folder can't be made or written, or settings can't be used or contradict
            the run's own.
        VersionMismatch: the run has another format.
        Refused: another supervisor has the folder.
    """
    try:
        return _opened(request)
    except OSError as error:
        if storage_fault(error) is not None:
            raise
        reason = "a file has that name" if isinstance(error, FileExistsError) else error.strerror
        raise ConfigError(
            f"{request.run_dir or RUNS} can't be made a run folder ({reason}): choose another "
            "--run-dir"
        ) from None


def _opened(request: Request) -> RunFolder:
    if request.run_dir is not None and (request.run_dir / "run.json").exists():
        return _resume(request.run_dir, request, _preset_of(request))
    file = request.run_dir and request.run_dir / "config.toml"
    config_file = file if file and file.exists() else None
    preset = _preset_of(request, config_file) or config.DEFAULT_PRESET
    below, stated = load_preset(preset), read_tables(config_file).sections if config_file else {}
    alone = config.resolve(preset, config_file, environment={})
    merge(below, stated)
    sections = config.lay_over(below, request.config, request.assignments, os.environ)
    if fault := _contradiction(alone, sections, stated):
        raise ConfigError(
            f"{config_file} says {fault}: leave the setting out, or change it in the file"
        )
    _check_learners(sections)
    return _create(request.run_dir or _next_folder(preset), preset, sections)


def _check_learners(sections: config.Sections) -> None:
    """Raises `ConfigError` now for settings that would stop a learner's process later."""
    settings = sections.of(SupervisorSettings)
    if not settings.evaluators and sections["matchmaker"]["admit"] == "gate":
        raise ConfigError(
            'snapshots\' gates (matchmaker.admit = "gate") are played by the evaluator: set '
            "supervisor.evaluators = 1"
        )
    mains = dict[str, config.Sections]()
    for entry in settings.learners:
        try:
            own = config.lay_over(sections, None, entry.set)
        except ConfigError as error:
            raise ConfigError(f"learner {entry.name} of [[supervisor.learners]]: {error}") from None
        if entry.role == "main":
            mains[entry.name] = own
    if sections["matchmaker"]["population_interval"]:
        _check_population(mains)


def _check_population(mains: Mapping[str, Tables]) -> None:
    """Raises `ConfigError` for mains that can't copy each other's weights."""
    for (one, own), (other, theirs) in itertools.pairwise(mains.items()):
        if fault := _contradiction(own, theirs, {"agent": own["agent"], "game": ["frame_skip"]}):
            raise ConfigError(
                f"learners {one} and {other} of [[supervisor.learners]] can't copy each other, "
                f"because {one} has {fault}: with matchmaker.population_interval, all mains need "
                "the same [agent] and game.frame_skip"
            )


def _preset_of(request: Request, config_file: Path | None = None) -> str | None:
    """Returns the preset that the settings files extend or that the flag names. If several name a
    preset, they must agree.
    """
    preset: str | None = None
    source = ""
    files = [(str(file), config.base_preset(file)) for file in (config_file, request.config)]
    for other, named in (*files, ("--preset", request.preset)):
        if preset and named and named != preset:
            raise ConfigError(
                f"{source} extends preset {preset!r}, but {other} says {named!r}: leave one out"
            )
        preset, source = preset or named, source if preset else other
    return preset


def _create(path: Path, preset: str, sections: config.Sections) -> RunFolder:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    earlier = frozenset(entry.name for entry in path.iterdir())
    strangers = sorted(name for name in earlier - _OURS if not name.startswith("."))
    if strangers:
        raise ConfigError(
            f"{path} holds {strangers[0]!r} but no run.json, so it is no run folder: choose "
            "another --run-dir"
        )
    lock, file = locked(path), path / "config.toml"
    user_config = file.read_bytes() if file.name in earlier else None
    (path / "logs").mkdir(exist_ok=True)
    write_config(file, sections)
    run = {
        "format": FORMAT,
        "version": version("kumite"),
        "game": sections["game"]["name"],
        "preset": preset,
        "created_at": time.time(),
    }
    _write_json(path / "run.json", run)  # last, because this file makes the folder a run
    return RunFolder(
        path, preset=preset, resumed=False, lock=lock, earlier=earlier, user_config=user_config
    )


def _resume(path: Path, request: Request, preset: str | None) -> RunFolder:
    lock = locked(checked_run(path))  # before settings are read, which takes seconds
    try:
        return _resumed(path, request, preset, lock)
    except BaseException:
        lock.close()
        raise


def _resumed(path: Path, request: Request, preset: str | None, lock: IO[str]) -> RunFolder:
    run = read_json(path / "run.json")
    if preset and preset != run["preset"]:
        raise ConfigError(
            f"{path} was made with preset {run['preset']!r}, not {preset!r}: leave --preset out to "
            "continue it, or start another run with another --run-dir"
        )
    saved = config.resolve(file=path / "config.toml", environment={})
    asked = config.lay_over(saved, request.config, request.assignments, os.environ)
    fixed = {name: section for name, section in saved.items() if name not in _MOVABLE}
    if fault := _contradiction(saved, asked, fixed):
        raise ConfigError(
            f"{path} was made with {fault}: leave the setting out to continue it, or start another "
            "run with another --run-dir"
        )
    moved = {name: asked[name] for name in _MOVABLE}
    if any(saved[name] != section for name, section in moved.items()):
        write_config(path / "config.toml", {**saved, **moved})
    earlier = frozenset(entry.name for entry in path.iterdir())
    return RunFolder(path, preset=run["preset"], resumed=True, lock=lock, earlier=earlier)


def _contradiction(saved: Tables, asked: Tables, stated: Mapping[str, Collection[str]]) -> str:
    """Describes the first setting in `stated` whose value in `asked` differs from the value in
    `saved`. Returns "" if there is no such setting.
    """
    for section, keys in stated.items():
        for key in keys:
            if asked[section][key] != saved[section][key]:
                return f"{section}.{key} = {saved[section][key]!r}, not {asked[section][key]!r}"
    return ""


def _next_folder(preset: str) -> Path:
    """Makes a fresh folder runs/<preset>-<n>, where n is the highest used number plus 1."""
    RUNS.mkdir(exist_ok=True)
    pattern = re.compile(re.escape(preset) + r"-([0-9]+)")
    used = [int(match[1]) for entry in RUNS.iterdir() if (match := pattern.fullmatch(entry.name))]
    for number in itertools.count(max(used, default=0) + 1):
        path = RUNS / f"{preset}-{number}"
        with contextlib.suppress(FileExistsError):  # another start has made it just now
            path.mkdir(mode=0o700)
            break
    return path


def locked(path: Path) -> IO[str]:
    """Takes the folder's lock, which the kernel frees at the end of this process. Raises `Refused`
    if another supervisor holds it.
    """
    file = (path / "lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise Refused(
            f"{path} is in use by another start-league (process {holder}): stop that one with "
            "Ctrl-C, or choose another --run-dir"
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _bindable(port: int) -> int:
    """Returns `port` if it is free, else 0. For 0, returns a free port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])
