"""The commented settings file: complete, explained, and read back to the same values."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from league.errors import InvalidInput
from league.settings import base as config
from league.settings import presets
from league.settings.file import dump_toml, toml_value, write_config


def _settings() -> list[tuple[str, str, Any]]:
    found = []
    for section, cls in config.section_classes().items():
        found += [(section, name, field) for name, field in cls.model_fields.items()]
    return found


@pytest.mark.parametrize("preset", [None, *presets.preset_names()])
def test_a_written_file_reads_back_to_the_same_values(tmp_path: Path, preset: str | None) -> None:
    sections = config.resolve(preset, environment={})
    path = tmp_path / "settings.toml"
    write_config(path, sections)
    assert config.resolve(file=path, environment={}) == sections
    over_another = config.resolve("smoke", path, environment={})
    mixes = over_another["matchmaker"]["mixes"]
    over_another["matchmaker"]["mixes"] = {
        name: mixes[name] for name in sections["matchmaker"]["mixes"]
    }
    assert over_another == sections, (
        "a complete file leaves the preset below it spare mixes at most"
    )


def test_tables_inside_tables_and_lists_of_tables_read_back(tmp_path: Path) -> None:
    assignments = [
        "matchmaker.mixes={league={snapshots=1.0, based=0.5}, 'odd name'={self=1.0}}",
        "game.reward_weights={win=3.5}",
        "curriculum.stages=[{name='a', mix='league', until_opponent='based'}, {name='b', mix='odd name'}]",
        "learner.target_kl=none",
    ]
    sections = config.resolve(assignments=assignments, environment={})
    path = tmp_path / "settings.toml"
    write_config(path, sections)
    text = path.read_text()
    assert '[matchmaker.mixes."odd name"]' in text
    assert text.count("[[curriculum.stages]]") == 2
    assert config.resolve(file=path, environment={}) == sections


@pytest.mark.parametrize(
    ("section", "name", "field"), _settings(), ids=lambda value: str(value)[:30]
)
def test_every_setting_is_explained_with_its_default(section: str, name: str, field: Any) -> None:
    assert field.description, (
        f"[{section}] {name} has no docstring: say what it is, its unit and why its default"
    )
    text = dump_toml(config.resolve(environment={}))
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith(f"[{section}]")]
    place = next(
        i
        for i in range(heads[0], len(lines))
        if lines[i].startswith((f"{name} = ", f"[{section}.{name}", f"[[{section}.{name}]]"))
    )
    comment = []
    while lines[place - 1].startswith("# "):
        place -= 1
        comment.insert(0, lines[place][2:])
    told = " ".join(comment)
    assert " ".join(field.description.split()) in told
    assert "Default: " in told


class Bounded(config.Settings):
    """Settings with bounds."""

    share: float = Field(0.5, ge=0, lt=1)
    """A share."""


def test_bounds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.settings.file.section_classes", lambda: {"bounded": Bounded})
    text = dump_toml({"bounded": {"share": 0.25}}, "Heading.")
    assert text == (
        "# Heading.\n\n# Settings with bounds.\n[bounded]\n\n"
        "# A share.\n# Allowed: at least 0, below 1. Default: 0.5\nshare = 0.25\n"
    )


@pytest.mark.parametrize(
    "value",
    [True, False, 0, -7, 10_000_000, 1e-05, 0.1, 1e22, "", "plain", 'quo"te\\', "tab\tline\n", "Ünïcode \x7f",
     [], [1, 2], ["a", "b"], {"a": 1.5, "b c": [True]}],
)  # fmt: skip
def test_every_plain_value_survives(value: object) -> None:
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_no_line_is_longer_than_the_page() -> None:
    comments = [
        line
        for line in dump_toml(config.resolve(environment={})).splitlines()
        if line.startswith("#")
    ]
    assert max(map(len, comments)) <= 100


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be written"):
        write_config(tmp_path / "absent" / "settings.toml", config.resolve(environment={}))
    assert not (tmp_path / "absent").exists()
