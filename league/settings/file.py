"""Writes settings as commented TOML: each with its docstring, bounds and default."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import annotated_types
import tomlkit
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from league.runs.files import write_whole
from league.settings.base import NONE, Settings, nested_settings, section_classes
from league.settings.presets import Tables

WIDTH = 100
HEADING = """\
Settings of a Kumite league: every section, every setting, its default.
Lines that begin with # explain. "none" switches off a setting that may be absent.
"""
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def write_config(path: Path, sections: Tables, heading: str = HEADING) -> None:
    """Writes resolved sections to `path`, the whole file or nothing.

    Raises:
        InvalidInput: the file can't be made there.
        StorageFull: no space is left.
    """
    write_whole(path, dump_toml(sections, heading))


def dump_toml(sections: Tables, heading: str = HEADING) -> str:
    """Resolved sections (`league.settings.base.resolve`) as TOML text with comments."""
    classes = section_classes()
    lines = _comment(*heading.splitlines())
    for name, values in sections.items():
        cls = classes.get(name)
        about = (cls.__doc__ or "").split("\n\n") if cls is not None else []
        lines += _table("[{}]", name, values, cls, about)
    return "\n".join(lines).lstrip() + "\n"


def _table(
    header: str,
    path: str,
    values: Mapping[str, Any],
    cls: type[Settings] | None,
    about: Sequence[str],
) -> list[str]:
    """The lines of a table: what it is `about`, its values, then the tables inside."""
    fields = cls.model_fields if cls is not None else {}
    lines, below = ["", header.format(path), *_comment(*about)], []
    for key, value in values.items():
        field, name = fields.get(key), tomlkit.key(key).as_string()
        explained = _help(field) if field is not None else []
        nested = nested_settings(field.annotation) if field is not None else None
        if isinstance(value, Mapping):
            below += _table("[{}]", f"{path}.{name}", value, nested, explained)
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            below += _table("[[{}]]", f"{path}.{name}", value[0], nested, explained)
            for entry in value[1:]:  # only the first one is explained
                below += _table("[[{}]]", f"{path}.{name}", entry, None, [])
        else:
            lines += ["", *_comment(*explained)] if explained else []
            lines.append(f"{name} = {_text(value)}")
    return lines + below


def _text(value: Any) -> str:
    """A value on one line; None becomes the word that settings read as None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, Mapping):
        pairs = [f"{tomlkit.key(key).as_string()} = {_text(one)}" for key, one in value.items()]
        return f"{{{', '.join(pairs)}}}"
    return tomlkit.item(NONE if value is None else value).as_string()


def _comment(*paragraphs: str) -> list[str]:
    """Each paragraph, wrapped, as comment lines."""
    wrapper = textwrap.TextWrapper(WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" for text in paragraphs for line in wrapper.wrap(" ".join(text.split()))]


def _help(field: FieldInfo) -> list[str]:
    """A setting's docstring, its choices, bounds and default."""
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
        default = _text(value)
    allowed = f"Allowed: {', '.join(bounds)}. " if bounds else ""
    return [*lines, f"{allowed}Default: {default}"]


def _choices(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))
