"""docs/troubleshooting.md names what exists: settings, commands, metrics, alarms, reasons,
messages.
"""

from __future__ import annotations

import logging
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from test_docs import ROOT
from test_docs_commands import PARSERS

import league.cluster.main
from evaluator.settings import EvaluatorSettings
from league.agent.batched_policy import BatchedPolicy
from league.agent.config import SIZES, AgentConfig
from league.agent.device import choose_device
from league.agent.network import AgentNetwork
from league.errors import LeagueError
from league.games.brawl.rewards import PRESETS
from league.games.registry import game_spec
from league.runs import alarms
from league.runs.columns import TABLES
from league.settings.base import resolve, section_classes
from league.settings.presets import preset_names
from learner.distributed.rank_group import RankGroup
from learner.doctor.findings import REASONS
from learner.ppo.loss import WeightedMeans
from learner.ppo.optimizer import GradientStep
from learner.rollout.matches import check_observations
from learner.train.build import SessionSettings, check_stages, make_game
from learner.train.checkpoint import load_weights
from learner.train.memory import is_out_of_memory, too_little

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
    "signal 9",
}
PLACES = {"bin/", ".venv", "config.toml", "RUN/learner-main/", "[agent]", "[learner]", "…_final"}


def settings_of(*assignments: str, preset: str = "laptop") -> SessionSettings:
    sections = resolve(preset, assignments=assignments, environment={})
    names = ("game", "agent", "learner", "curriculum", "regularisation")
    classes = section_classes()
    return SessionSettings(**{name: classes[name].model_validate(sections[name]) for name in names})


def checked(*assignments: str, preset: str = "laptop") -> None:
    """What a learner's start checks of its settings."""
    settings = settings_of(*assignments, preset=preset)
    sections = resolve(preset, assignments=assignments, environment={})
    clean = EvaluatorSettings.model_validate(sections["evaluator"])
    check_stages(
        settings,
        sections["matchmaker"]["mixes"],
        lambda opponent: clean.matches_against(opponent, milestone=False),
    )
    AgentConfig.of(settings.agent, settings.game.spec())


# -- messages
# ------------------------------------------------------------------------------------------


def not_finite() -> None:
    network: Any = torch.nn.Linear(2, 1)
    cpu = torch.device("cpu")
    descent = GradientStep(
        network, torch.optim.Adam(network.parameters()), 0.5, "float32", cpu, RankGroup()
    )
    descent.begin()
    total = network(torch.full((1, 2), torch.nan)).sum()
    descent.add(total, {"value": total})
    descent.reduce(WeightedMeans(()))
    descent.finish(7)


def another_size() -> None:
    model: Any = SimpleNamespace(policy=SimpleNamespace(network=torch.nn.Linear(2, 2)))
    load_weights(model, {"network": torch.nn.Linear(3, 3).state_dict()})


def contradicting() -> None:
    from league.runs.folder import Request, open_run

    folder = Path("run")
    with open_run(Request(run_dir=folder)):
        pass
    open_run(Request(run_dir=folder, assignments=("learner.ent_coef=0.01",)))


def no_memory() -> None:
    assert is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    raise too_little(settings_of(), torch.device("cpu"), "nothing was lost")


def too_many_at_once() -> str:
    config = AgentConfig(
        observation_size=64, own_size=32, action_size=10, sequence_length=17, **SIZES["tiny"]
    )
    batched_policy = BatchedPolicy(1, lambda _: AgentNetwork(config), seed=0, max_bytes=1)
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("league.agent.batched_policy").addHandler(handler)
    try:
        batched_policy.seat(0, "somebody")
        batched_policy.act(np.zeros((1, 64), np.float32))
    finally:
        logging.getLogger("league.agent.batched_policy").removeHandler(handler)
    return said[0]


def title(kind: str, subject: str = "") -> Callable[[], str]:
    return lambda: alarms.Alarm(kind, subject, 0.0).title


def setting(*assignments: str, preset: str = "laptop") -> Callable[[], None]:
    return lambda: checked(*assignments, preset=preset)


