"""Every benchmark starts as its page says: a file in its folder has the name of a package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "bench"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py") if "ArgumentParser" in path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_starts(name: str) -> None:
    command = [sys.executable, str(FOLDER / name), "--help"]
    environment = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
