"""Resolves settings, once per process. Settings are frozen models next to the code that uses them.

Each package registers its settings class under the entry point group ``kumite.settings``. The entry
point's name is the section. The sources are, from the weakest to the strongest: class defaults,
preset, file, environment (``KUMITE_LEARNER__LEARNING_RATE=5e-4``), and flags (``--set
learner.learning_rate=5e-4``). `league.settings.presets` merges presets and files. pydantic-settings
lays the environment and the flags over the merged values and validates the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, InitSettingsSource

from league.errors import ConfigError
from league.settings.presets import (
    Tables,
    known_near,
    load_preset,
    merge,
    read_tables,
    section_classes,
)

PREFIX = "KUMITE_"
DEFAULT_PRESET = "laptop"
"""The preset for commands that name no preset, and for settings files that extend no preset."""
JOINED = "joined.json"
"""File that marks a folder as joined to a league on another machine, and holds the address of that
league. The folder's config.toml has all settings.
"""
NONE = "none"
"""The word for an absent value in files and flags, because TOML has no null."""
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """The base class of all sections. Sections are frozen, refuse unknown keys, and use a field's
    docstring as its help.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _read_none(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        fields = cls.model_fields
        optional = {name for name in fields if NoneType in get_args(fields[name].annotation)}
        return {k: None if v == NONE and k in optional else v for k, v in values.items()}


class Sections(dict[str, dict[str, Any]]):
    """Keeps resolved settings by section, as plain values like in a file. They are complete and
    valid.
    """

    def __init__(self, models: Mapping[str, Settings]) -> None:
        super().__init__({name: model.model_dump(mode="json") for name, model in models.items()})
        self._models = {type(model): model for model in models.values()}

    def of(self, cls: type[S]) -> S:
        """Returns the section of class `cls`, as resolved."""
        model = self._models[cls]
        assert isinstance(model, cls)
        return model


def nested_settings(annotation: Any) -> type[Settings] | None:
    """Returns the settings class inside a type such as ``tuple[StageSettings, ...]``, or None."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next((found for part in get_args(annotation) if (found := nested_settings(part))), None)


def resolve(
    preset: str | None = None,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """Resolves all sections from a preset, a file, the environment and flags.

    Args:
        preset: a preset's name. If the file ``extends`` a preset, that preset is used instead.
        file: a TOML file of sections.
        assignments: values of ``--set``: ``section.key=value``.
        environment: variables. None means the environment of the process.

    Raises:
        ConfigError: a setting can't be used. The message gives the source, the place, the value,
            and the nearest known name.
    """
    base = base_preset(file) or preset
    given = os.environ if environment is None else environment
    return lay_over(load_preset(base) if base else {}, file, assignments, given)


def variables_of_children() -> dict[str, str]:
    """Returns the environment without the variables that change settings. The processes of a run
    read its config.toml, which has the variables' values unless a flag replaced them.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith(PREFIX) and "__" in name)
    }


def resolve_run(
    run_dir: Path | None,
    preset: str | None = None,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    default: str | None = DEFAULT_PRESET,
) -> Sections:
    """Resolves a command's settings. All commands treat a file in the same way.

    A file's settings change a preset: the preset that the file extends, or else `preset`, or else
    `DEFAULT_PRESET`. The config.toml of a started run is complete, so it needs no preset.

    Args:
        run_dir: the folder of a run. Its config.toml is read if no preset and no file are given.
        preset: a preset's name.
        file: a TOML file of sections.
        assignments: values of ``--set``.
        default: the preset if nothing is named and there is no config.toml.

    Raises:
        ConfigError: as in `resolve`.
    """
    if file is None and preset is None and run_dir and (run_dir / "config.toml").is_file():
        file = run_dir / "config.toml"
        if any((run_dir / name).is_file() for name in ("run.json", JOINED)):
            return resolve(None, file, assignments)
    return resolve(preset or (DEFAULT_PRESET if file else default), file, assignments)


def base_preset(file: Path | None) -> str | None:
    """Returns the preset that a settings file extends, or None."""
    return read_tables(file).extends if file is not None else None


class _Given(NamedTuple):
    """Keeps a value with its source, for messages, and its path: ["section", "key", ...]."""

    source: str
    path: Sequence[str]
    value: Any = None


