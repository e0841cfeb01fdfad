"""Sums of gradients over ranks by way of memory that they share."""

from __future__ import annotations

import errno
import os
import random
import threading
import time

import pytest
import torch

from learner.distributed import shared_sum
from learner.distributed.ranks import Ranks
from learner.distributed.shared_sum import SharedSum

RANKS, ROUNDS, SIZE = 3, 60, 7


def test_whoever_is_ahead_overwrites_nothing_that_another_still_reads():
    places = torch.zeros(2, RANKS, SIZE)
    all_here = threading.Barrier(RANKS)
    sums: list[list[torch.Tensor]] = [[] for _ in range(RANKS)]

    def play(rank: int) -> None:
        luck, own = random.Random(rank), SharedSum(places, rank)
        for number in range(ROUNDS):
            numbers = torch.full((SIZE,), float(number * 10**rank))

            def wait() -> None:
                all_here.wait()
                time.sleep(luck.choice((0.0, 0.0, 0.004)))  # some read late

            sums[rank].append(own.add_up(numbers.split([2, SIZE - 2]), wait))

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = torch.arange(ROUNDS).float().unsqueeze(1).expand(-1, SIZE) * 111
    for found in sums:
        assert torch.equal(torch.stack(found), expected)


def test_a_sum_is_no_view_of_the_memory():
    memory = SharedSum.opened(Ranks(), 3)
    assert memory is not None
    first = memory.add_up([torch.ones(2), torch.ones(1)], lambda: None)
    for _ in range(2):
        memory.add_up([torch.zeros(3)], lambda: None)
    assert first.tolist() == [1.0, 1.0, 1.0]


@pytest.fixture
def folders(tmp_path, monkeypatch):
    made = tmp_path / "memory", tmp_path / "disk"
    for folder in made:
        folder.mkdir()
    monkeypatch.setattr(shared_sum, "MEMORY", made[0])
    monkeypatch.setattr(shared_sum.tempfile, "gettempdir", lambda: str(made[1]))
    return made


def test_without_room_in_memory_a_file_does_and_without_any_there_is_none(folders, monkeypatch):
    """A file that is only promised would end the process by a signal when the room is gone."""
    asked: list[int] = []
    refusals = [1]

    def allocate(handle: int, offset: int, size: int) -> None:
        asked.append(size)
        if len(asked) <= refusals[0]:
            raise OSError(errno.ENOSPC, "no space left on device")
        os.ftruncate(handle, size)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    memory = SharedSum.opened(Ranks(), 5)
    assert memory is not None
    assert memory.size == 5
    assert asked == [40, 40], "two places of five float32 numbers, asked for in both folders"
    refusals[0] = 4
    assert SharedSum.opened(Ranks(), 5) is None
    assert [list(folder.iterdir()) for folder in folders] == [[], []], "nothing is left behind"
