"""Settings: precedence, presets that extend others, errors that help, the hash."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from league.errors import ConfigError
from league.settings import base as config
from league.settings import presets
from matchmaker.settings import MatchmakerSettings

MODULE = """
from pydantic import Field
from league.settings.base import Settings, by_name

class Stage(Settings):
    name: str
    wins: float = Field(0.5, ge=0, le=1)

class SampleSettings(Settings):
    speed: int = Field(1, ge=1)
    rate: float | None = 0.5
    label: str = "default"
    weights: dict[str, dict[str, float]] = {"league": {"based": 1.0, "random": 2.0}}
    named: dict[str, dict[str, float]] = Field({}, json_schema_extra=by_name())
    stages: tuple[Stage, ...] = ()
"""
PRESETS = {
    "_shared": "[sample]\nspeed = 2\nlabel = 'shared'\n",
    "quick": "extends = '_shared'\n[sample]\nspeed = 3\n",
    "parts": "[sample.named]\na = {x = 1, y = 2}\nb = {x = 3}\n[sample.weights.league]\nbased = 1\n",
    "round": "extends = 'about'\n",
    "about": "extends = 'round'\n",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[config.Settings]]:
    """A package installed for the time of these tests, whose entry point registers a section
    `sample`.
    """
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
    yield config.section_classes()["sample"]
    sys.path.remove(str(root))
    importlib.invalidate_caches()


@pytest.fixture
def file(tmp_path: Path, sample: type[config.Settings]) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text("extends = 'quick'\n[sample]\nspeed = 4\n")
    return path


def speed(**arguments: object) -> int:
    return config.resolve(**{"environment": {}, **arguments})["sample"]["speed"]  # type: ignore[arg-type]


def test_each_source_wins_over_the_one_below(file: Path) -> None:
    environment = {"KUMITE_SAMPLE__SPEED": "5", "KUMITE_PYTHON": "python3", "HOME": "/"}
    assert speed() == 1
    assert speed(preset="quick") == 3
    assert speed(file=file) == 4
    assert speed(file=file, environment=environment) == 5
    assert speed(file=file, environment=environment, assignments=["sample.speed=6"]) == 6


def test_a_preset_lies_over_what_it_extends(sample: type[config.Settings]) -> None:
    assert presets.load_preset("quick")["sample"] == {"speed": 3, "label": "shared"}


def test_shared_parts_are_no_presets_to_choose(sample: type[config.Settings]) -> None:
    assert "quick" in presets.preset_names()
    assert "_shared" not in presets.preset_names()


def test_a_circle_of_presets_is_named(sample: type[config.Settings]) -> None:
    with pytest.raises(ConfigError, match="round -> about -> round"):
        presets.load_preset("round")


def test_every_section_is_complete_and_of_plain_values(sample: type[config.Settings]) -> None:
    sections = config.resolve(environment={})
    assert sections["sample"]["stages"] == []
    assert set(sections) == set(config.section_classes())


def test_flags_build_a_table_entry_by_entry(sample: type[config.Settings]) -> None:
    assigned = config.resolve(
        environment={},
        assignments=["sample.weights.mine.based=7", "sample.weights.mine.constant=1"],
    )
    assert assigned["sample"]["weights"] == {"mine": {"based": 7.0, "constant": 1.0}}


def test_a_file_keeps_the_named_parts_that_it_does_not_give(
    tmp_path: Path, sample: type[config.Settings]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "extends = 'parts'\n[sample.named]\na = {y = 5}\n[sample.weights.mine]\nrandom = 1\n"
    )
    resolved = config.resolve(file=path, environment={})["sample"]
    assert resolved["named"] == {"a": {"y": 5.0}, "b": {"x": 3.0}}
    assert resolved["weights"] == {"mine": {"random": 1.0}}
    environment = {"KUMITE_SAMPLE__NAMED__B__X": "7"}
    assert config.resolve("parts", None, [], environment)["sample"]["named"]["b"] == {"x": 7.0}


def test_a_flag_keeps_the_files_other_entries(
    tmp_path: Path, sample: type[config.Settings]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[sample.weights.league]\nbased = 3.0\nrandom = 4.0\n")
    resolved = config.resolve(
        file=path, environment={}, assignments=["sample.weights.league.based=9"]
    )
    assert resolved["sample"]["weights"] == {"league": {"based": 9.0, "random": 4.0}}


def test_none_is_written_as_a_word(sample: type[config.Settings]) -> None:
    assert (
        config.resolve(environment={}, assignments=["sample.rate=none"])["sample"]["rate"] is None
    )
    assert (
        config.resolve(environment={}, assignments=["sample.label=none"])["sample"]["label"]
        == "none"
    )


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("sample.spede=1", r"\[sample\] has no setting 'spede': did you mean 'speed'\?"),
        ("smaple.speed=1", r"no section \[smaple\]: did you mean 'sample'\?"),
        ("sample.speed=0", r"\[sample\] speed = 0 can't be used: input should be greater"),
        ("sample.speed=fast", r"\[sample\] speed = 'fast' can't be used"),
        ("sample.rate=nan", r"\[sample\] rate = nan can't be used"),
        (
            "sample.stages=[{name='a', winz=1}]",
            r"\[sample\] stages.0 has no setting 'winz': did you mean 'wins'",
        ),
        ("sample.stages=[{wins=1}]", r"\[sample\] stages.0.name is missing"),
        ("speed=1", "write --set section.key=value"),
        ("sample.speed", "write --set section.key=value"),
    ],
)
def test_a_wrong_value_is_explained_in_one_sentence(
    sample: type[config.Settings], assignment: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        config.resolve(environment={}, assignments=[assignment])
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_fault_names_where_it_came_from(tmp_path: Path, sample: type[config.Settings]) -> None:
    path = tmp_path / "mine.toml"

    def fault(
        content: str = "", environment: Mapping[str, str] | None = None, *assignments: str
    ) -> str:
        path.write_text(content)
        with pytest.raises(ConfigError) as caught:
            config.resolve(None, path, assignments, environment or {})
        return str(caught.value)

    assert fault("[sample]\nspede = 1\n").startswith(f"{path}: [sample] has no setting 'spede'")
    assert fault("[smaple]\n").startswith(f"{path}: there is no section [smaple]")
    variable = {"KUMITE_SAMPLE__SPEDE": "1"}
    assert fault("", variable).startswith("KUMITE_SAMPLE__SPEDE: [sample] has no setting 'spede'")
    assert fault("", {"KUMITE_SMAPLE__SPEED": "1"}).startswith(
        "KUMITE_SMAPLE__SPEED: there is no section"
    )
    assert fault("", {}, "sample.speed=0").startswith(
        "--set sample.speed=0: [sample] speed = 0 can't"
    )
    overridden = fault("[sample]\nspeed = 1\n", {"KUMITE_SAMPLE__SPEED": "0"})
    assert overridden.startswith("KUMITE_SAMPLE__SPEED: [sample] speed = 0")
    path.write_text("[sample]\nspede = 1\n")
    with pytest.raises(ConfigError, match=f"{path}: \\[sample\\] has no setting 'spede'"):
        config.load_section(sample, "sample", path)


def test_a_service_reads_its_section_of_a_preset(
    tmp_path: Path, sample: type[config.Settings]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[sample]\nspeed = 7\n")
    preset = config.load_section(sample, "sample", preset="quick")
    assert preset.model_dump(mode="json") == config.resolve("quick", environment={})["sample"]
    laid = config.load_section(sample, "sample", path, "quick")
    assert laid.model_dump() == preset.model_dump() | {"speed": 7}
    assert config.load_section(sample, "sample") == sample()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[sample\n", "is not valid TOML"),
        ("speed = 1\n", "'speed' stands outside any"),
        ("extends = 'quik'\n", "there is no preset 'quik': did you mean 'quick'"),
    ],
)
def test_a_wrong_file_is_explained(
    tmp_path: Path, sample: type[config.Settings], content: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        config.resolve(file=path, environment={})
    with pytest.raises(ConfigError, match=message):
        config.load_section(sample, "sample", path)


def test_a_missing_file_is_explained(tmp_path: Path, sample: type[config.Settings]) -> None:
    with pytest.raises(ConfigError, match="there is no settings file"):
        config.resolve(file=tmp_path / "absent.toml", environment={})
    with pytest.raises(ConfigError, match="can't be read"):
        config.resolve(file=tmp_path, environment={})


def test_a_service_reads_its_section_with_what_the_file_extends(
    file: Path, sample: type[config.Settings]
) -> None:
    settings = config.load_section(sample, "sample", file)
    assert settings.model_dump()["speed"] == 4
    assert settings.model_dump()["label"] == "shared"


def test_a_file_is_laid_over_given_sections(file: Path) -> None:
    below = config.resolve(environment={}, assignments=["sample.speed=9", "sample.label=run"])
    over = config.lay_over(below, file, ["sample.rate=2"])["sample"]
    assert (over["speed"], over["label"], over["rate"]) == (4, "run", 2.0)
    assert below["sample"]["speed"] == 9
    assert config.base_preset(file) == "quick"
    assert config.base_preset(None) is None


def test_settings_can_not_be_changed(sample: type[config.Settings]) -> None:
    settings = config.build(sample, "sample", {})
    with pytest.raises(ValueError, match="frozen"):
        settings.speed = 2  # type: ignore[attr-defined]


def test_the_hash_follows_values_and_not_their_order() -> None:
    one = config.sections_hash({"a": {"x": 1, "y": 2.0}, "b": {}})
    assert one == config.sections_hash({"b": {}, "a": {"y": 2.0, "x": 1}})
    assert one != config.sections_hash({"a": {"x": 1, "y": 2.5}, "b": {}})
    assert len(one) == 16


def test_the_league_plays_the_game_that_the_game_section_names(tmp_path: Path) -> None:
    other = "python:league.games.brawl.game:BrawlGame"

    def played(*assignments: str) -> str:
        return config.resolve(assignments=assignments, environment={})["matchmaker"]["game"]

    assert played() == "brawl"
    assert played(f"game.name={other}") == other
    assert played(f"game.name={other}", "matchmaker.game=leduc") == "leduc"
    file = tmp_path / "config.toml"
    file.write_text(f'[game]\nname = "{other}"\n')
    assert config.load_section(MatchmakerSettings, "matchmaker", file).game == other


def test_a_run_of_an_older_version_goes_on_with_its_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[learner]\nresident_snapshots = 200\nsteps = 7\n")
    loaded = config.resolve("laptop", file, environment={})["learner"]
    assert (loaded["steps"], loaded["resident_mib"]) == (7, 384)
    assert "resident_snapshots" not in loaded
    assert caplog.messages[0] == (
        "resident_snapshots = 200 is passed over: resident_mib, a bound in MiB, stands for it now"
    )
