"""Programs of `tests/bench` as modules, for the tests of what they compute."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).parents[1] / "bench"


def bench_program(name: str) -> ModuleType:
    """Loads the program of this name again; `sys.path` does not change."""
    before = sys.path.copy()
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    # they add the repository's root, and learner.py in their folder is not the package
    sys.path[:] = before
    return module
