"""Every benchmark starts as its page says: a file beside it has the name of a package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[1] / "bench"
PROGRAMS = sorted(path.name for path in FOLDER.glob("*.py") if "ArgumentParser" in path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_starts(name: str) -> None:
    command = [sys.executable, str(FOLDER / name), "--help"]
    environment = {**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")


def test_those_that_take_flags_are_found() -> None:
    assert {"learner.py", "skill.py", "exploitability.py", "agent.py"} <= set(PROGRAMS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_the_gpu_benchmark_says_that_there_is_no_gpu(tmp_path: Path) -> None:
    done = subprocess.run(
        [FOLDER / "gpu.sh", tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "gpu.sh: there is no CUDA GPU 0 that torch can use on this machine: run it on one that has."
    )
    assert not (tmp_path / "out").exists()
