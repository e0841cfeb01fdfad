"""A learner that runs out of memory says what to lower, keeps what it has learned, and can
resume from it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from league.players import PlayerKind
from league.rpc.client import MatchmakerClient
from learner.train.memory import is_out_of_memory
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

STARVED = Path(__file__).parent / "starved_learner.py"
MIXES = {"constant": {"constant": 1.0}, "league": {"constant": 1.0}}
SIZES = ["learner.matches=256", "learner.n_steps=32", "learner.batch_size=8192"]


def learn(command, address, run_dir, *flags):
    words = [
        sys.executable,
        *command,
        "--matchmaker",
        address,
        "--run-dir",
        str(run_dir),
        "--preset",
        "smoke",
    ]
    sets = [word for size in SIZES for word in ("--set", size)]
    return subprocess.run(
        [*words, "--cpu", "--ranks", "1", *sets, *flags],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("where", "steps"),
    # what is free already may carry one update more
    [("update", (8192, 16384)), ("rollout", (256 * 47,))],
    ids=["update", "rollout"],
)
def test_out_of_memory_keeps_a_snapshot_and_names_the_settings(where, steps, tmp_path):
    settings = MatchmakerSettings(mixes=MIXES, within_snapshots="uniform")
    with MatchmakerServer(db=tmp_path / "league.db", port=0, settings=settings) as server:
        done = learn([str(STARVED), where], server.address, tmp_path, "--steps", "32768")
        assert done.returncode == 2, done.stderr  # which the supervisor does not restart
        sentence = done.stderr.splitlines()[-1]
        for words in (
            f"ran out of it in its {where}",
            "learner.batch_size (8192, a multiple of n_steps, 32)",
            "learner.matches (256)",
            "agent.size (tiny)",
        ):
            assert words in sentence, done.stderr
        with MatchmakerClient(server.address) as client:
            kept = client.players(kinds=[PlayerKind.SNAPSHOT])[-1]
            assert kept.step in steps
            assert f"(it continues from {kept.name})" in sentence
            assert client.status().open_leases == 0
        if where == "rollout":
            return  # both leave the same; one more start is enough
        smaller = ["--set", "learner.batch_size=512", "--steps", str(kept.step + 8192)]
        again = learn(["-m", "learner"], server.address, tmp_path, *smaller)
        assert again.returncode == 0, again.stderr
        assert f"continues from step {kept.step}" in again.stderr


def test_ways_to_say_out_of_memory():
    def raised(work):
        with pytest.raises((RuntimeError, MemoryError)) as caught:
            work()
        return caught.value

    assert is_out_of_memory(raised(lambda: torch.empty(1 << 60)))
    assert is_out_of_memory(raised(lambda: np.ones(1 << 48)))
    assert is_out_of_memory(
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
    )
    assert is_out_of_memory(
        RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    )
    assert not is_out_of_memory(raised(lambda: torch.zeros(2) + torch.zeros(3)))
    assert not is_out_of_memory(ValueError("out of memory"))
