"""For every test, and every process that a test starts."""

import os

import pytest

# Two OpenMP threads on two busy cores made a learner 50 times slower; `bin/test` sets this too.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("KUMITE_NO_DASHBOARD", "1")  # a second of a core for each league


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the tests of whole systems first: they wait most, and others can run meanwhile."""
    items.sort(key=lambda item: "system" not in item.path.parts)
