"""Adds up numbers over ranks in shared memory. The ranks must be forks of the same process.

With two ranks on two cores, adding up the gradients of the network of the preset `laptop` (600 kB)
takes 0.4 ms. With gloo, over the loopback interface, it takes 2.9 ms.
"""

from __future__ import annotations

import mmap
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import TYPE_CHECKING

from league.errors import RankGone

if TYPE_CHECKING:  # the launcher is imported before torch
    from torch import Tensor

SLOT = 1 << 20
"""Largest count of numbers that a rank writes at once. Memory is reserved for this many numbers,
but a page takes memory only once a rank has written to it.
"""
WAIT_SECONDS = 1800.0
"""Longest time that a rank waits for another rank, the same as in torch's process group."""

_current: SharedSum | None = None


def current() -> SharedSum | None:
    """Returns the `SharedSum` that this process has entered, or None if `enter` was not called."""
    return _current


class SharedSum:
    """Adds up float32 numbers over all ranks. The launcher makes the object before it forks the
    ranks.

    Each rank has two slots that no other rank writes, and uses the two slots alternately. To
    compute a sum, each rank writes its slot, reports the slot as complete, and waits for the
    reports of all other ranks. Then it reads the slots of all ranks. A rank's report for the next
    sum shows that it has read all slots of this sum. So when a rank writes a slot again, all ranks
    have read the old numbers.

    Args:
        ranks: number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._memory = mmap.mmap(-1, 2 * ranks * SLOT * 4)
        self._pairs = {pair: socket.socketpair() for pair in combinations(range(ranks), 2)}

    def enter(self, rank: int) -> None:
        """Makes this process the rank `rank`. The process closes its copies of the connections'
        ends that belong to other ranks. So when a rank ends, the rank's connections close, and the
        other ranks notice.
        """
        global _current
        _current = self
        self._peers = []
        for pair, ends in self._pairs.items():
            for owner, end in zip(pair, ends, strict=True):
                if owner == rank and end.fileno() >= 0:
                    end.settimeout(WAIT_SECONDS)
                    self._peers.append(end)
                else:
                    end.close()
        self._rank, self._turn = rank, 0

    def close(self) -> None:
        """Closes the connections in the launcher, once all ranks are forked."""
        for ends in self._pairs.values():
            for end in ends:
                end.close()

    def add_up(self, numbers: Tensor) -> None:
        """Replaces float32 numbers `[L]` on the CPU by their sum over all ranks.

        All ranks add in the same order, so they get the same bits.

        Raises:
            RankGone: another rank has ended.
        """
        import torch

        slots_2RL = torch.frombuffer(self._memory, dtype=torch.float32).view(2, self._ranks, SLOT)
        for part in numbers.split(SLOT):
            slots_RL = slots_2RL[self._turn, :, : len(part)]
            self._turn = 1 - self._turn
            slots_RL[self._rank].copy_(part)
            self._meet()
            part.copy_(slots_RL.sum(0))

    def _meet(self) -> None:
        """Reports this rank's slot as complete, and waits for the reports of all other ranks."""
        with _gone():
            for peer in self._peers:
                peer.sendall(b".")
            for peer in self._peers:
                if not peer.recv(1):
                    raise ConnectionResetError("a connection was closed")


@contextmanager
def _gone() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RankGone(f"another rank of this learner has ended ({error})") from None
