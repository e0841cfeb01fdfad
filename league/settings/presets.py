"""Presets and settings files: TOML of sections, each laid over the one that it extends.

A preset is a file ``presets/NAME.toml`` in a package that owns a section; several packages may each
have a part of it. Whether the values can be used is for `league.settings.base` to say.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from league.errors import ConfigError, nearest

GROUP = "kumite.settings"
"""Entry points under which packages register the settings classes of their sections."""
Sections = dict[str, dict[str, Any]]
Sources = dict[tuple[str, ...], str]
"""Where a section (SECTION,) or a setting (SECTION, KEY) was last given: a file, a variable, a
flag.
"""


def owners() -> dict[str, str]:
    """Top-level package that owns each section (without importing the section's module)."""
    return {
        point.name: point.value.split(":")[0].rsplit(".", 1)[0]
        for point in entry_points(group=GROUP)
    }


def _preset_files(name: str) -> list[Any]:
    files = []
    for package in sorted(set(owners().values())):
        file = importlib.resources.files(package) / "presets" / f"{name}.toml"
        if file.is_file():
            files.append(file)
    return files


def preset_names() -> list[str]:
    """Presets that can be named; files that begin with ``_`` are shared parts of others."""
    names: set[str] = set()
    for package in set(owners().values()):
        folder = importlib.resources.files(package) / "presets"
        if folder.is_dir():
            names |= {
                f.name[:-5]
                for f in folder.iterdir()
                if f.name.endswith(".toml") and f.name[0] != "_"
            }
    return sorted(names)


def load_preset(name: str) -> Sections:
    """The sections of a preset. A file's top-level ``extends = "other"`` is laid under it."""
    return _load_preset(name, ())


def _load_preset(name: str, above: tuple[str, ...]) -> Sections:
    if name in above:
        raise ConfigError(
            f"preset {name!r} extends itself ({' -> '.join((*above, name))}): break the circle"
        )
    files = _preset_files(name)
    if not files:
        raise ConfigError(f"there is no preset {name!r}: {known_near(name, preset_names())}")
    contents = [read_toml(file) for file in files]
    sections: Sections = {}
    for base in dict.fromkeys(
        content.pop("extends") for content in contents if "extends" in content
    ):
        merge(sections, _load_preset(base, (*above, name)), f"preset {base}")
    for content in contents:
        merge(sections, content, f"preset {name}")
    return sections


def read_toml(path: Any) -> dict[str, Any]:
    """A TOML file's content; `path` is a `Path` or a package's resource."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no settings file {path}: check the path") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read ({error.strerror}): name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def merge(
    into: Sections, more: Mapping[str, Any], source: str, sources: Sources | None = None
) -> None:
    """Lays `more`, which comes from `source`, over the sections `into`; notes in `sources` what
    it gives.
    """
    for section, values in more.items():
        if not isinstance(values, Mapping):
            raise ConfigError(f"{source}: {section!r} stands outside any [section]")
        below = into.setdefault(section, {})
        for key, value in values.items():
            below[key] = (
                {**below[key], **value} if _keeps_entries(section, key, below, value) else value
            )
        if sources is not None:
            sources |= {(section,): source} | {(section, key): source for key in values}


def _keeps_entries(section: str, key: str, below: Mapping[str, Any], value: Any) -> bool:
    """Whether a table leaves those entries of the setting below it that it does not give itself."""
    if not (isinstance(value, Mapping) and isinstance(below.get(key), Mapping)):
        return False
    owner = next((point.load() for point in entry_points(group=GROUP, name=section)), None)
    field = owner.model_fields.get(key) if owner is not None else None
    extra = field.json_schema_extra if field is not None else None
    return isinstance(extra, dict) and bool(extra.get("by_name"))


def known_near(word: str, known: Iterable[str]) -> str:
    """What to say of a name that is none: the near one, or all that there are."""
    known = sorted(known)
    return nearest(word, known) or f"known are {', '.join(known)}"
