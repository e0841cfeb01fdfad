"""Runs a learner in several processes (ranks). Each rank plays its own matches, and all ranks make
each update together.

Every minibatch is divided among the ranks. A rank computes its part of the gradient, and the sum
over all ranks is the gradient of the whole minibatch.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor, distributed

from league.cluster.engine import RENDEZVOUS
from league.errors import NumericalFault, RankGone
from learner.distributed import shared_sum

TIMEOUT = timedelta(minutes=30)
"""Longest time that a rank waits for the other ranks. A rank may itself wait for the matchmaker, so
this time is longer than the longest wait for the matchmaker.
"""


def join(device: torch.device) -> None:
    """Makes torch's default process group if `WORLD_SIZE` says that there are several ranks.

    NCCL sends tensors on GPUs and gloo sends all other tensors, both over the loopback interface
    unless an environment variable names another interface.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return
    loopback = "lo" if sys.platform == "linux" else "lo0"
    for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        os.environ.setdefault(variable, loopback)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    url = os.environ.get(RENDEZVOUS, "env://")
    store = _store(url, rank, size) if url.startswith("tcp://") else None
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
        init_method=None if store else url,
        store=store,
        rank=rank,
        world_size=size,
        timeout=TIMEOUT,
    )


def _store(url: str, rank: int, size: int) -> distributed.TCPStore:
    """Returns the store at which the ranks meet. Torch's own would listen on all interfaces."""
    place = urlsplit(url)
    address, port = str(place.hostname), int(place.port or 0)
    listener = socket.create_server((address, port)).detach() if rank == 0 else None
    return distributed.TCPStore(address, port, size, rank == 0, TIMEOUT, master_listen_fd=listener)


def leave() -> None:
    """Ends the process group, if it exists, when all ranks are done."""
    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


class RankGroup:
    """Connects the processes of torch's default group. Without such a group, it represents this
    process alone.

    All ranks call each method in the same order. A method raises `RankGone` when another rank has
    ended.

    Args:
        alone: whether to represent this process alone even if a group exists.
    """

    def __init__(self, *, alone: bool = False) -> None:
        exists = not alone and distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if exists else 0
        self.size = distributed.get_world_size() if exists else 1

    @property
    def is_leader(self) -> bool:
        """Whether this is the leader (rank 0), which writes files and publishes snapshots."""
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """Returns a seed for this rank, so that no two ranks draw the same numbers. The leader
        (rank 0) gets `seed` itself.
        """
        return seed + 1_000_003 * self.rank

    def sum(self, numbers: Tensor) -> Tensor:
        """Returns the sum of `numbers` over all ranks, the same on every rank."""
        return self._reduced(numbers, distributed.ReduceOp.SUM)

    def max(self, number: int) -> int:
        """Returns the largest of all ranks' numbers. The call is also a barrier."""
        return int(self._reduced(torch.tensor(number), distributed.ReduceOp.MAX))

    def any(self, flag: bool) -> bool:
        """Returns whether `flag` is true on at least one rank."""
        return bool(self.max(int(flag)))

    def _reduced(self, numbers: Tensor, how: Any) -> Tensor:
        if self.size > 1:
            numbers = numbers.clone()
            with _peers():
                distributed.all_reduce(numbers, how)
        return numbers

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter], extra: Tensor) -> Tensor:
        """Replaces every gradient by its sum over all ranks. Missing gradients count as zeros.

        On ranks that `launch` has forked, gradients on the CPU are summed in shared memory.

        Args:
            parameters: the parameters with the gradients.
            extra: further numbers to sum in the same message. Fewer messages are faster, because
                the ranks wait for each other in each message.

        Returns:
            The sum of `extra`.
        """
        if self.size == 1:
            return extra
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        message = torch.cat([extra.flatten().to(parts[0]), *(part.flatten() for part in parts)])
        shared = shared_sum.current()
        if shared is not None and message.device.type == "cpu":
            shared.add_up(message)
        else:
            with _peers():
                distributed.all_reduce(message)
        summed, *gradients = message.split([extra.numel(), *(part.numel() for part in parts)])
        for parameter, part, gradient in zip(trained, parts, gradients, strict=True):
            parameter.grad = gradient.view_as(part)
        return summed.view_as(extra).to(extra)

    def broadcast(self, value: Any) -> Any:
        """Returns the `value` of the leader (rank 0), on every rank."""
        if self.size == 1:
            return value
        values = [value]
        with _peers():
            distributed.broadcast_object_list(values, 0)
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        """Returns the `value` of every rank on the leader (rank 0), and an empty list on other
        ranks.
        """
        if self.size == 1:
            return [value]
        values = [None] * self.size if self.is_leader else None
        with _peers():
            distributed.gather_object(value, values)
        return list(values or ())

    def broadcast_weights(self, network: torch.nn.Module) -> None:
        """Gives every rank the parameters and buffers of the leader (rank 0)."""
        if self.size > 1:
            with _peers(), torch.no_grad():
                for tensor in network.state_dict().values():
                    distributed.broadcast(tensor, 0)

    def check_weights(self, network: torch.nn.Module) -> None:
        """Raises `NumericalFault` when the ranks' weights are not the same bit for bit."""
        if self.size == 1:
            return
        digest = hashlib.sha256()
        for tensor in network.state_dict().values():
            digest.update(tensor.detach().cpu().numpy().tobytes())
        if self.any(self.broadcast(digest.hexdigest()) != digest.hexdigest()):
            raise NumericalFault(
                "the ranks' weights are no longer the same: use devices of one kind only, "
                "and continue from the newest checkpoint with fewer of them"
            )


@contextmanager
def _peers() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # gloo and nccl: a connection was closed
        raise RankGone(f"another rank of this learner has ended ({str(error)[:200]})") from None
