"""Many networks of one architecture that run as one: their weights lie in the rows of one matrix.

Shape suffixes: M models, P weights of a model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from league.agent.architectures import network_of
from league.agent.contract import NetworkConfig, PlayingNetwork


class FrozenWeights(NamedTuple):
    """One network's sizes and its weights in one vector."""

    config: NetworkConfig
    weights_P: Tensor


class Residents:
    """The networks held in memory: the last used ones, and always those in use.

    What is held keeps to `limit` bytes, or to what those in use need when that is more; so memory
    follows the seats, not the league.
    """

    def __init__(
        self, load: Callable[[str], PlayingNetwork], limit: int, device: torch.device
    ) -> None:
        self._load, self.limit, self._device = load, limit, device
        self._held: OrderedDict[str, FrozenWeights] = OrderedDict()
        self.size_bytes = 0
        """Of all weights that are held."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, digest: str) -> bool:
        return digest in self._held

    def get(self, digest: str) -> FrozenWeights:
        """The network's weights, loaded when they are not here; the loader's errors pass
        through.
        """
        if digest not in self._held:
            network = self._load(digest)
            # Matrices lie transposed: products of a few rows with `weight.mT` are then faster.
            parts = [
                parameter.detach().mT.flatten() if parameter.dim() == 2 else parameter.detach()
                for parameter in network.parameters()
            ]
            held = FrozenWeights(network.config, torch.cat(parts).to(self._device))
            self._held[digest] = held
            self.size_bytes += held.weights_P.nbytes
        self._held.move_to_end(digest)
        return self._held[digest]

    def trim(self, in_use: Collection[str], beside: int) -> int:
        """Forgets the longest unused until what is held fits the limit with `beside` bytes of
        copies.

        Those in use stay. Returns the bytes by which they alone are over the limit, 0 when they
        fit.
        """
        if self.size_bytes + beside <= self.limit:
            return 0
        for digest in [digest for digest in self._held if digest not in in_use]:
            if self.size_bytes + beside <= self.limit:
                break
            self.size_bytes -= self._held.pop(digest).weights_P.nbytes
        return max(0, self.size_bytes + beside - self.limit)


class NetworkStack:
    """M networks whose `step` is one batched product: inputs `[M, G, ...]`, outputs `[M, G, ...]`.

    `members` names the rows. Changing the members copies only the rows that change.
    """

    def __init__(self, config: NetworkConfig, device: torch.device) -> None:
        with torch.device("meta"):
            self.network = network_of(config).requires_grad_(False)
        self._places = [
            (module, name, parameter.shape)
            for module in self.network.modules()
            for name, parameter in module.named_parameters(recurse=False)
        ]
        size = sum(shape.numel() for _, _, shape in self._places)
        self._weights_MP = torch.empty(0, size, device=device)
        self.members: list[str] = []

    @property
    def size_bytes(self) -> int:
        """Of the matrix, rows kept for more members included."""
        return self._weights_MP.nbytes

    def bytes_for(self, models: int) -> int:
        """`size_bytes` once there are so many members."""
        return self._rows_for(models) * self._weights_MP.shape[1] * self._weights_MP.element_size()

    def assign(self, wanted: Sequence[str], weights_of: Callable[[str], Tensor]) -> None:
        """Makes exactly `wanted` the members; those that stay keep their rows where possible."""
        if set(wanted) == set(self.members):
            return
        kept = [digest if digest in wanted else "" for digest in self.members[: len(wanted)]]
        kept += [""] * (len(wanted) - len(kept))
        placed = set(kept)
        rest = iter([digest for digest in wanted if digest not in placed])
        self._reserve(len(wanted))
        for row, digest in enumerate(kept):
            if not digest:
                kept[row] = next(rest)
                self._weights_MP[row].copy_(weights_of(kept[row]))
        self.members = kept
        self._bind()

    def _rows_for(self, models: int) -> int:
        """Rows of the matrix for so many members: a quarter more than these when it has to
        change, so that one that comes or goes copies one row and not all; and not twice as many
        for long.
        """
        have = len(self._weights_MP)
        return have if models <= have <= 2 * models + 1 else models + models // 4

    def _reserve(self, models: int) -> None:
        rows, kept = self._rows_for(models), min(models, len(self._weights_MP))
        if rows != len(self._weights_MP):
            changed = self._weights_MP.new_empty(rows, self._weights_MP.shape[1])
            changed[:kept] = self._weights_MP[:kept]
            self._weights_MP = changed

    def _bind(self) -> None:
        """Points the network's parameters at the rows in use."""
        models, offset = len(self.members), 0
        for module, name, shape in self._places:
            part = self._weights_MP[:models, offset : offset + shape.numel()]
            part = (
                part.view(models, *reversed(shape)).mT
                if len(shape) == 2
                else part.view(models, *shape)
            )
            setattr(module, name, nn.Parameter(part, requires_grad=False))
            offset += shape.numel()
