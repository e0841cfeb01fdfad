"""Many seats played by many different agents in a few batched forwards.

Seats that one snapshot plays form a group; groups of like size and architecture run as one stack,
padded to the class's size: at most twice the seats plus `SMALLEST` rows a group.

Shape suffixes: S seats, O observation, A keys, M models of a stack, G rows a model.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from league.agent.architectures import config_of, network_of
from league.agent.contract import AgentState, NetworkConfig, PlayingNetwork
from league.agent.heads import MaskedChoice, choose
from league.errors import DataCorrupt, InvalidInput
from league.games.base import CHOICE, KEYS

log = logging.getLogger(__name__)

LIVE = "live"
"""Stands for the weights given to `BatchedPolicy.set_live`, read anew at every act."""
SMALLEST = 4
_MIB = 1 << 20

_Class = tuple[NetworkConfig, int]


@dataclass
class _Batch:
    """One forward: the seats in its rows (`num_seats` where a row is padding), model by model.

    `state` is the rows' own from the first forward on, until it is put back.
    """

    network: PlayingNetwork
    config: NetworkConfig
    seats: Tensor
    shape: tuple[int, ...]
    state: AgentState | None = None


class BatchedPolicy:
    """Plays `num_seats` seats, each by the snapshot (or live network) that sits there.

    Args:
        num_seats: S.
        load: digest → network; called when a digest is seated that is not resident. Its errors pass
            through `seat`, and the seat stays as it was.
        seed: of the keys drawn, in a stream that no learner of the same seed draws from. All seats
        draw at
            every act, so a seat's luck does not depend on others.
        max_bytes: of frozen weights in memory, copies in stacks included. The longest unused go
        first; those
            that are seated stay, with a warning when they alone take more.
        action_size, action_kind: A and what actions are, when a vacant batched_policy is asked to act before
        any
            network was seen; later seats must agree.
        device: where to compute; the live network must be there too.
    """

    def __init__(
        self,
        num_seats: int,
        load: Callable[[str], PlayingNetwork],
        *,
        seed: int,
        max_bytes: int = 1 << 30,
        action_size: int | None = None,
        action_kind: str = KEYS,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_seats = num_seats
        self._device = torch.device(device)
        self._residents = Residents(load, max_bytes, self._device)
        self._live: PlayingNetwork | None = None
        self._digests = [""] * num_seats
        self._greedy_S1 = torch.zeros(num_seats, 1, dtype=torch.bool)
        self._states: dict[NetworkConfig, AgentState] = {}
        self._stacks: dict[_Class, NetworkStack] = {}
        self._batches: list[_Batch] | None = None
        self._action_size, self._action_kind = action_size, action_kind
        self._generator = torch.Generator().manual_seed(_own_stream(seed))
        self._warned = False
        self.logits_SA: Tensor | None = None
        """Of the last act, -inf where nobody sits."""

    @property
    def device(self) -> torch.device:
        """Where seats are played; the live network must be there."""
        return self._device

    @property
    def has_live(self) -> bool:
        """Whether a live network is set."""
        return self._live is not None

    @property
    def resident(self) -> int:
        """Frozen networks in memory."""
        return len(self._residents)

    @property
    def resident_bytes(self) -> int:
        """Of their weights, and of the copies of those that play."""
        return self._residents.size_bytes + sum(stack.size_bytes for stack in self._stacks.values())

    def set_live(self, network: PlayingNetwork | None) -> None:
        """The network that plays the seats of `LIVE`; its weights are read at every act, never
        copied.
        """
        self._live = network
        self._regroup()
        if network is not None:
            self._admit(network.config)

    @torch.inference_mode()
    def seat(self, index: int, digest: str, *, greedy: bool = False) -> None:
        """Seats a snapshot (or `LIVE`) with an empty history; whoever sat there leaves."""
        if digest == LIVE and self._live is None:
            raise InvalidInput(
                "a seat was given to the live network, but none is set: call set_live first"
            )
        config = (
            self._live.config
            if digest == LIVE and self._live
            else self._residents.get(digest).config
        )
        self._admit(config)
        self._put_back()
        for part in self._states[config]:
            part[index].zero_()
        changed = self._digests[index] != digest
        self._digests[index] = digest
        self._greedy_S1[index] = greedy
        if changed:
            self._regroup()
            self._make_room(self.resident_bytes - self._residents.size_bytes)

    def vacate(self, index: int) -> None:
        """Empties a seat; it presses nothing from now on (or makes some legal choice)."""
        if self._digests[index]:
            self._digests[index] = ""
            self._regroup()

    @torch.inference_mode()
    def act(
        self, observations_SO: NDArray[np.float32], legal_SA: NDArray[np.bool_] | None = None
    ) -> NDArray[np.uint8]:
        """One decision for every seat, uint8 `[S, A]`: keys, or a one-hot choice that `legal_SA`
        allows.

        Where nobody sits no key is pressed, and some legal choice made.
        """
        if self._action_size is None:
            raise InvalidInput(
                "a batched policy that never held a network can't tell its keys: give action_size"
            )
        if self._batches is None:
            self._batches = self._plan()
        obs_SO = torch.from_numpy(np.ascontiguousarray(observations_SO)).to(self._device)
        # Padding rows read and write row S: an observation of zeros, a state nobody looks at.
        obs_SO = torch.cat([obs_SO, obs_SO.new_zeros(1, obs_SO.shape[1])])
        logits_SA = torch.full(
            (self.num_seats + 1, self._action_size), -torch.inf, device=self._device
        )
        for batch in self._batches:
            logits_SA.index_copy_(0, batch.seats, self._forward(batch, obs_SO))
        self.logits_SA = logits_SA[:-1]
        return self._draw(self.logits_SA.cpu(), legal_SA)

    def live_memory(self) -> tuple[Tensor, Tensor]:
        """h and c of the live network in every seat, `[S, H]`, as they are until the next act;
        what stands in other seats means nothing.
        """
        if self._live is None:
            raise InvalidInput("no live network is set: call set_live first")
        self._put_back()
        state = self._states[self._live.config]
        return state.h_BH[:-1], state.c_BH[:-1]

    def save(self) -> dict[str, Any]:
        """Everything from which `load_state` goes on alike: tensors and plain values, copied."""
        self._put_back()
        return {
            "digests": list(self._digests),
            "greedy": self._greedy_S1.clone(),
            "generator": self._generator.get_state(),
            # In the order of their rows, so that resumed products are bit for bit the same.
            "stacks": [
                [c.to_dict(), size, list(stack.members)]
                for (c, size), stack in self._stacks.items()
            ],
            "states": [
                [config.to_dict(), [part.cpu().clone() for part in state]]
                for config, state in self._states.items()
            ],
        }

    @torch.inference_mode()
    def load_state(self, saved: dict[str, Any]) -> None:
        """Goes on from what `save` returned; raises `DataCorrupt` when it is of another number of
        seats.

        Seated snapshots are loaded; a live network must have been set when seats are live.
        """
        if len(saved["digests"]) != self.num_seats:
            raise DataCorrupt(
                f"the saved batched_policy has {len(saved['digests'])} seats, this one {self.num_seats}: "
                "go on with as many matches as before"
            )
        self._digests = list(saved["digests"])
        self._greedy_S1 = saved["greedy"].clone()
        self._generator.set_state(saved["generator"])
        self._states = {}
        for values, parts in saved["states"]:
            config = config_of(values)
            self._admit(config)
            self._states[config] = AgentState(*(part.to(self._device, copy=True) for part in parts))
        self._stacks = {}
        for values, size, members in saved["stacks"]:
            kind = (config_of(values), size)
            self._stacks[kind] = NetworkStack(kind[0], self._device)
            self._stacks[kind].assign(members, self._weights)
        self._batches = None

    def _admit(self, config: NetworkConfig) -> None:
        """Makes room for the state of another architecture."""
        if self._action_size is None:
            self._action_size, self._action_kind = config.action_size, config.action_kind
        mine, theirs = (
            (self._action_size, self._action_kind),
            (config.action_size, config.action_kind),
        )
        if theirs != mine:
            raise InvalidInput(
                f"a network with {theirs[0]} actions ({theirs[1]}) can't sit where others have "
                f"{mine[0]} ({mine[1]})"
            )
        if config not in self._states:
            with torch.device("meta"):
                empty = network_of(config).initial_state(self.num_seats + 1)
            self._states[config] = AgentState(
                *(torch.zeros(part.shape, dtype=part.dtype, device=self._device) for part in empty)
            )

    def _weights(self, digest: str) -> Tensor:
        return self._residents.get(digest).weights_P

    def _plan(self) -> list[_Batch]:
        """Groups the seats and brings the stacks in line; only called when somebody came or
        left.
        """
        groups: dict[str, list[int]] = {}
        for seat, digest in enumerate(self._digests):
            if digest:
                groups.setdefault(digest, []).append(seat)
        batches = self._live_batches(groups.pop(LIVE, []))
        classes: dict[_Class, list[str]] = {kind: [] for kind in self._stacks}
        for digest, seats in groups.items():
            size = max(SMALLEST, 1 << (len(seats) - 1).bit_length())
            classes.setdefault((self._residents.get(digest).config, size), []).append(digest)
        self._keep_only({kind: len(digests) for kind, digests in classes.items() if digests})
        for (config, size), stack in self._stacks.items():
            stack.assign(classes[config, size], self._weights)
            rows = [self._padded(groups[digest], size) for digest in stack.members]
            batches.append(self._batch(stack.network, config, rows))
        return batches

    def _keep_only(self, classes: dict[_Class, int]) -> None:
        """Makes stacks for classes of so many snapshots, and room for them; forgets what else
        there is.
        """
        self._stacks = {
            kind: self._stacks.get(kind) or NetworkStack(kind[0], self._device) for kind in classes
        }
        played = {config for config, _ in classes} | ({self._live.config} if self._live else set())
        self._states = {config: state for config, state in self._states.items() if config in played}
        over = self._make_room(
            sum(self._stacks[kind].bytes_for(count) for kind, count in classes.items())
        )
        if over and not self._warned:
            self._warned = True
            limit = self._residents.limit
            log.warning(
                "the %d snapshots that play at once take %d MiB, more than the %d MiB for opponents' "
                "weights: they stay, and no other is kept",
                sum(classes.values()),
                round((limit + over) / _MIB),
                round(limit / _MIB),
            )

    def _make_room(self, copies: int) -> int:
        """Forgets snapshots that nobody plays until the weights fit beside so many bytes of
        copies in stacks; returns the bytes by which those that play are over.
        """
        return self._residents.trim(set(self._digests), copies)

    def _live_batches(self, seats: list[int]) -> list[_Batch]:
        if not seats:
            return []
        if self._live is None:
            raise InvalidInput(
                f"{len(seats)} seats are played live, but no live network is set: call set_live"
            )
        index = torch.tensor(seats, device=self._device)
        return [_Batch(self._live, self._live.config, index, (len(seats),))]

    def _regroup(self) -> None:
        """The seats are grouped anew at the next act."""
        self._put_back()
        self._batches = None

    @torch.inference_mode()
    def _put_back(self) -> None:
        """Writes the batches' own states to the seats: between two changes nobody needs them
        there.
        """
        for batch in self._batches or ():
            if batch.state is not None:
                for part, new in zip(self._states[batch.config], batch.state, strict=True):
                    part.index_copy_(0, batch.seats, new.flatten(0, len(batch.shape) - 1))
                batch.state = None

    def _padded(self, seats: list[int], size: int) -> list[int]:
        return seats + [self.num_seats] * (size - len(seats))

    def _batch(
        self, network: PlayingNetwork, config: NetworkConfig, rows: list[list[int]]
    ) -> _Batch:
        index = torch.tensor(rows, device=self._device)
        return _Batch(network, config, index.flatten(), tuple(index.shape))

    def _forward(self, batch: _Batch, obs_SO: Tensor) -> Tensor:
        """Steps one batch, keeps its state, and returns its logits `[rows, A]`."""

        def rows(part: Tensor) -> Tensor:
            return part.index_select(0, batch.seats).unflatten(0, batch.shape)

        state = batch.state or AgentState(*map(rows, self._states[batch.config]))
        # Nothing starts here: `seat` zeroed the state, which is an empty history.
        never = torch.zeros(batch.shape, dtype=torch.bool, device=self._device)
        output = batch.network.step(rows(obs_SO), never, state, None)
        batch.state = output.state
        return output.logits_BA.flatten(0, len(batch.shape) - 1)

    def _draw(self, logits_SA: Tensor, legal_SA: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
        """Actions drawn at temperature 1, or the likeliest where the seat is greedy."""
        uniform = torch.rand(logits_SA.shape, generator=self._generator)
        if self._action_kind == CHOICE:
            legal = None if legal_SA is None else torch.from_numpy(np.ascontiguousarray(legal_SA))
            vacant = logits_SA.isneginf().all(-1, keepdim=True)
            choice = MaskedChoice(logits_SA.masked_fill(vacant, 0.0), legal)
            drawn = torch.where(self._greedy_S1, choice.greedy(), choose(choice.log_probs, uniform))
            chosen: NDArray[np.uint8] = drawn.numpy()
            return chosen
        down = torch.where(self._greedy_S1, logits_SA > 0, uniform < torch.sigmoid(logits_SA))
        keys: NDArray[np.uint8] = down.to(torch.uint8).numpy()
        return keys


def _own_stream(seed: int) -> int:
    """A generator's seed apart from all that others make of the same number.

    A learner with the same weights and the same numbers as its opponent would make the same
    choices: in rock-paper-scissors every match is a tie then, and nothing is learnt.
    """
    return int(
        np.random.SeedSequence(seed, spawn_key=(0xC20D,)).generate_state(1, np.uint64)[0] >> 1
    )


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
