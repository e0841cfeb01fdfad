"""Settings: frozen models beside their owners, presets in TOML, one resolved file in each run folder.

Every package registers its settings class under the entry point group ``kumite.settings``; the entry
point's name is the section. Precedence: class defaults < preset < file < environment
(``KUMITE_LEARNER__LEARNING_RATE=1e-3``) < ``--set learner.learning_rate=1e-3``.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.resources
import json
import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from league.errors import ConfigError

GROUP = "kumite.settings"
ENVIRONMENT_PREFIX = "KUMITE_"
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Base of all settings: frozen, unknown keys refused, each field's docstring is its help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


Sections = dict[str, dict[str, Any]]


def section_classes() -> dict[str, type[Settings]]:
    """Every registered section's class, by section name."""
    return {point.name: point.load() for point in sorted(entry_points(group=GROUP), key=lambda p: p.name)}


def _owners() -> dict[str, str]:
    """Top-level package that owns each section (without importing the section's module)."""
    return {point.name: point.value.split(":")[0].rsplit(".", 1)[0] for point in entry_points(group=GROUP)}


def _preset_files(name: str) -> list[Any]:
    files = []
    for package in sorted(set(_owners().values())):
        file = importlib.resources.files(package) / "presets" / f"{name}.toml"
        if file.is_file():
            files.append(file)
    return files


def preset_names() -> list[str]:
    """Presets that can be named; files that begin with ``_`` are shared parts of others."""
    names: set[str] = set()
    for package in set(_owners().values()):
        folder = importlib.resources.files(package) / "presets"
        if folder.is_dir():
            names |= {f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml") and f.name[0] != "_"}
    return sorted(names)


def _merge(into: Sections, more: Mapping[str, Any], source: str) -> None:
    for section, values in more.items():
        if not isinstance(values, Mapping):
            raise ConfigError(f"{source}: {section!r} stands outside any [section]")
        into.setdefault(section, {}).update(values)


def _nearest(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"


def load_preset(name: str) -> Sections:
    """The sections of a preset. A file's top-level ``extends = "other"`` is laid under it."""
    files = _preset_files(name)
    if not files:
        raise ConfigError(f"there is no preset {name!r}: {_nearest(name, preset_names())}")
    sections: Sections = {}
    for file in files:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        base = content.pop("extends", None)
        if base is not None:
            _merge(sections, load_preset(base), f"preset {base}")
    for file in files:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        content.pop("extends", None)
        _merge(sections, content, f"preset {name}")
    return sections


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no settings file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _typed(text: str) -> Any:
    """Reads a flag's or variable's value as TOML, and as plain text when it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _overrides(assignments: Iterable[str], environment: Mapping[str, str]) -> Sections:
    sections: Sections = {}
    for variable, text in sorted(environment.items()):
        if variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable:
            section, key = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__", 1)
            sections.setdefault(section, {})[key] = _typed(text)
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        section, dot, key = path.strip().partition(".")
        if not equals or not dot or not key:
            raise ConfigError(f"--set {assignment!r} can't be read: write --set section.key=value")
        sections.setdefault(section, {})[key] = _typed(text)
    return sections


def _describe(error: ValidationError, section: str, cls: type[Settings]) -> str:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"[{section}] has no setting {place!r}: {_nearest(place, cls.model_fields)}"
    return f"[{section}] {place} = {first.get('input')!r} can't be used: {first['msg']}"


def build(cls: type[S], section: str, values: Mapping[str, Any]) -> S:
    """An instance from plain values; raises `ConfigError` in one sentence."""
    try:
        return cls.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_describe(error, section, cls)) from None


def resolve(
    preset: str | None = None,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """All sections, checked and complete, as plain values (what `dump_toml` writes).

    A settings file may name its own ``extends = "laptop"``; `preset` is then not needed.
    """
    content = _read_file(file) if file is not None else {}
    base = content.pop("extends", None) or preset
    sections: Sections = load_preset(base) if base else {}
    _merge(sections, content, str(file))
    _merge(sections, _overrides(assignments, os.environ if environment is None else environment), "flags")
    classes = section_classes()
    for section in sections:
        if section not in classes:
            raise ConfigError(f"there is no section [{section}]: {_nearest(section, classes)}")
    return {
        name: build(cls, name, sections.get(name, {})).model_dump(mode="json")
        for name, cls in classes.items()
    }


def stated(
    file: Path | None = None, assignments: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a file, the environment (none by default) and flags say themselves, without defaults."""
    content = _read_file(file) if file is not None else {}
    _merge(content, _overrides(assignments, environment or {}), "flags")
    return content


def load_section(cls: type[S], section: str, path: Path) -> S:
    """One section of a resolved file (a service reads only its own)."""
    return build(cls, section, _read_file(path).get(section, {}))


def sections_hash(sections: Mapping[str, Any]) -> str:
    """Hash of settings, for snapshot cards: 16 hexadecimal digits."""
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
