"""docs/troubleshooting.md names what exists: settings, commands, metrics, alarms, reasons,
messages.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_docs import ROOT
from test_docs_commands import PARSERS

import league.cluster.main
from league.agent.config import SIZES, AgentConfig
from league.games.brawl.rewards import PRESETS
from league.games.registry import game_spec
from league.runs import alarms
from league.runs.columns import TABLES
from league.settings.base import resolve, section_classes
from league.settings.presets import preset_names
from learner.doctor.findings import REASONS
from learner.train.build import SessionSettings, check_stages

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
TEXT = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
QUOTED = sorted(set(re.findall(r"`([^`]+)`", TEXT)))
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for name in ("league", "learner")
    for path in (ROOT / name).rglob("*.py")
)
OTHERS = {  # what other programs, guides and the system say
    "unsupported operand … 'function'",
    "mat1 and mat2 shapes cannot be multiplied",
    "No module named 'sb3_contrib'",
    "'league'",
    "clip_reward",
    "target_kl",
    "signal 9",
}
PLACES = {"bin/", ".venv", "config.toml", "RUN/learner-main/", "[agent]", "[learner]", "…_final"}


def checked(*assignments: str, preset: str = "laptop") -> None:
    """What a learner's start checks of its settings."""
    sections = resolve(preset, assignments=assignments, environment={})
    settings = SessionSettings.of(sections)
    check_stages(settings, sections["matchmaker"]["mixes"])
    AgentConfig.of(settings.agent, settings.game.spec())


def test_all_alarms_are_there() -> None:
    for kind in alarms.KINDS:
        subject = "left/3/-1/1" if kind == "clipped" else ""
        assert alarms.Alarm(kind, subject, 0.0).title.strip() in TEXT


def test_all_reasons_of_the_doctor_are_there_and_no_others() -> None:
    named: set[str] = set()
    for one in re.findall(r"\(((?:\d+|[A-Z])(?:(?:, | to )(?:\d+|[A-Z]))*)\)", TEXT):
        first, *rest = re.split(r", | to ", one)
        named |= {first, *rest}
        if " to " in one:
            named |= {str(number) for number in range(int(first), int(rest[-1]))}
    assert named == REASONS.keys()


def known_names() -> set[str]:
    """What a plain word in the page may be."""
    spec = game_spec("brawl")
    names = {
        f"{section}.{key}" for section, cls in section_classes().items() for key in cls.model_fields
    }
    names |= set(section_classes()["learner"].model_fields)
    names |= {column for columns in TABLES.values() for column in columns} | TABLES.keys()
    names |= {*spec.stats, *spec.reward_terms, *(bot.name for bot in spec.bots), *PRESETS, *SIZES}
    schemas = [cls.model_json_schema() for cls in section_classes().values()]
    return names | set(preset_names()) | set(choices_of(schemas))


def choices_of(schema: object) -> Iterator[str]:
    """The words that settings with a choice take."""
    if isinstance(schema, dict):
        yield from schema.get("enum", ())
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from choices_of(part)


def is_command(quote: str) -> bool:
    return quote.removeprefix("nohup ").startswith(("bin/", ".venv/bin/")) and quote not in PLACES


def test_every_name_that_is_quoted_exists() -> None:
    """Names of settings, columns, metrics, presets and bots; messages have several words."""
    names = known_names()
    strange = [
        quote
        for quote in QUOTED
        if re.fullmatch(r"[a-z0-9_./]+", quote)
        and quote not in names | OTHERS | PLACES
        and not is_command(quote)
        and f'"{quote}"' not in SOURCES  # a metric
    ]
    assert not strange


SETTINGS = [quote for quote in QUOTED if re.fullmatch(r"[\w.]+ = \S+", quote)]


@pytest.mark.parametrize("quote", SETTINGS)
def test_a_setting_can_be_given_so(quote: str) -> None:
    key, _, value = quote.partition(" = ")
    checked(f"{key if '.' in key else f'learner.{key}'}={value}")


FLAGS = [
    quote for quote in QUOTED if quote.startswith("--") and quote not in ("--run-dir", "--set")
]
STARTS = re.findall(r"^bin/start-league .*$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("words", [*FLAGS, *STARTS])
def test_the_flags_of_a_start_can_be_used(words: str) -> None:
    request = league.cluster.main.parse(shlex.split(words.removeprefix("bin/start-league"))).request
    checked(*request.assignments, preset=request.preset or "laptop")


COMMANDS = [quote for quote in QUOTED if is_command(quote) and quote.split()[0] in PARSERS]


@pytest.mark.parametrize("command", COMMANDS)
def test_its_program_understands_a_command(command: str) -> None:
    program, *words = shlex.split(command)
    PARSERS[program](words)
    if program == "bin/start-league":
        request = league.cluster.main.parse(words).request
        checked(*request.assignments, preset=request.preset or "laptop")


def test_the_script_prints_what_is_seen_and_paid(tmp_path: Path) -> None:
    (script,) = re.findall(
        r"<!-- run by tests/service/test_troubleshooting.py -->\n```python\n(.*?)```",
        PAGE,
        re.DOTALL,
    )
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    spec = game_spec("brawl")
    lines = done.stdout.splitlines()
    assert len(lines) == spec.observation_size + len(spec.reward_terms)
    assert re.fullmatch(r"own x +-?\d\.\d\d to +-?\d\.\d\d", lines[0])
    assert re.fullmatch(
        r"damage +paid +-?\d+\.\d\d in \d+ of \d+ frames", lines[spec.observation_size]
    )
