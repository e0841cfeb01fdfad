"""Learners that learn together: each plays matches of its own, and all make one and the same
update.

A rank's gradient is its share of the whole minibatch's, so what ranks do with gradients is add them
up. What else they tell each other is plain values and tensors, read without running code.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed

from league.errors import NumericalFault, RankGone
from learner.distributed.shared_sum import SharedSum

Values = Mapping[str, Any]
"""Numbers, texts, lists, dictionaries and tensors."""


class Ranks:
    """All the processes of `torch.distributed`'s default group, or this one alone when there is
    none.

    Every method but the properties is called by all ranks in the same order. They raise `RankGone`
    when another rank has ended: nothing can go on without it. With `together` False it stands for
    this one alone.
    """

    def __init__(self, *, together: bool = True) -> None:
        together = together and distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if together else 0
        self.count = distributed.get_world_size() if together else 1
        self._shared: SharedSum | None = None
        self._size = 0

    @property
    def leads(self) -> bool:
        """Whether this is the rank that writes and publishes."""
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """A seed of this rank's own, so that no two draw alike; the leading rank's is `seed`
        itself.
        """
        return seed + 1_000_003 * self.rank

    # -- sums -----------------------------------------------------------------------------------

    def add_up(self, numbers: Tensor) -> Tensor:
        """The sum over all ranks, the same on each; alone, `numbers`."""
        if self.count > 1:
            numbers = numbers.clone()
            self._reduce(numbers)
        return numbers

    def any(self, flag: bool) -> bool:
        """Whether it is true on some rank."""
        return flag if self.count == 1 else bool(self.add_up(torch.tensor(float(flag))) > 0)

    def largest(self, number: int) -> int:
        """The largest of all ranks' numbers; nobody has it before all have given theirs."""
        if self.count == 1:
            return number
        numbers = torch.tensor(number)
        with _together():
            distributed.all_reduce(numbers, distributed.ReduceOp.MAX)
        return int(numbers)

    def add_up_gradients(self, parameters: Iterable[torch.nn.Parameter], beside: Tensor) -> Tensor:
        """Makes every gradient the sum over all ranks; a missing one counts as zeros.

        Returns the sum of the few numbers `beside` as well, all in one message: each makes every
        rank wait.
        """
        if self.count == 1:
            return beside
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        sizes = [part.numel() for part in parts]
        memory = self._memory(sum(sizes), all(_is_shareable(part) for part in parts))
        if memory is None:
            told = beside.flatten().to(parts[0])
            flat = torch.cat([told, *(part.flatten() for part in parts)])
            self._reduce(flat)
            summed, flat = flat.split([told.numel(), sum(sizes)])
            summed = summed.view_as(beside).to(beside)
        else:
            summed = beside.clone()
            flat = memory.add_up(parts, lambda: self._reduce(summed))
        for parameter, part in zip(trained, flat.split(sizes), strict=True):
            parameter.grad = part.view_as(parameter)
        return summed

    def _memory(self, size: int, shareable: bool) -> SharedSum | None:
        """What vectors of `size` are added up by: made once, for a learner's gradients are all
        of one.
        """
        if shareable and self._size != size:
            self._size, self._shared = size, SharedSum.opened(self, size)
        return self._shared if shareable else None

    def _reduce(self, numbers: Tensor) -> None:
        with _together():
            distributed.all_reduce(numbers)

    # -- from the leading rank, and to it -------------------------------------------------------

    def leading(self, values: Values) -> Values:
        """What the leading rank gave, on every rank."""
        if self.count == 1:
            return values
        written = _written(values) if self.leads else torch.zeros(0, dtype=torch.uint8)
        size = torch.tensor(len(written))
        with _together():
            distributed.broadcast(size, 0)
            written = written if self.leads else torch.zeros(int(size), dtype=torch.uint8)
            distributed.broadcast(written, 0)
        return values if self.leads else _read(written)

    def gather(self, values: Values) -> list[Values]:
        """What every rank gave, in their order, on the leading rank; an empty list on the
        others.
        """
        if self.count == 1:
            return [values]
        written = _written(values)
        sizes = [torch.tensor(0) for _ in range(self.count)]
        with _together():
            distributed.all_gather(sizes, torch.tensor(len(written)))
            padded = torch.zeros(int(max(sizes)), dtype=torch.uint8)
            padded[: len(written)] = written
            parts = [torch.zeros_like(padded) for _ in range(self.count)] if self.leads else None
            distributed.gather(padded, parts)
        return [_read(part[:size]) for part, size in zip(parts or (), sizes, strict=False)]

    def share_weights(self, network: torch.nn.Module) -> None:
        """Gives every rank the leading one's parameters and buffers."""
        if self.count > 1:
            with _together(), torch.no_grad():
                for tensor in network.state_dict().values():
                    distributed.broadcast(tensor, 0)

    def check_weights(self, network: torch.nn.Module) -> None:
        """Raises `NumericalFault` when ranks no longer have the same weights, bit for bit."""
        if self.count == 1:
            return
        digest = hashlib.sha256()
        for tensor in network.state_dict().values():
            digest.update(tensor.detach().cpu().numpy().tobytes())
        if self.any(self.leading({"digest": digest.hexdigest()})["digest"] != digest.hexdigest()):
            raise NumericalFault(
                "the ranks' weights are no longer the same: learn together on devices of one kind only; "
                "go on from the newest checkpoint with fewer"
            )


@contextmanager
def _together() -> Iterator[None]:
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # gloo and nccl: a connection was closed
        raise RankGone(f"another rank of this learner is gone ({str(error)[:200]})") from None


def _is_shareable(part: Tensor) -> bool:
    return part.device.type == "cpu" and part.dtype == torch.float32


def _written(values: Values) -> Tensor:
    file = io.BytesIO()
    torch.save(dict(values), file)
    return torch.frombuffer(bytearray(file.getbuffer()), dtype=torch.uint8)


def _read(written: Tensor) -> Values:
    return torch.load(io.BytesIO(written.numpy().tobytes()), map_location="cpu", weights_only=True)
