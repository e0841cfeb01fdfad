"""The processes that environments are played in: how many changes nothing, and none outlives its
parent.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from buttons import begun, buttons, pressed
from game_contract import assert_same, history, luck
from small_environments import HANG

from league.games.registry import make_batched


def test_a_match_does_not_depend_on_the_number_of_workers() -> None:
    chances = luck(buttons(6), 30)
    chances[..., HANG:] = 0.0
    found = []
    for workers in (1, 2, 6):
        game = buttons(6, workers)
        game.bots_N2[::2, 1] = 0
        game.bots_N2[1::2] = -1
        game.reset(np.arange(6, dtype=np.uint64))
        game.bots_N2[:] = -1
        found.append(history(game, chances))
        assert len(game.worker_pids) == workers
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


def test_bots_draw_alike_whatever_the_number_of_workers_and_matches() -> None:
    found = []
    for matches, workers in [(1, 1), (8, 1), (8, 3)]:
        game = make_batched("pettingzoo:small_environments:Nim", matches, workers=workers)
        game.bots_N2[:] = 0
        game.reset(np.arange(matches, dtype=np.uint64))
        found.append(history(game, luck(game, 30)))
    assert_same(found[1], found[2])
    assert_same(found[0], [row[:1] for row in found[1]])


def test_the_random_bot_takes_every_legal_choice_alike() -> None:
    from league.games.pettingzoo.game import draws, random_choices, random_keys

    seeds_N, frames_N = np.arange(30_000, dtype=np.uint64), np.zeros(30_000, np.int32)
    bits_N2 = draws(seeds_N, frames_N)
    legal_N2A = np.tile(np.array([True, False, True, True, False]), (30_000, 2, 1))
    shares_2A = random_choices(bits_N2, legal_N2A).mean(axis=0)
    assert np.allclose(shares_2A, [1 / 3, 0, 1 / 3, 1 / 3, 0], atol=0.01)
    keys_N2A = random_keys(bits_N2, 4).astype(float)
    assert np.allclose(keys_N2A.mean(axis=0), 0.5, atol=0.01)
    together = np.corrcoef(keys_N2A.reshape(-1, 8).T)
    assert np.abs(together - np.eye(8)).max() < 0.03


def test_what_environments_print_stays_out_of_standard_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    game = begun(noisy=True)
    game.step(pressed(game, {}))
    game.close()
    assert capfd.readouterr().out == ""


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if status != "Z":
                found.append(pid)
    return found


def test_closing_ends_the_workers_at_once() -> None:
    game = begun(workers=3)
    pids = game.worker_pids
    assert alive(pids) == pids
    game.close()
    assert alive(pids) == []


ORPHANS = """
import os, sys, threading, time
import numpy as np
from league.games.registry import make_batched
game = make_batched("pettingzoo:small_environments:Buttons", 2, workers=2, step_seconds=60)
game.reset(np.arange(2, dtype=np.uint64))
print(*game.worker_pids, flush=True)
actions = np.zeros((2, 2, 7), np.uint8)
actions[:, :, 0] = 1
actions[1, 0] = np.eye(7)[2]
game.step(actions)
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    """A process with a game of two workers, one of which hangs in a step."""
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHANS],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    yield process
    process.kill()
    process.wait()


def test_workers_end_with_their_parent_even_in_the_middle_of_a_step(
    parent: subprocess.Popen[str],
) -> None:
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    time.sleep(0.5)
    assert len(alive(pids)) == 2
    parent.kill()
    parent.wait()
    until = time.monotonic() + 10
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(pids) == []
