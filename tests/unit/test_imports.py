"""Light modules load no heavy packages, and services do not load each other."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numba", "numpy", "scipy", "pandas", "ray", "matplotlib", "stable_baselines3")
NO_TORCH = ("torch", "numba", "ray", "stable_baselines3", "matplotlib")


def loaded(code: str, packages: tuple[str, ...]) -> list[str]:
    """Which of `packages` are loaded after `code` ran in a new interpreter."""
    program = f"import sys\n{code}\nprint(*(set({packages!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ("import league.rpc.client, league.v1.evaluator_pb2_grpc", HEAVY),
        (
            "from league.settings.base import resolve; resolve('laptop')\n"
            "import league.settings.file, league.cli.main, league.stats.gates, matchmaker.main\n"
            "import league.games.registry, league.agent.config",
            NO_TORCH,
        ),
        ("import league.contest.recordings, league.views.film", NO_TORCH),
        ("import league.sweep.command", (*NO_TORCH, "pandas", "scipy")),
        ("import league.views.dashboard.app", (*NO_TORCH, "pandas", "scipy")),
        ("import matchmaker.main, league.cluster.main", (*NO_TORCH, "pandas", "scipy", "mpmath")),
        ("import league; league.open", (*HEAVY, "gymnasium", "grpc", "typing_extensions")),
        (
            "import league, pathlib; pathlib.Path('run.json').write_text('{\"format\": 1}')\n"
            "league.open('.').close()",
            (*NO_TORCH, "pandas", "gymnasium"),
        ),
    ],
)
def test_light_modules_load_nothing_heavy(code: str, packages: tuple[str, ...]) -> None:
    assert loaded(code, packages) == []


@pytest.mark.parametrize("service", ["learner", "matchmaker", "evaluator"])
def test_services_load_only_their_own_package(service: str) -> None:
    assert loaded(f"import {service}.main", ("learner", "matchmaker", "evaluator")) == [service]
