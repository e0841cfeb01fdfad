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

    Holds up to `limit` networks, or as many as are in use at once when these are more; so memory
    follows the seats, not the league.
    """

    def __init__(self, load: Callable[[str], PlayingNetwork], limit: int, device: torch.device) -> None:
        self._load, self._limit, self._device = load, limit, device
        self._held: OrderedDict[str, FrozenWeights] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, digest: str) -> bool:
        return digest in self._held

    def get(self, digest: str) -> FrozenWeights:
        """The network's weights, loaded when they are not here; the loader's errors pass through."""
        if digest not in self._held:
            network = self._load(digest)
            # Matrices lie transposed: products of a few rows with `weight.mT` are then faster.
            parts = [
                parameter.detach().mT.flatten() if parameter.dim() == 2 else parameter.detach()
                for parameter in network.parameters()
            ]
            self._held[digest] = FrozenWeights(network.config, torch.cat(parts).to(self._device))
        self._held.move_to_end(digest)
        return self._held[digest]

    def trim(self, in_use: Collection[str]) -> None:
        """Forgets the longest unused beyond the limit."""
        idle = [digest for digest in self._held if digest not in in_use]
        for digest in idle[: max(0, len(self._held) - self._limit)]:
            del self._held[digest]


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

    def _reserve(self, models: int) -> None:
        have, size = self._weights_MP.shape
        if models > have:
            grown = self._weights_MP.new_empty(max(models, 2 * have), size)
            grown[:have] = self._weights_MP
            self._weights_MP = grown

    def _bind(self) -> None:
        """Points the network's parameters at the rows in use."""
        models, offset = len(self.members), 0
        for module, name, shape in self._places:
            part = self._weights_MP[:models, offset : offset + shape.numel()]
            part = part.view(models, *reversed(shape)).mT if len(shape) == 2 else part.view(models, *shape)
            setattr(module, name, nn.Parameter(part, requires_grad=False))
            offset += shape.numel()
