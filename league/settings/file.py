"""Writes settings as commented TOML, each with its docstring, bounds and default."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import annotated_types
import tomlkit
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from tomlkit.container import Container
from tomlkit.items import AoT, Item, Table

from league.settings.base import NONE, Settings, nested_settings, section_classes
from league.settings.presets import Tables

WIDTH = 100
HEADING = """\
Settings of a Kumite league: every section, every setting, its default.
Lines that begin with # explain. "none" switches off a setting that may be absent.
"""
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def dump_toml(sections: Tables, heading: str = HEADING) -> str:
    """Returns resolved sections as TOML text with comments, under the comment `heading`."""
    classes = section_classes()
    document = tomlkit.document()
    _comment(document, *heading.splitlines())
    for name, values in sections.items():
        cls = classes.get(name)
        about = (cls.__doc__ or "").split("\n\n") if cls is not None else []
        document.add(name, _table(values, cls, about))
    return tomlkit.dumps(document)


def _table(
    values: Mapping[str, Any], cls: type[Settings] | None, about: Sequence[str] = ()
) -> Table:
    """Returns a table below the comments `about`. TOML needs plain values before inner tables."""
    fields = cls.model_fields if cls is not None else {}
    table = tomlkit.table()
    _comment(table, *about)
    for key, value in sorted(values.items(), key=lambda entry: _is_table(entry[1])):
        field = fields.get(key)
        help_lines = _help(field) if field is not None else []
        nested = nested_settings(field.annotation) if field is not None else None
        if not _is_table(value):
            if help_lines:
                table.add(tomlkit.nl())
            _comment(table, *help_lines)
            table.add(key, _item(value))
        elif isinstance(value, Mapping):
            table.add(key, _table(value, nested, help_lines))
        else:  # only the first entry of a list is explained
            first, *rest = value
            entries = [_table(first, nested, help_lines), *(_table(entry, None) for entry in rest)]
            table.add(key, AoT(entries))
    return table


def _is_table(value: Any) -> bool:
    if isinstance(value, list) and value:
        return all(isinstance(entry, Mapping) for entry in value)
    return isinstance(value, Mapping)


def on_one_line(value: Any) -> str:
    """Returns a value as TOML on a single line. None becomes "none"."""
    return _item(value).as_string()


def _item(value: Any) -> Item:
    """Returns a value on a single line. None becomes "none", which settings read as None."""
    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        for key, entry in value.items():
            table.append(key, _item(entry))
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        for entry in value:
            array.append(_item(entry))
        return array
    if isinstance(value, int) and not isinstance(value, bool):
        return tomlkit.value(f"{value:_}")
    return tomlkit.item(NONE if value is None else value)


def _comment(container: Container | Table, *paragraphs: str) -> None:
    """Adds each paragraph, wrapped, as comment lines."""
    for paragraph in paragraphs:
        words = " ".join(paragraph.split())
        wrapped = textwrap.wrap(words, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        for line in wrapped:
            container.add(tomlkit.comment(line))


def _help(field: FieldInfo) -> list[str]:
    """Returns a setting's docstring, its choices, bounds and default."""
    lines = [field.description or ""]
    choices = _choices(field.annotation)
    if choices:
        lines.append(f"One of: {', '.join(map(str, choices))}.")
    bounds = [
        f"{word} {getattr(rule, name)}"
        for rule in field.metadata
        for name, word in _BOUNDS.items()
        if isinstance(rule, getattr(annotated_types, name.capitalize()))
    ]
    default = "none, it must be given"
    if not field.is_required():
        value = to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))
        default = on_one_line(value)
    allowed = f"Allowed: {', '.join(bounds)}. " if bounds else ""
    return [*lines, f"{allowed}Default: {default}"]


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))
