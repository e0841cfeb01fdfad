"""Imports do no work: what must start fast loads no torch, compiler, drawing library or cluster."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numba", "ray", "stable_baselines3", "sb3_contrib", "matplotlib", "rich")
LIGHT = (
    "league.rpc.client",
    "league.settings.file",
    "league.cli.main",
    "league.cli.standings",
    "league.stats.gates",
    "league.games",
    "league.games.registry",
    "league.games.settings",
    "league.agent.config",
    "league.runs.settings",
    "learner.settings",
    "evaluator.settings",
    "matchmaker.main",
    "matchmaker.settings",
)


@pytest.mark.parametrize("module", LIGHT)
def test_a_light_module_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}\nprint(*(set({HEAVY!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_section_can_be_resolved_without_torch() -> None:
    code = (
        "import sys\nfrom league.settings.base import resolve\nresolve('laptop', environment={})\n"
        f"print(*(set({HEAVY!r}) & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_services_know_nothing_of_each_other() -> None:
    services = {"learner", "matchmaker", "evaluator"}
    for service in sorted(services):
        code = f"import sys, {service}.main\nprint(*({services!r} & sys.modules.keys()))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [service]
