"""Reads presets and settings files. A file is TOML with a table for each section, laid over the
preset that the file extends.

A preset is a file ``presets/NAME.toml`` in a package that owns a section. Several packages may each
have a part of the same preset. `league.settings.base` checks the values.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from league.entry_points import entry_points
from league.errors import ConfigError, nearest

GROUP = "kumite.settings"
"""Group of entry points under which packages register the settings classes of their sections."""
SWEEP = "sweep"
"""Section with the search space of ``bin/league sweep``. It is no setting."""
Tables = dict[str, dict[str, Any]]
"""Sections of plain values before they are checked."""


class Content(NamedTuple):
    """A TOML file's content: the preset that it extends (or None) and its sections."""

    extends: str | None
    sections: Tables


def section_classes() -> dict[str, Any]:
    """Returns the settings class of each registered section, by section name."""
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return {point.name: point.load() for point in points}


def preset_names() -> list[str]:
    """Returns the names of the presets. Files that begin with ``_`` are shared parts of presets."""
    names = {file.name[:-5] for folder in _folders() for file in folder.iterdir()}
    return sorted(name for name in names if name[0] != "_")


def load_preset(name: str, above: tuple[str, ...] = ()) -> Tables:
    """Loads a preset over the presets that it extends. `above` has the presets whose loading led to
    this preset, so that a cycle is found.

    Raises:
        ConfigError: the name is unknown, presets extend each other in a cycle, or a file is not
            valid TOML.
    """
    if name in above:
        raise ConfigError(
            f"preset {name!r} extends itself ({' -> '.join((*above, name))}): break the circle"
        )
    files = [file for folder in _folders() if (file := folder / f"{name}.toml").is_file()]
    if not files:
        raise ConfigError(f"there is no preset {name!r}: {known_near(name, preset_names())}")
    contents = [read_tables(file) for file in files]
    tables: Tables = {}
    for base in dict.fromkeys(content.extends for content in contents if content.extends):
        merge(tables, load_preset(base, (*above, name)))
    for content in contents:
        merge(tables, content.sections)
    return tables


def _folders() -> list[Any]:
    packages = {point.module.rpartition(".")[0] for point in entry_points(group=GROUP)}
    folders = [importlib.resources.files(package) / "presets" for package in sorted(packages)]
    return [folder for folder in folders if folder.is_dir()]


def read_toml(path: Any) -> dict[str, Any]:
    """Returns the content of a TOML file or of a package's resource. A file that can't be read or
    is not valid TOML raises `ConfigError`.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"there is no settings file {path}: check the path") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror}): name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def read_tables(path: Any) -> Content:
    """Returns a settings file's ``extends`` and sections, without a sweep's search space. Raises
    `ConfigError` like `read_toml`.
    """
    content = read_toml(path)
    content.pop(SWEEP, None)
    extends = content.pop("extends", None)
    for section, values in content.items():
        if not isinstance(values, Mapping):
            raise ConfigError(f"{path}: {section!r} stands outside any [section]")
    return Content(extends, content)


def merge(below: Tables, above: Tables) -> None:
    """Lays `above` over `below`, in place.

    Usually a table in `above` replaces the whole table in `below` (such as ``reward_weights``). Two
    kinds of tables are merged instead, so that entries which only `below` has are kept: tables of
    tables (such as ``[matchmaker.mixes]``), and settings whose type is a settings class.
    """
    classes = section_classes()
    for section, values in above.items():
        fields = classes[section].model_fields if section in classes else {}
        own = below.setdefault(section, {})
        for key, value in values.items():
            if isinstance(value, Mapping) and isinstance(own.get(key), Mapping):
                annotation = fields[key].annotation if key in fields else None
                is_settings = isinstance(annotation, type) and issubclass(annotation, BaseModel)
                if is_settings or all(isinstance(entry, Mapping) for entry in value.values()):
                    value = {**own[key], **value}
            own[key] = value


def known_near(word: str, known: Iterable[str]) -> str:
    """Returns a question with the known name that is most like `word`, or else lists all names."""
    known = sorted(known)
    return nearest(word, known) or f"known are {', '.join(known)}"
