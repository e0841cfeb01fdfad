"""What `tests/bench/gpu.sh` says of a run: only the time in which it trained counts."""

import time
from pathlib import Path
from types import ModuleType

import pytest
from bench_programs import bench_program
from torch.utils.tensorboard import SummaryWriter

BEGUN = 1_800_000_000.0


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return bench_program("gpu_summary")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Updates every ten seconds: slow ones for twenty, then 5,000 steps each."""
    with SummaryWriter(tmp_path / "learner-main" / "tensorboard" / "learner_0") as writer:
        step = 0
        for update in range(8):
            step += 100 if update < 3 else 5000
            writer.add_scalar("progress/steps", step, step, walltime=BEGUN + 10 * update)
    return tmp_path


def busy(path: Path, rows: list[tuple[float, str]]) -> Path:
    """Rows as nvidia-smi writes them."""
    file = path / "gpu_busy.csv"
    lines = []
    for seconds, share in rows:
        moment = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(BEGUN + seconds))
        lines.append(f"{moment}.000, {share}, {1000 + int(seconds)}")
    file.write_text("\n".join([*lines, ""]))
    return file


def test_start_and_gauntlet_are_left_out(program: ModuleType, run: Path) -> None:
    told = program.summary(
        program.updates(run),
        program.readings(busy(run, [(0, "0"), (30, "80"), (60, "90"), (65, "[N/A]"), (90, "0")])),
        warm=20.0,
    )
    assert told.splitlines() == [
        "25000 steps in 50.0 s of training: 500 steps/s",
        "GPU busy 85.0 % of that time, at most 1060 MiB used (2 readings)",
    ]


def test_what_was_not_measured_is_said(program: ModuleType, run: Path) -> None:
    marks = program.updates(run)
    assert "fewer than two updates 65 s after the first" in program.summary(marks, [], 65.0)
    assert program.summary(marks, [], 0.0).endswith("nvidia-smi gave no reading in that time")
    assert program.updates(run / "elsewhere") == []
