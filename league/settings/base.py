"""Settings: frozen models next to their owners, resolved once per process from every source.

Each package registers its settings class under the entry point group ``kumite.settings``; the
entry point's name is the section. From the weakest to the strongest source: class defaults, preset,
file, environment (``KUMITE_LEARNER__LEARNING_RATE=5e-4``), flags
(``--set learner.learning_rate=5e-4``). Presets and files are merged by `league.settings.presets`;
pydantic-settings lays the environment and the flags over them and validates the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
)

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
NONE = "none"
"""How files and flags write an absent value: TOML has no null."""
S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Base of all sections: frozen, unknown keys refused, each field's docstring is its help."""

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
        return {
            key: None if value == NONE and _may_be_none(cls.model_fields.get(key)) else value
            for key, value in values.items()
        }


def _may_be_none(field: FieldInfo | None) -> bool:
    return field is not None and NoneType in get_args(field.annotation)


class Sections(dict[str, dict[str, Any]]):
    """Resolved settings as plain values by section, complete and checked, as a file holds them.

    Args:
        models: the instance of each section's class.
    """

    def __init__(self, models: Mapping[str, Settings]) -> None:
        super().__init__({name: model.model_dump(mode="json") for name, model in models.items()})
        self._models = {type(model): model for model in models.values()}

    def of(self, cls: type[S]) -> S:
        """The section of class `cls`, as resolved."""
        model = self._models[cls]
        assert isinstance(model, cls)
        return model


def nested_settings(field: FieldInfo) -> type[Settings] | None:
    """The settings class inside a field's type (``tuple[StageSettings, ...]``), None without."""
    return _settings_in(field.annotation)


def _settings_in(annotation: Any) -> type[Settings] | None:
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next((found for part in get_args(annotation) if (found := _settings_in(part))), None)


def same_as(path: str) -> dict[str, Any]:
    """For `Field(json_schema_extra=...)`: the default is the value that `section.key` has."""
    return {"same_as": path}


