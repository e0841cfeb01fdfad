"""Settings: frozen models beside their owners, checked and complete, whatever sources they come
from.

Every package registers its settings class under the entry point group ``kumite.settings``; the
entry point's name is the section. Precedence: class defaults < preset < file < environment
(``KUMITE_LEARNER__LEARNING_RATE=5e-4``) < ``--set learner.learning_rate=5e-4``. A preset or file
that gives a table replaces the whole setting, but where the setting is `by_name`: there it replaces
the entries that it gives (``[matchmaker.mixes.league]``) and keeps the others. A flag can name one
entry of a table (``--set matchmaker.mixes.league.based=2``).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from league.errors import ConfigError
from league.settings.presets import (
    GROUP,
    Sections,
    Sources,
    known_near,
    load_preset,
    merge,
    owners,
    read_toml,
)

log = logging.getLogger(__name__)

ENVIRONMENT_PREFIX = "KUMITE_"
NONE = "none"
"""What a file or flag writes where a setting that may be absent is absent: TOML has no null."""
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Base of all settings: frozen, unknown keys refused, each field's docstring is its help."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    replaced: ClassVar[Mapping[str, str]] = {}
    """Settings of older versions and what stands for each: a run's file may still have them, and
    goes on.
    """

    @model_validator(mode="before")
    @classmethod
    def _read_none(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        for key in values.keys() & cls.replaced.keys():
            log.warning(
                "%s = %s is passed over: %s stands for it now", key, values[key], cls.replaced[key]
            )
        values = {key: value for key, value in values.items() if key not in cls.replaced}
        absent = {
            key for key in values if values[key] == NONE and _may_be_none(cls.model_fields.get(key))
        }
        return {key: None if key in absent else value for key, value in values.items()}


def _may_be_none(field: FieldInfo | None) -> bool:
    return field is not None and NoneType in get_args(field.annotation)


def nested_settings(field: FieldInfo) -> type[Settings] | None:
    """The settings class inside a field's type (``tuple[StageSettings, ...]``), if there is one."""
    return _settings_in(field.annotation)


def _settings_in(annotation: Any) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next((found for part in get_args(annotation) if (found := _settings_in(part))), None)


def section_classes() -> dict[str, type[Settings]]:
    """Every registered section's class, by section name."""
    return {
        point.name: point.load()
        for point in sorted(entry_points(group=GROUP), key=lambda p: p.name)
    }


