"""Settings: precedence, presets that extend others, errors, and the commented file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from league.errors import ConfigError, InvalidInput
from league.runs.folder import write_config
from league.settings.base import (
    Sections,
    Settings,
    base_preset,
    nested_settings,
    resolve,
    section_classes,
    sections_hash,
)
from league.settings.file import dump_toml
from league.settings.presets import load_preset, preset_names
from matchmaker.settings import MatchmakerSettings

MODULE = '''
from pydantic import Field
from league.settings.base import Settings

class Stage(Settings):
    name: str
    """Name."""
    wins: float = Field(0.5, ge=0, le=1)
    """Share of wins."""

class Gate(Settings):
    games: int = 1
    limit: int = 2

class SampleSettings(Settings):
    """A sample."""

    speed: int = Field(1, ge=1, lt=1_000_000)
    """How fast."""
    rate: float | None = 0.5
    label: str = "default"
    weights: dict[str, float] = {"based": 1.0, "random": 2.0}
    mixes: dict[str, dict[str, float]] = {}
    gate: Gate = Gate()
    stages: tuple[Stage, ...] = ()
'''
PRESETS = {
    "_shared": "[sample]\nspeed = 2\nlabel = 'shared'\n",
    "quick": "extends = '_shared'\n[sample]\nspeed = 3\n",
    "parts": (
        "[sample]\nmixes = {a = {x = 1, y = 2}, b = {x = 3}}\n"
        "weights = {based = 1, random = 3}\ngate = {games = 7, limit = 8}\n"
    ),
    "round": "extends = 'about'\n",
    "about": "extends = 'round'\n",
}

OURS = sorted({*preset_names()} - {"showdown"})  # which needs a simulator
"""Without the presets of the sample package."""


@pytest.fixture(scope="module", autouse=True)
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Settings]]:
    """Installs, for these tests, a package whose entry point registers a section `sample`."""
    root = tmp_path_factory.mktemp("site")
    package = root / "sample_game"
    (package / "presets").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "settings.py").write_text(MODULE)
    for name, text in PRESETS.items():
        (package / "presets" / f"{name}.toml").write_text(text)
    info = root / "sample_game-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-game\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[kumite.settings]\nsample = sample_game.settings:SampleSettings\n"
    )
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    yield section_classes()["sample"]
    sys.path.remove(str(root))
    importlib.invalidate_caches()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text("extends = 'quick'\n[sample]\nspeed = 4\n")
    return path


def resolved(
    preset: str | None = None,
    file: Path | None = None,
    *assignments: str,
    environment: Mapping[str, str] | None = None,
) -> Sections:
    return resolve(preset, file, assignments, environment or {})


def test_each_source_wins_over_the_weaker_ones(file: Path) -> None:
    environment = {"KUMITE_SAMPLE__SPEED": "5", "KUMITE_PYTHON": "python3", "HOME": "/"}
    flag = "sample.speed=6"
    assert resolved()["sample"]["speed"] == 1
    assert resolved("quick")["sample"]["speed"] == 3
    assert resolved("parts", file)["sample"]["speed"] == 4
    assert resolved(None, file)["sample"]["label"] == "shared"
    assert resolved(None, file, environment=environment)["sample"]["speed"] == 5
    assert resolved(None, file, flag, environment=environment)["sample"]["speed"] == 6
    assert base_preset(file) == "quick"
    assert base_preset(None) is None


def test_a_file_may_begin_with_a_byte_order_mark(file: Path) -> None:
    before = resolved(None, file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert resolved(None, file) == before


def test_a_section_comes_as_its_class_too(sample: type[Settings], file: Path) -> None:
    sections = resolved(None, file)
    assert set(sections) == set(section_classes())
    assert sections.of(sample).model_dump(mode="json") == sections["sample"]
    with pytest.raises(ValueError, match="frozen"):
        sections.of(sample).speed = 2  # type: ignore[attr-defined]


def test_presets_extend_each_other() -> None:
    assert load_preset("quick")["sample"] == {"speed": 3, "label": "shared"}
    assert "quick" in preset_names()
    assert "_shared" not in preset_names()
    with pytest.raises(ConfigError, match="round -> about -> round"):
        load_preset("round")


def test_a_files_table_replaces_all_but_mixes_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "extends = 'parts'\n[sample]\nmixes = {a = {y = 5}}\nweights = {based = 9}\n"
        "gate = {games = 1}\n"
    )
    sample = resolved(None, path)["sample"]
    assert sample["mixes"] == {"a": {"y": 5.0}, "b": {"x": 3.0}}
    assert sample["weights"] == {"based": 9.0}
    assert sample["gate"] == {"games": 1, "limit": 8}


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_flag_or_variable_replaces_what_it_names(by_flag: bool) -> None:
    def given(path: str, value: str) -> dict[str, object]:
        variable = {f"KUMITE_{path.upper().replace('.', '__')}": value}
        if by_flag:
            return resolved("parts", None, f"{path}={value}")["sample"]
        return resolved("parts", environment=variable)["sample"]

    assert given("sample.mixes.b.x", "7")["mixes"] == {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 7.0}}
    assert given("sample.mixes.a", "{y=4}")["mixes"] == {"a": {"y": 4.0}, "b": {"x": 3.0}}
    assert given("sample.mixes", "{c={z=1}}")["mixes"] == {"c": {"z": 1.0}}
    assert given("sample.weights.based", "5")["weights"] == {"based": 5.0, "random": 3.0}
    assert given("sample.stages", "[{name='a'}]")["stages"] == [{"name": "a", "wins": 0.5}]
    assert given("sample.rate", "none")["rate"] is None
    assert given("sample.label", "none")["label"] == "none"


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("sample.spede=1", ["--set sample.spede=1: [sample]", "'spede'", "'speed'"]),
        ("smaple.speed=1", ["--set smaple.speed=1: ", "[smaple]", "'sample'"]),
        ("sample.speed=0", ["--set sample.speed=0: [sample] speed = 0"]),
        ("sample.speed=fast", ["[sample] speed = 'fast'"]),
        ("sample.rate=nan", ["[sample] rate = nan"]),
        ("sample.stages=[{name='a', winz=1}]", ["[sample] stages.0 ", "'winz'", "'wins'"]),
        ("sample.stages=[{wins=1}]", ["[sample] stages.0.name"]),
        ("speed=1", ["section.key=value"]),
        ("sample.speed", ["section.key=value"]),
    ],
)
def test_a_wrong_flag_is_one_sentence(assignment: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        resolved(None, None, assignment)
    assert "\n" not in str(caught.value)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("content", "environment", "words"),
    [
        ("[sample]\nspede = 1\n", {}, ["{file}: [sample]", "'spede'"]),
        ("[smaple]\n", {}, ["{file}: ", "[smaple]", "'sample'"]),
        ("", {"KUMITE_SAMPLE__SPEDE": "1"}, ["KUMITE_SAMPLE__SPEDE: [sample]", "'speed'"]),
        ("", {"KUMITE_SMAPLE__SPEED": "1"}, ["KUMITE_SMAPLE__SPEED: ", "'sample'"]),
        ("[sample]\nspeed = 1\n", {"KUMITE_SAMPLE__SPEED": "0"}, ["KUMITE_SAMPLE__SPEED: "]),
        ("[sample\n", {}, ["{file}", "TOML"]),
        ("speed = 1\n", {}, ["{file}", "'speed'"]),
        ("extends = 'quik'\n", {}, ["'quik'", "'quick'"]),
        (None, {}, ["{file}"]),
    ],
)  # fmt: skip
def test_a_wrong_file_or_variable_is_named(
    tmp_path: Path, content: str | None, environment: dict[str, str], words: list[str]
) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        resolved(None, path, environment=environment)
    assert [w for w in words if w.format(file=path) not in str(caught.value)] == []


def test_the_hash_follows_values_and_not_their_order() -> None:
    one = sections_hash({"a": {"x": 1, "y": 2.0}, "b": {}})
    assert one == sections_hash({"b": {}, "a": {"y": 2.0, "x": 1}})
    assert one != sections_hash({"a": {"x": 1, "y": 2.5}, "b": {}})


def test_a_written_file_reads_back_to_the_same_values(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    for preset in [None, *OURS]:
        sections = resolved(preset)
        write_config(path, sections)
        assert resolved(None, path) == sections, preset


def test_tables_and_odd_texts_read_back(tmp_path: Path) -> None:
    sections = resolved(
        None,
        None,
        "sample.mixes={league={snapshots=1.0}, 'odd name'={self=1e-05}}",
        "sample.stages=[{name='a'}, {name='quo\"te\\ tab\t Ünïcode'}]",
        "sample.rate=none",
        "sample.weights={}",
    )
    path = tmp_path / "settings.toml"
    write_config(path, sections)
    assert path.read_text().count("[[sample.stages]]") == 2
    assert resolved(None, path) == sections


def test_the_file_explains_each_setting() -> None:
    text = dump_toml({"sample": {"speed": 5000}}, "Heading.")
    assert text == (
        "# Heading.\n\n[sample]\n# A sample.\n\n"
        "# How fast.\n# Allowed: at least 1, below 1000000. Default: 1\nspeed = 5_000\n"
    )
    sections = resolved()
    sections.pop("sample")
    written = " ".join(line.strip("# ") for line in dump_toml(sections).splitlines())
    for section, cls in section_classes().items():
        for name, field in cls.model_fields.items() if section != "sample" else ():
            assert field.description, f"[{section}] {name} has no docstring"
            assert " ".join(field.description.split()) in written, (section, name)
    assert max(map(len, dump_toml(sections).splitlines())) <= 100


def test_a_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    place = tmp_path / "absent" / "settings.toml"
    with pytest.raises(InvalidInput, match=str(place)):
        write_config(place, resolved())
    assert not place.parent.exists()


def test_the_league_plays_the_game_that_the_game_section_names() -> None:
    other = "python:league.games.brawl.game:BrawlGame"
    assert MatchmakerSettings.of(resolved()).game == "brawl"
    assert MatchmakerSettings.of(resolved(None, None, f"game.name={other}")).game == other


def test_there_are_few_enough_settings_to_know() -> None:
    def count(cls: type[Settings]) -> int:
        nested = [nested_settings(field.annotation) for field in cls.model_fields.values()]
        return len(nested) + sum(count(inner) for inner in nested if inner is not None)

    classes = {name: cls for name, cls in section_classes().items() if name != "sample"}
    assert sum(map(count, classes.values())) <= 81
