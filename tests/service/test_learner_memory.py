"""A learner that runs out of memory says what to lower, keeps what it has learned, and can
resume from it.
"""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from league.players import PlayerKind
from league.rpc.client import MatchmakerClient
from learner import main
from learner.rollout.league_vec_env import LeagueVecEnv
from learner.train.memory import is_out_of_memory
from matchmaker.main import MatchmakerServer
from matchmaker.settings import MatchmakerSettings

STARVED = Path(__file__).parent / "starved_learner.py"
MIXES = {"constant": {"constant": 1.0}, "league": {"constant": 1.0}}
SIZES = ["learner.matches=256", "learner.n_steps=32", "learner.batch_size=8192"]


def flags(address, run_dir, *more):
    sets = [word for size in SIZES for word in ("--set", size)]
    at = ["--matchmaker", address, "--run-dir", str(run_dir), "--preset", "smoke"]
    return [*at, "--cpu", "--ranks", "1", *sets, *more]


def starved_in_an_update(words):
    """In a process of its own, whose memory the kernel limits."""
    done = subprocess.run(
        [sys.executable, str(STARVED), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr  # which the supervisor does not restart
    return done.stderr


def starved_in_a_rollout(words, monkeypatch, capsys):
    """The 48th step wants more memory than any machine has."""
    step, calls = LeagueVecEnv.step_arrays, itertools.count(1)

    def greedy(env, actions_NA):
        if next(calls) == 48:
            np.ones(1 << 48)
        return step(env, actions_NA)

    with monkeypatch.context() as patch:
        patch.setattr(LeagueVecEnv, "step_arrays", greedy)
        assert main.main(words) == 2
    return capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "steps"),
    # what is free already may carry one update more
    [("update", (8192, 16384)), ("rollout", (256 * 47,))],
    ids=["update", "rollout"],
)
def test_out_of_memory_keeps_a_snapshot_and_names_the_settings(
    where, steps, tmp_path, monkeypatch, capsys, caplog
):
    monkeypatch.setattr(main, "stop_flag", lambda: lambda: False)  # the signals are pytest's
    caplog.set_level("INFO")
    settings = MatchmakerSettings(mixes=MIXES, within_snapshots="uniform")
    with MatchmakerServer(db=tmp_path / "league.db", port=0, settings=settings) as server:
        words = flags(server.address, tmp_path, "--steps", "32768")
        said = (
            starved_in_an_update(words)
            if where == "update"
            else starved_in_a_rollout(words, monkeypatch, capsys)
        )
        sentence = said.splitlines()[-1]
        for part in (
            f" {where}",
            "learner.batch_size (8192, a multiple of n_steps, 32)",
            "learner.matches (256)",
            "agent.size (tiny)",
        ):
            assert part in sentence, said
        with MatchmakerClient(server.address) as client:
            kept = client.players(kinds=[PlayerKind.SNAPSHOT])[-1]
            assert kept.step in steps
            assert kept.name in sentence
            assert client.status().open_leases == 0
        if where == "rollout":  # both leave the same; one more start is enough
            smaller = ("--set", "learner.batch_size=4096", "--steps", str(kept.step + 8192))
            assert main.main(flags(server.address, tmp_path, *smaller)) == 0
            assert re.search(rf"continues .*\b{kept.step}\b", caplog.text)


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