def _typed(text: str) -> Any:
    """Reads a flag's or variable's value as TOML, and as plain text when it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _override(sections: Sections, keys: list[str], value: Any) -> None:
    """Sets one value, which may lie deep inside a setting that is a table."""
    table: dict[str, Any] = sections
    for key in keys[:-1]:
        inner = table.get(key)
        table[key] = dict(inner) if isinstance(inner, Mapping) else {}
        table = table[key]
    table[keys[-1]] = value


def _apply_overrides(
    sections: Sections, assignments: Iterable[str], environment: Mapping[str, str], sources: Sources
) -> None:
    for variable, text in sorted(environment.items()):
        if variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable:
            keys = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
            _override(sections, keys, _typed(text))
            sources |= {(keys[0],): variable, tuple(keys[:2]): variable}
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not equals or len(keys) < 2 or not all(keys):
            raise ConfigError(f"--set {assignment!r} can't be read: write --set section.key=value")
        _override(sections, keys, _typed(text.strip()))
        sources |= {(keys[0],): f"--set {assignment}", tuple(keys[:2]): f"--set {assignment}"}


def _source(sources: Sources, *place: str) -> str:
    return f"{sources[place]}: " if place in sources else ""


def _describe(error: ValidationError, section: str, cls: type[Settings], sources: Sources) -> str:
    first = error.errors()[0]
    return _source(sources, section, str((*first["loc"], "")[0])) + _fault(first, section, cls)


def _fault(first: Any, section: str, cls: type[Settings]) -> str:
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *path, key = first["loc"]
        inside = f"[{section}] {'.'.join(map(str, path))}".rstrip()
        return (
            f"{inside} has no setting {str(key)!r}: {known_near(str(key), _fields_at(cls, path))}"
        )
    what = first["msg"].removeprefix("Value error, ")
    if not place:  # a rule over several settings
        return f"[{section}] can't be used: {what}"
    if first["type"] == "missing":
        return f"[{section}] {place} is missing: it has no default, so write it"
    return (
        f"[{section}] {place} = {first.get('input')!r} can't be used: {what[0].lower()}{what[1:]}"
    )


def _fields_at(cls: type[Settings], path: Iterable[Any]) -> Iterable[str]:
    """Names of the settings at a place inside `cls`, such as ("stages", 0)."""
    for part in path:
        if part in cls.model_fields:
            cls = nested_settings(cls.model_fields[part]) or cls
    return cls.model_fields


def build(
    cls: type[S], section: str, values: Mapping[str, Any], sources: Sources | None = None
) -> S:
    """An instance from plain values; raises `ConfigError` in one sentence, with the faulty one's
    source.
    """
    try:
        return cls.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(_describe(error, section, cls, sources or {})) from None


def resolve(
    preset: str | None = None,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """All sections, checked and complete, as plain values (what `league.settings.file` writes).

    A settings file may name its own ``extends = "laptop"``; `preset` is then not needed.
    """
    base = base_preset(file) or preset
    above = os.environ if environment is None else environment
    return lay_over(load_preset(base) if base else {}, file, assignments, above)


def base_preset(file: Path | None) -> str | None:
    """The preset that a settings file extends, None when it names none."""
    return read_toml(file).get("extends") if file is not None else None


def lay_over(
    sections: Sections,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """`sections` under what a file, the environment (none by default) and flags say: checked,
    complete.

    The file's own ``extends`` is not followed: `resolve` does that.
    """
    content = read_toml(file) if file is not None else {}
    content.pop("extends", None)
    sources: Sources = {}
    laid: Sections = {name: dict(values) for name, values in sections.items()}
    merge(laid, content, str(file), sources)
    _apply_overrides(laid, assignments, environment or {}, sources)
    _check_names(laid, sources)
    return {
        name: build(cls, name, _with_same_as(cls, name, laid), sources).model_dump(mode="json")
        for name, cls in section_classes().items()
    }


def by_name() -> dict[str, Any]:
    """For `Field(json_schema_extra=...)` of a table of named parts: a file replaces the parts it
    gives.
    """
    return {"by_name": True}


def same_as(path: str) -> dict[str, Any]:
    """For `Field(json_schema_extra=...)`: where it is not given, this setting is that at
    `section.key`.
    """
    return {"same_as": path}


def _with_same_as(cls: type[Settings], name: str, sections: Sections) -> dict[str, Any]:
    """The values of a section, with those that follow another section's filled in."""
    values = dict(sections.get(name, {}))
    for key, field in cls.model_fields.items():
        extra = field.json_schema_extra
        if key not in values and isinstance(extra, dict) and "same_as" in extra:
            section, _, other = str(extra["same_as"]).partition(".")
            if other in sections.get(section, {}):
                values[key] = sections[section][other]
    return values


def _check_names(sections: Iterable[str], sources: Sources) -> None:
    known = owners()
    for section in sections:
        if section not in known:
            where = _source(sources, section)
            raise ConfigError(
                f"{where}there is no section [{section}]: {known_near(section, known)}"
            )


def load_section(
    cls: type[S], section: str, path: Path | None = None, preset: str | None = None
) -> S:
    """One section of a settings file, a preset, or the file over the preset (a service reads only
    its own).

    The preset that the file ``extends`` goes before `preset`; without either the defaults hold.
    """
    content = read_toml(path) if path is not None else {}
    base = content.pop("extends", None) or preset
    sections: Sections = load_preset(base) if base else {}
    sources: Sources = {}
    merge(sections, content, str(path), sources)
    _check_names(sections, sources)
    return build(cls, section, _with_same_as(cls, section, sections), sources)


def sections_hash(sections: Mapping[str, Any]) -> str:
    """Hash of settings, for snapshot cards: 16 hexadecimal digits."""
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