def lay_over(
    below: Tables,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """Lays the settings of a file, of environment variables and of flags over `below`.

    Args:
        below: sections of plain values.
        file: a TOML file of sections. The preset that it extends is ignored.
        assignments: values of ``--set``.
        environment: environment variables, by default no variables.

    Raises:
        ConfigError: as in `resolve`.
    """
    classes = section_classes()
    in_file = read_tables(file).sections if file is not None else {}
    by_file = [_Given(f"{file}: ", [name]) for name in in_file]
    by_file += [_Given(f"{file}: ", [name, key]) for name in in_file for key in in_file[name]]
    by_variable = [
        _Given(f"{name}: ", name.removeprefix(PREFIX).lower().split("__"), text)
        for name, text in (environment or {}).items()
        if name.startswith(PREFIX) and "__" in name
    ]
    by_flag = [_assigned(assignment) for assignment in assignments]
    given = [*by_file, *by_variable, *by_flag]
    for source, (section, *_), _ in given:
        if section not in classes:
            near = known_near(section, classes)
            raise ConfigError(f"{source}there is no section [{section}]: {near}")
    tables = {name: dict(values) for name, values in below.items()}
    merge(tables, in_file)
    flags: Tables = {}
    for _, path, _ in [*by_variable, *by_flag]:
        _put(tables, path)  # a flag or a variable replaces the value as a whole
    for _, path, value in by_flag:
        _put(flags, path, value)

    class Resolved(BaseSettings):
        model_config = {"env_prefix": PREFIX, "env_nested_delimiter": "__", "extra": "forbid"}

        @classmethod
        def settings_customise_sources(cls, settings_cls: Any, *_: Any, **__: Any) -> Any:
            variables = _Environment(settings_cls)
            variables.env_vars = {
                name.lower(): text for name, text in (environment or {}).items() if "__" in name
            }
            flagged = InitSettingsSource(settings_cls, flags)
            return flagged, variables, InitSettingsSource(settings_cls, tables)

    fields: Any = {name: (owner, Field(default_factory=owner)) for name, owner in classes.items()}
    try:
        resolved = create_model("Resolved", __base__=Resolved, **fields)()
    except ValidationError as error:
        first = error.errors()[0]
        section, *place = (str(part) for part in first["loc"])
        at = [section, *place][:2]
        source = next((entry.source for entry in reversed(given) if list(entry.path[:2]) == at), "")
        raise ConfigError(source + fault_of(first, place, classes[section], section)) from None
    return Sections({name: getattr(resolved, name) for name in classes})


class _Environment(EnvSettingsSource):
    """Reads variables. Lists and tables in them are TOML, as in files."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        return _typed(value)


def _assigned(assignment: str) -> _Given:
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigError(f"--set {assignment!r} can't be read: write --set section.key=value")
    return _Given(f"--set {path.strip()}={text.strip()}: ", keys, _typed(text.strip()))


def _typed(text: str) -> Any:
    """Reads a flag's or a variable's value as TOML, or as plain text if it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(tables: Tables, path: Sequence[str], value: Any = None) -> None:
    """Sets the value at `path`, or removes the value there if `value` is None. Inner tables are
    copied before they change, because they may belong to the caller.
    """
    table: dict[str, Any] = tables
    for key in path[:-1]:
        inner = table.get(key)
        if value is None and not isinstance(inner, Mapping):
            return
        table[key] = dict(inner) if isinstance(inner, Mapping) else {}
        table = table[key]
    table.pop(path[-1], None)
    if value is not None:
        table[path[-1]] = value


def fault_of(first: Any, place: Iterable[str], cls: type[Settings], section: str) -> str:
    """Returns pydantic's first error of a section as a sentence. `place` is the path of the value
    inside the section.
    """
    path = list(place)
    name = ".".join(path)
    if first["type"] == "extra_forbidden":
        for part in path[:-1]:  # the inner class, as for ("stages", "0", "winz")
            if part in cls.model_fields:
                cls = nested_settings(cls.model_fields[part].annotation) or cls
        inside = f"[{section}] {'.'.join(path[:-1])}".rstrip()
        return f"{inside} has no setting {path[-1]!r}: {known_near(path[-1], cls.model_fields)}"
    what = first["msg"].removeprefix("Value error, ")
    if not path:  # a rule over several settings
        return f"[{section}] can't be used: {what}"
    if first["type"] == "missing":
        return f"[{section}] {name} is missing: it has no default, so write it"
    return f"[{section}] {name} = {first.get('input')!r} can't be used: {what[0].lower()}{what[1:]}"


def sections_hash(sections: Mapping[str, Any]) -> str:
    """Returns the hash of settings, for snapshot cards: 16 hexadecimal digits."""
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