def resolve(
    preset: str | None = None,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """Resolves all sections from a preset, a file, the environment and flags.

    Args:
        preset: a preset's name; the preset that the file ``extends`` wins over it.
        file: a TOML file of sections.
        assignments: values of ``--set``: ``section.key=value``.
        environment: variables; None takes those of the process.

    Raises:
        ConfigError: in one sentence: the source, the place, the value, and the nearest known name.
    """
    base = base_preset(file) or preset
    given = os.environ if environment is None else environment
    return lay_over(load_preset(base) if base else {}, file, assignments, given)


def base_preset(file: Path | None) -> str | None:
    """The preset that a settings file extends, None when it names none."""
    return read_tables(file).extends if file is not None else None


def lay_over(
    below: Tables,
    file: Path | None = None,
    assignments: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Sections:
    """Lays a file (without what it extends), variables (default: none) and flags over `below`.

    Raises:
        ConfigError: as `resolve`.
    """
    classes = section_classes()
    origins = _Origins(file, environment or {}, list(assignments))
    origins.check_sections(classes)
    tables = {name: dict(values) for name, values in below.items()}
    if file is not None:
        merge(tables, origins.tables)
    for path in origins.paths():
        _remove(tables, path)  # what a flag or a variable gives as a whole is not merged

    class Resolved(BaseSettings):
        model_config = {"env_prefix": PREFIX, "env_nested_delimiter": "__", "extra": "forbid"}

        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: Any, **__: Any
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (
                InitSettingsSource(settings_cls, origins.flags()),
                _Environment(settings_cls, origins.environment),
                InitSettingsSource(settings_cls, tables),
            )

        @model_validator(mode="before")
        @classmethod
        def _follow(cls, values: dict[str, Any]) -> dict[str, Any]:
            return _with_same_as(values, classes)

    fields: Any = {name: (owner, Field(default_factory=owner)) for name, owner in classes.items()}
    try:
        resolved = create_model("Resolved", __base__=Resolved, **fields)()
    except ValidationError as error:
        first = error.errors()[0]
        section, *place = first["loc"]
        cls = classes[str(section)]
        raise ConfigError(origins.of(first["loc"]) + _fault(first, place, cls, section)) from None
    return Sections({name: getattr(resolved, name) for name in classes})


class _Environment(EnvSettingsSource):
    """The given variables; lists and tables in them are TOML, as in files."""

    def __init__(self, settings_cls: type[BaseSettings], variables: Mapping[str, str]) -> None:
        super().__init__(settings_cls)
        self.env_vars = {name.lower(): value for name, value in variables.items()}

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        return _typed(value)


class _Origins:
    """What was given by which source above the presets, to name the source of a wrong value."""

    def __init__(
        self, file: Path | None, environment: Mapping[str, str], assignments: list[str]
    ) -> None:
        self._file = file
        self.tables = read_tables(file).sections if file is not None else {}
        self.environment = {
            name: value
            for name, value in environment.items()
            if name.startswith(PREFIX) and "__" in name
        }
        self._assigned = [_assigned(assignment) for assignment in assignments]

    def paths(self) -> Iterator[list[str]]:
        """The place of each value that a variable or a flag gives."""
        yield from map(_path_of, self.environment)
        for path, _ in self._assigned:
            yield path

    def flags(self) -> Tables:
        """The values of all flags as nested tables; a later flag replaces an earlier one."""
        tables: Tables = {}
        for path, value in self._assigned:
            table: dict[str, Any] = tables
            for key in path[:-1]:
                if not isinstance(table.get(key), dict):
                    table[key] = {}
                table = table[key]
            table[path[-1]] = value
        return tables

    def check_sections(self, known: Iterable[str]) -> None:
        for section in [*self.tables, *(path[0] for path in self.paths())]:
            if section not in known:
                raise ConfigError(
                    f"{self.of((section,))}there is no section [{section}]: "
                    f"{known_near(section, known)}"
                )

    def of(self, place: tuple[int | str, ...]) -> str:
        """The strongest source that gives a section or a setting, with a colon; "" for none."""
        wanted = [str(part) for part in place[:2]]
        for path, value in reversed(self._assigned):
            if path[: len(wanted)] == wanted:
                return f"--set {'.'.join(path)}={_shown(value)}: "
        for name in self.environment:
            if _path_of(name)[: len(wanted)] == wanted:
                return f"{name}: "
        section = self.tables.get(wanted[0])
        if section is not None and (len(wanted) == 1 or wanted[1] in section):
            return f"{self._file}: "
        return ""


def _path_of(variable: str) -> list[str]:
    return variable.removeprefix(PREFIX).lower().split("__")


def _assigned(assignment: str) -> tuple[list[str], Any]:
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or len(keys) < 2 or not all(keys):
        raise ConfigError(f"--set {assignment!r} can't be read: write --set section.key=value")
    return keys, _typed(text.strip())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _typed(text: str) -> Any:
    """A flag's or a variable's value read as TOML, as plain text where it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _remove(tables: Tables, path: list[str]) -> None:
    """Removes the value at `path`, where there is one, without changing tables of the caller."""
    table: dict[str, Any] = tables
    for key in path[:-1]:
        if not isinstance(table.get(key), Mapping):
            return
        table[key] = dict(table[key])
        table = table[key]
    table.pop(path[-1], None)


def _with_same_as(values: dict[str, Any], classes: Mapping[str, type[Settings]]) -> dict[str, Any]:
    """Fills in settings that follow another section's and are not given."""
    filled = {**values}
    for name, cls in classes.items():
        for key, field in cls.model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and "same_as" in extra:
                section, _, other = str(extra["same_as"]).partition(".")
                if other in values.get(section, {}):
                    filled[name] = {key: values[section][other]} | filled.get(name, {})
    return filled


def build(cls: type[S], section: str, values: Mapping[str, Any]) -> S:
    """One section from plain values.

    Raises:
        ConfigError: in one sentence.
    """
    try:
        return cls.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(_fault(first, first["loc"], cls, section)) from None


def _fault(first: Any, place: Iterable[Any], cls: type[Settings], section: Any) -> str:
    """The first error of a validation in one sentence."""
    path = [str(part) for part in place]
    name = ".".join(path)
    if first["type"] == "extra_forbidden":
        inside = f"[{section}] {'.'.join(path[:-1])}".rstrip()
        return f"{inside} has no setting {path[-1]!r}: {known_near(path[-1], _fields(cls, path))}"
    what = first["msg"].removeprefix("Value error, ")
    if not path:  # a rule over several settings
        return f"[{section}] can't be used: {what}"
    if first["type"] == "missing":
        return f"[{section}] {name} is missing: it has no default, so write it"
    return f"[{section}] {name} = {first.get('input')!r} can't be used: {what[0].lower()}{what[1:]}"


def _fields(cls: type[Settings], path: Iterable[str]) -> Iterable[str]:
    """Names of the settings at a place inside `cls`, such as ("stages", "0")."""
    for part in path:
        if part in cls.model_fields:
            cls = nested_settings(cls.model_fields[part]) or cls
    return cls.model_fields


def sections_hash(sections: Mapping[str, Any]) -> str:
    """Hash of settings, for snapshot cards: 16 hexadecimal digits."""
    text = json.dumps(sections, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
