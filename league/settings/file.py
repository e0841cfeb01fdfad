"""Writes settings as commented TOML: each with its docstring, bounds and default, readable back
as it was.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from league.errors import InvalidInput
from league.runs.files import write_whole
from league.settings.base import NONE, Sections, Settings, nested_settings, section_classes

WIDTH = 100
HEADING = """\
Settings of a Kumite league: every section, every setting, its default.
Lines that begin with # explain. "none" switches a setting off that may be absent.
"""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DELETE = "\x7f"  # the one character that JSON leaves as it is and TOML wants escaped


def write_config(path: Path, sections: Sections, heading: str = HEADING) -> None:
    """Writes resolved `sections` to `path`, the whole file or nothing.

    Raises `InvalidInput` when the file can't be made, `StorageFull` when the disk is full.
    """
    write_whole(path, dump_toml(sections, heading))


def dump_toml(sections: Sections, heading: str = HEADING) -> str:
    """Resolved sections (`league.settings.base.resolve`) as TOML text with comments."""
    classes = section_classes()
    parts = ["\n".join(_comment(*heading.splitlines()))]
    parts += [
        "\n".join(_table((name,), values, classes.get(name))) for name, values in sections.items()
    ]
    return "\n\n".join(parts) + "\n"


def _table(
    path: tuple[str, ...], values: Mapping[str, Any], cls: type[Settings] | None
) -> Iterator[str]:
    """A table: plain values first, as TOML wants it, then the tables inside."""
    if cls is not None and cls.__doc__:
        yield from _comment(*cls.__doc__.split("\n\n"))
    yield f"[{_dotted(path)}]"
    yield from _entries(path, values, cls)


def _entries(
    path: tuple[str, ...], values: Mapping[str, Any], cls: type[Settings] | None
) -> Iterator[str]:
    fields = cls.model_fields if cls is not None else {}
    plain = {key: value for key, value in values.items() if not _is_table(value)}
    for key, value in plain.items():
        if key in fields:
            yield ""
            yield from _comment(*_help(fields[key]))
        yield f"{_key(key)} = {toml_value(value)}"
    for key, value in values.items():
        if key not in plain:
            yield ""
            if key in fields:
                yield from _comment(*_help(fields[key]))
            inner = nested_settings(fields[key]) if key in fields else None
            yield from _inner_tables((*path, key), value, inner)


def _inner_tables(path: tuple[str, ...], value: Any, cls: type[Settings] | None) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value and all(isinstance(item, Mapping) for item in value.values()):
            for index, (key, item) in enumerate(value.items()):
                yield from [""] if index else []
                yield from _inner_tables((*path, key), item, cls)
            return
        yield f"[{_dotted(path)}]"
        yield from _entries(path, value, cls)
        return
    for index, item in enumerate(value):
        yield from [""] if index else []
        yield f"[[{_dotted(path)}]]"
        yield from _entries(path, item, cls if index == 0 else None)  # explained once


def _is_table(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return (
        isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def toml_value(value: Any) -> str:
    """A value on one line. None, which TOML lacks, becomes the word that settings read as None."""
    if value is None:
        return json.dumps(NONE)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:_}"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(_DELETE, "\\u007f")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{{inside}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    raise InvalidInput(
        f"{value!r} can't be written as TOML: settings hold numbers, texts, lists and tables"
    )


def _help(field: FieldInfo) -> list[str]:
    lines = [field.description or ""]
    choices = _choices(field.annotation)
    if choices:
        lines.append(f"One of: {', '.join(map(str, choices))}.")
    bounds = _bounds(field)
    default = (
        "none, it must be given" if field.is_required() else toml_value(_plain(_default(field)))
    )
    lines.append(f"{f'Allowed: {bounds}. ' if bounds else ''}Default: {default}")
    return lines


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True, validated_data={})


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.model_dump(mode="json")
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))


def _bounds(field: FieldInfo) -> str:
    words = []
    for rule in field.metadata:
        if isinstance(rule, annotated_types.Ge):
            words.append(f"at least {rule.ge}")
        elif isinstance(rule, annotated_types.Gt):
            words.append(f"above {rule.gt}")
        elif isinstance(rule, annotated_types.Le):
            words.append(f"at most {rule.le}")
        elif isinstance(rule, annotated_types.Lt):
            words.append(f"below {rule.lt}")
    return ", ".join(words)


def _comment(*paragraphs: str) -> list[str]:
    """Each paragraph, wrapped anew, as comment lines."""
    lines = []
    for paragraph in paragraphs:
        words = " ".join(paragraph.split())
        lines += textwrap.wrap(words, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for line in lines]


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(_key(part) for part in path)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)
