"""Writes the settings that a sweep recommends as a file for `bin/start-league --config`."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from league.settings.base import Sections, resolve
from league.settings.file import dump_toml
from learner.profile.rows import Changes, Row
from learner.profile.sweep import CHANGES_LEARNING, CLOSE
from learner.profile.words import doubt

WIDTH = 100


def preset_text(
    base: str | None,
    sections: Sections,
    own: Changes,
    row: Row,
    rows: Sequence[Row],
    facts: Mapping[str, Any],
) -> str:
    """A settings file over the preset `base`: all in which `sections` differ from it, and
    `row`'s changes.
    """
    below = resolve(base, environment={})
    wanted = {**sections, "learner": {**sections["learner"], **row.changes}}
    changed = {
        section: {
            key: value
            for key, value in values.items()
            if value != below[section][key] or (section == "learner" and key in row.changes)
        }
        for section, values in wanted.items()
    }
    body = dump_toml(
        {section: values for section, values in changed.items() if values}, ""
    ).lstrip()
    extends = f'extends = "{base}"\n\n' if base else ""
    return f"{_comments(base, own, row, rows, facts)}\n{extends}{body}"


def _comments(
    base: str | None, own: Changes, row: Row, rows: Sequence[Row], facts: Mapping[str, Any]
) -> str:
    speed = row.steps_per_second()
    where = facts["gpu"] or f"{facts['processor']}, {facts['cores']} cores"
    paragraphs = [
        f"Written by bin/league profile --sweep: {base or 'the settings given'} with the values of [learner] "
        f"that were fastest, of {len(rows)} measured. Use it: bin/start-league --config THIS_FILE",
        f"Measured: {speed.median:,.0f} steps/s from one end to the other, {speed.lowest:,.0f} to "
        f"{speed.highest:,.0f} in {len(row.bursts)} bursts, on {where}. Configurations within {CLOSE:.0%} "
        "count as equal: of those, the one that changes least is here.",
        *_before(own, row, rows),
        _about_learning(own, row.changes),
    ]
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, WIDTH - 2)]
    return "".join(f"# {line}\n" for line in lines)


def _before(own: Changes, row: Row, rows: Sequence[Row]) -> list[str]:
    """How the settings that were profiled did in the same minutes."""
    before = next(
        (other for other in rows if other.counts and dict(other.changes) == dict(own)), None
    )
    if before is None or before is row:
        return []
    speed = before.steps_per_second()
    values = ", ".join(f"{name} = {value}" for name, value in own.items())
    told = f"In the same minutes {values}: {speed.median:,.0f} ({speed.lowest:,.0f} to {speed.highest:,.0f})."
    unsure = doubt(row, before)
    return [told, f"{unsure[0].upper()}{unsure[1:]}."] if unsure else [told]


def _about_learning(own: Changes, changes: Changes) -> str:
    changed = [name for name in CHANGES_LEARNING if name in changes and changes[name] != own[name]]
    if not changed:
        return "Nothing here changes what a step teaches: only the speed."
    return (
        f"Of these {' and '.join(changed)} differ and change what a step teaches, not only the speed: "
        "rollouts, and the optimizer's steps in each, are of another size. Watch the win rates of the first "
        "minutes; learner.learning_rate may want another value."
    )