MESSAGES: dict[str, Callable[[], object]] = {
    "… has too little memory: the learner ran out of it": no_memory,
    "… has too little memory": no_memory,
    "the … snapshots that play at once take …": too_many_at_once,
    "… is not finite at step …: the update was not made": not_finite,
    "number … of seat …'s observation is nan": lambda: check_observations(
        torch.full((1, 2, 3), torch.nan).numpy(), [None]
    ),
    "there is no section [agnet]: did you mean 'agent'?": setting("agnet.size=tiny"),
    "[learner] has no setting 'ent_coeff': did you mean 'ent_coef'?": setting(
        "learner.ent_coeff=0.1"
    ),
    "[learner] ent_coef = 'linear' can't be used: input should be a valid number": setting(
        "learner.ent_coef=linear"
    ),
    "the weights to start from are of another agent size": another_size,
    "agent.history_stride is 4 and game.frame_skip 2": lambda: make_game(
        settings_of("game.frame_skip=2")
    ),
    "agent sequence_length = 30 leaves no output to pool over": setting(
        "agent.sequence_length=30", preset="full"
    ),
    "batch_size must be a multiple of n_steps": setting("learner.batch_size=100"),
    "plays 'agressive', which brawl does not have: did you mean 'aggressive'?": setting(
        "matchmaker.mixes.league.agressive=1"
    ),
    "names the bot drunk, which is held out": setting("matchmaker.mixes.league.drunk=1"),
    "was made with learner.ent_coef = 0.003, not 0.01": contradicting,
    "there is no GPU 0: this machine has none that torch can use": lambda: choose_device(gpu=0),
    "Computing on the CPU (no GPU found)": lambda: choose_device()[1],
    "KL too high": title("kl_too_high"),
    "critic explains nothing": title("value_unexplained"),
    "entropy collapsed": title("entropy_collapse"),
    "every match is won": title("always_won"),
    "constant always wins": title("never_won", "constant"),
    "combo never fires": title("term_silent", "combo"),
    "damage is the whole reward": title("term_dominates", "damage"),
    "loss/value is not finite": title("not_finite", "loss/value"),
}


@pytest.mark.parametrize("quote", MESSAGES)
def test_a_message_reads_as_it_is_quoted(
    quote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert quote in QUOTED
    try:
        said = str(MESSAGES[quote]())
    except LeagueError as error:
        said = str(error)
    wanted = ".*".join(re.escape(part) for part in quote.split("…"))
    assert re.search(wanted, said), said
    assert "\n" not in said


def test_all_alarms_are_there() -> None:
    told = " ".join(MESSAGES)
    for kind in alarms.KINDS:
        assert alarms.Alarm(kind, "", 0.0).title.strip() in told


def test_all_reasons_of_the_doctor_are_there_and_no_others() -> None:
    named: set[str] = set()
    for one in re.findall(r"\(((?:\d+|[A-Z])(?:(?:, | to )(?:\d+|[A-Z]))*)\)", TEXT):
        first, *rest = re.split(r", | to ", one)
        named |= {first, *rest}
        if " to " in one:
            named |= {str(number) for number in range(int(first), int(rest[-1]))}
    assert named == REASONS.keys()


# -- names
# ---------------------------------------------------------------------------------------------


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


def test_everything_quoted_is_accounted_for() -> None:
    names = known_names()
    strange = [
        quote
        for quote in QUOTED
        if not (
            quote in names
            or quote in OTHERS | PLACES | MESSAGES.keys() | {"CUDA out of memory"}
            or quote.startswith("--")
            or is_command(quote)
            or re.fullmatch(r"[\w.]+ = \S+", quote)
            or f'"{quote}"' in SOURCES  # a metric
        )
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


def test_a_run_that_goes_on_alone_is_started_as_it_says() -> None:
    (line,) = [quote for quote in QUOTED if quote.startswith("nohup ")]
    words = shlex.split(line.removeprefix("nohup "))
    assert words[-3:] == [">", "training.log", "&"]
    assert league.cluster.main.parse(words[1:-3]).headless


def test_the_script_prints_what_is_seen_and_paid(tmp_path: Path) -> None:
    (script,) = re.findall(
        r"<!-- run by tests/service/test_troubleshooting.py -->\n```python\n(.*?)```",
        PAGE,
        re.DOTALL,
    )
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    spec = game_spec("brawl")
    lines = done.stdout.splitlines()
    assert len(lines) == spec.observation_size + len(spec.reward_terms)
    assert re.fullmatch(r"own x +-?\d\.\d\d to +-?\d\.\d\d", lines[0])
    assert re.fullmatch(
        r"damage +paid +-?\d+\.\d\d in \d+ of \d+ frames", lines[spec.observation_size]
    )
