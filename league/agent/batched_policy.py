"""Plays many seats with many different networks in a few batched forward passes.

Seats that the same snapshot plays form a group. Groups of similar size and the same architecture
run as a stack: a single forward pass, in which each group is padded to the same number of rows. A
group is padded to at most twice its number of seats, plus `SMALLEST`. It is padded further only if
the padding costs less than another forward pass. Each row of a stack's weight matrix holds the
weights of a snapshot.

Besides snapshots, seats may be played by the live network (which a learner trains) and by rivals
(other people's agents, which run in their own processes).

Shape suffixes: S seats, O observation, A keys, M models of a stack, G rows per model, P weights per
model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from league.agent.architectures import config_of, network_of
from league.agent.config import NetworkConfig
from league.agent.contract import AgentState, PlayingNetwork
from league.agent.heads import MaskedChoice, choose
from league.errors import DataCorrupt, InvalidInput
from league.games.base import CHOICE, KEYS

if TYPE_CHECKING:
    from league.agent.rivals import RivalSeats

LIVE = "live"
"""Where a digest is expected, this name means the live network (see `set_live`). Each `act` uses
the live network's current weights.
"""
SMALLEST = 4
PADDING = 12_000_000
"""Two stacks are merged if merging adds at most this much padding, measured as padding rows times
weights per network. Computing so much padding takes as long as launching another forward pass (0.5
ms).
"""

Loader = Callable[[str], PlayingNetwork]
_Class = tuple[NetworkConfig, int]
"""The architecture of a stack's models, and the number of rows per model."""
_Frozen = tuple[NetworkConfig, Tensor]
"""The architecture of a network, and its weights in one vector."""


@dataclass
class _Batch:
    """Describes a forward pass.

    `seats` has the number of the seat of each row, model by model. For a padding row the number is
    `num_seats`. `state` has the recurrent states of the rows. It is None before the first pass, and
    after `_write_back`.
    """

    network: PlayingNetwork
    seats: Tensor
    shape: tuple[int, ...]
    state: AgentState | None = None


class BatchedPolicy:
    """Plays `num_seats` seats. A snapshot, the live network or a rival can be put in each seat.

    Args:
        num_seats: number of seats, S.
        load: returns the network for a digest. `seat` calls `load` for a digest that is not in
            memory. If `load` raises an error, `seat` raises it too, and the seat stays unchanged.
        seed: seed of the random numbers that draw actions. These numbers differ from the random
            numbers of a learner with the same seed. All seats draw at every `act`, so a seat's
            draws do not depend on the other seats.
        action_size: number of keys or choices, A. All seated networks must have this number.
        action_kind: kind of actions. All seated networks must have this kind.
        max_bytes: largest size of frozen weights in memory, including copies in stacks. The least
            recently used weights are dropped first. Weights of seated networks always stay.
        device: device on which all networks compute, including the live network.
        rivals: plays the seats of rivals. Creating this policy empties all seats of rivals.

    Attributes:
        failures: for each seat whose rival failed in the last decision, the reason. These seats are
            vacant now.
        waiting: seats without a decision in this frame, because their rivals have not decided yet.
            The caller must not play a frame of their matches.
        logits_SA: logits of the last call of `act`, -inf for vacant seats.
    """

    def __init__(
        self,
        num_seats: int,
        load: Loader,
        *,
        seed: int,
        action_size: int,
        action_kind: str = KEYS,
        max_bytes: int = 1 << 30,
        device: torch.device | str = "cpu",
        rivals: RivalSeats | None = None,
    ) -> None:
        self._rivals, self.failures = rivals, dict[int, str]()
        self.waiting = np.zeros(0, np.int64)
        if rivals is not None:
            rivals.clear()
        self.num_seats, self.device = num_seats, torch.device(device)
        self._load, self._max_bytes = load, max_bytes
        self._held: OrderedDict[str, _Frozen] = OrderedDict()
        self._live: PlayingNetwork | None = None
        self._digests = [""] * num_seats
        self._greedy_S1 = torch.zeros(num_seats, 1, dtype=torch.bool)
        self._states: dict[NetworkConfig, AgentState] = {}
        self._stacks: dict[_Class, NetworkStack] = {}
        self._batches: list[_Batch] | None = None
        self._action_size, self._action_kind = action_size, action_kind
        # A learner with the same seed draws from another stream. If both used the same stream,
        # equal weights would make equal choices, and every match of rock-paper-scissors would be a
        # tie.
        stream = np.random.SeedSequence(seed, spawn_key=(0xC20D,)).generate_state(1, np.uint64)[0]
        self._generator = torch.Generator().manual_seed(int(stream >> 1))
        self.logits_SA: Tensor | None = None

    @property
    def has_live(self) -> bool:
        """Whether a live network is set."""
        return self._live is not None

    @property
    def resident_bytes(self) -> int:
        """Size of the weights in memory, and of their copies in stacks."""
        held = sum(weights_P.nbytes for _, weights_P in self._held.values())
        return held + sum(stack.weights_MP.nbytes for stack in self._stacks.values())

    def set_live(self, network: PlayingNetwork | None) -> None:
        """Sets the live network, which plays the seats of `LIVE`. Its weights are never copied."""
        self._live = network
        self._regroup()
        if network is not None:
            self._add_architecture(network.config)

    @torch.inference_mode()
    def seat(self, index: int, digest: str, *, greedy: bool = False) -> None:
        """Gives a seat to a snapshot (or `LIVE`) with an empty history, or to a rival. The new
        player replaces the seat's previous player.

        Args:
            index: number of the seat.
            digest: digest of the snapshot's weights or of the rival's bundle.
            greedy: whether a snapshot takes the likeliest action instead of sampling.

        Raises:
            InvalidInput: `digest` is `LIVE` but no live network is set, or the network's kind or
                number of actions differs from this policy's.
        """
        if self._rivals is not None and digest != LIVE and self._rivals.has(digest):
            self.vacate(index)
            self._rivals.seat(index, digest)
            return
        config = self._checked_live().config if digest == LIVE else self._frozen(digest)[0]
        self._add_architecture(config)
        if self._rivals is not None:
            self._rivals.vacate(index)
        self._write_back()
        for x in self._states[config]:
            x[index].zero_()
        self._greedy_S1[index] = greedy
        if self._digests[index] != digest:
            self._digests[index] = digest
            self._regroup()
            self._trim()

    def vacate(self, index: int) -> None:
        """Empties a seat. A vacant seat presses no key (or makes some legal choice)."""
        if self._rivals is not None:
            self._rivals.vacate(index)
        if self._digests[index]:
            self._digests[index] = ""
            self._regroup()

    @property
    def rival_seats(self) -> list[int]:
        """The seats in which rivals sit."""
        return [] if self._rivals is None else [*self._rivals.digests]

    def late_in(self, index: int) -> int:
        """Returns how many decisions of a seat's rival came late in its match so far, 0 without a
        rival.
        """
        return 0 if self._rivals is None else self._rivals.late_in(index)

    def ask_rivals(
        self, observations_SO: NDArray[np.float32], rests_S: NDArray[np.bool_] | None = None
    ) -> None:
        """Sends the observations to the rivals (other people's agents), which then decide in the
        background. Rivals in the seats marked in `rests_S` get no observation.
        """
        if self._rivals is not None:
            self._rivals.ask(observations_SO, rests_S)

    def decide_rivals(
        self,
        observations_SO: NDArray[np.float32],
        actions_SA: NDArray[np.uint8],
        may_wait: int = 0,
        rests_S: NDArray[np.bool_] | None = None,
    ) -> None:
        """Lets only the rivals (other people's agents) decide, in a frame in which the networks
        hold their keys.

        Args:
            observations_SO: observations.
            actions_SA: the actions of the frame, into which the rivals' keys are written.
            may_wait: largest number of seats that may go without a decision. `waiting` lists these
                seats afterwards.
            rests_S: bool, true in seats whose rivals do not decide in this frame.
        """
        if self._rivals is not None:
            self._rivals.ask(observations_SO, rests_S)
            self.failures = self._rivals.answer(actions_SA, may_wait)
            self.waiting = self._rivals.waiting

    @torch.inference_mode()
    def act(
        self,
        observations_SO: NDArray[np.float32],
        legal_SA: NDArray[np.bool_] | None = None,
        may_wait: int = 0,
        rests_S: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.uint8]:
        """Returns actions for all seats. A vacant seat presses no key, or makes some legal choice.

        Args:
            observations_SO: observations.
            legal_SA: legal choices, or None in games of keys.
            may_wait: largest number of rivals' seats that may go without a decision. `waiting`
                lists these seats afterwards.
            rests_S: bool, true in seats whose rivals do not decide in this frame.

        Returns:
            Actions, uint8 `[S, A]`: keys, or one-hot legal choices.
        """
        self.ask_rivals(observations_SO, rests_S)  # rivals decide while the networks compute
        if self._batches is None:
            self._batches = self._plan()
        obs_SO = torch.from_numpy(np.ascontiguousarray(observations_SO)).to(self.device)
        # Padding rows read and write row S, whose observation is zero and whose state is no seat's.
        obs_SO = torch.cat([obs_SO, obs_SO.new_zeros(1, obs_SO.shape[1])])
        shape = (self.num_seats + 1, self._action_size)
        logits_SA = torch.full(shape, -torch.inf, device=self.device)
        for batch in self._batches:
            logits_SA.index_copy_(0, batch.seats, self._forward(batch, obs_SO))
        self.logits_SA = logits_SA[:-1]
        actions_SA = self._draw(self.logits_SA.cpu(), legal_SA)
        self.decide_rivals(observations_SO, actions_SA, may_wait, rests_S)
        return actions_SA

    def live_memory(self) -> tuple[Tensor, Tensor]:
        """Returns the live network's LSTM states h and c, `[S, H]`, valid until the next act. Only
        rows of live seats are meaningful.
        """
        config = self._checked_live().config
        self._write_back()
        state = self._states[config]
        return state.h_BH[:-1], state.c_BH[:-1]

    def save(self) -> dict[str, Any]:
        """Returns copies of everything that `load_state` needs to continue identically: tensors and
        plain values.
        """
        self._write_back()
        return {
            "digests": list(self._digests),
            "rivals": {} if self._rivals is None else {**self._rivals.digests},
            "greedy": self._greedy_S1.clone(),
            "generator": self._generator.get_state(),
            # Members are saved in the order of their rows, so that the matrix products after a
            # resume give the same bits.
            "stacks": [
                [config.to_dict(), size, list(stack.members)]
                for (config, size), stack in self._stacks.items()
            ],
            "states": [
                [config.to_dict(), [x.cpu().clone() for x in state]]
                for config, state in self._states.items()
            ],
        }

    @torch.inference_mode()
    def load_state(self, saved: dict[str, Any]) -> None:
        """Continues from a state that `save` returned, and loads the seated snapshots. Rivals
        continue without memory of earlier frames.

        If the live network plays a seat, call `set_live` first.

        Raises:
            DataCorrupt: the state has another number of seats.
        """
        if len(saved["digests"]) != self.num_seats:
            raise DataCorrupt(
                f"the saved policy has {len(saved['digests'])} seats, this one {self.num_seats}: "
                "continue with the same number of matches"
            )
        if self._rivals is not None:
            self._rivals.clear()
            for index, digest in saved.get("rivals", {}).items():
                self._rivals.seat(index, digest)
        self._digests = list(saved["digests"])
        self._greedy_S1 = saved["greedy"].clone()
        self._generator.set_state(saved["generator"])
        self._states, self._stacks, self._batches = {}, {}, None
        for values, parts in saved["states"]:
            config = config_of(values)
            self._add_architecture(config)
            self._states[config] = AgentState(*(x.to(self.device, copy=True) for x in parts))
        for values, size, members in saved["stacks"]:
            config = config_of(values)
            self._stacks[config, size] = NetworkStack(config, self.device)
            self._stacks[config, size].assign(members, self._frozen)

    def _checked_live(self) -> PlayingNetwork:
        if self._live is None:
            raise InvalidInput("a seat needs the live network, but none is set: call set_live")
        return self._live

    def _add_architecture(self, config: NetworkConfig) -> None:
        theirs = (config.action_size, config.action_kind)
        if theirs != (self._action_size, self._action_kind):
            raise InvalidInput(
                f"a network with {theirs[0]} actions ({theirs[1]}) can't sit where others have "
                f"{self._action_size} ({self._action_kind})"
            )
        if config not in self._states:
            with torch.device("meta"):
                empty = network_of(config).initial_state(self.num_seats + 1)
            self._states[config] = AgentState(
                *(torch.zeros(x.shape, dtype=x.dtype, device=self.device) for x in empty)
            )

    def _frozen(self, digest: str) -> _Frozen:
        """Returns a snapshot's weights, after loading them if necessary. Raises the errors of the
        loader.
        """
        if digest not in self._held:
            network = self._load(digest)
            # Matrices are stored transposed, because products of a few rows with `weight.mT` are
            # then faster.
            parts = [
                parameter.detach().mT.flatten() if parameter.dim() == 2 else parameter.detach()
                for parameter in network.parameters()
            ]
            self._held[digest] = network.config, torch.cat(parts).to(self.device)
        self._held.move_to_end(digest)
        return self._held[digest]

    def _plan(self) -> list[_Batch]:
        """Groups the seats and updates the stacks when the seating has changed."""
        groups: dict[str, list[int]] = {}
        for seat, digest in enumerate(self._digests):
            if digest:
                groups.setdefault(digest, []).append(seat)
        batches = []
        if LIVE in groups:
            batches.append(self._batch(self._checked_live(), groups.pop(LIVE)))
        classes: dict[_Class, list[str]] = {}
        for digest, seats in groups.items():
            size = max(SMALLEST, 1 << (len(seats) - 1).bit_length())
            classes.setdefault((self._frozen(digest)[0], size), []).append(digest)
        for config in dict.fromkeys(config for config, _ in classes):
            sizes = sorted(size for other, size in classes if other == config)
            for size, larger in pairwise(sizes):
                padding = len(classes[config, size]) * (larger - size)
                if padding * len(self._frozen(classes[config, size][0])[1]) <= PADDING:
                    classes[config, larger] += classes.pop((config, size))
        self._stacks = {
            kind: self._stacks.get(kind) or NetworkStack(kind[0], self.device) for kind in classes
        }
        for (config, size), stack in self._stacks.items():
            stack.assign(classes[config, size], self._frozen)
            rows = [
                groups[digest] + [self.num_seats] * (size - len(groups[digest]))
                for digest in stack.members
            ]
            batches.append(self._batch(stack.network, rows))
        played = {batch.network.config for batch in batches}
        if self._live is not None:
            played.add(self._live.config)
        self._states = {config: state for config, state in self._states.items() if config in played}
        self._trim()
        return batches

    def _trim(self) -> None:
        """Drops weights that no seat uses, starting with the least recently used, until the rest
        fits in `max_bytes`.
        """
        over = self.resident_bytes - self._max_bytes
        for digest in [digest for digest in self._held if digest not in self._digests]:
            if over > 0:
                over -= self._held.pop(digest)[1].nbytes

    def _regroup(self) -> None:
        """Makes the next `act` group the seats again."""
        self._write_back()
        self._batches = None

    @torch.inference_mode()
    def _write_back(self) -> None:
        """Copies the states from the batches back to the seats, before the seats change."""
        for batch in self._batches or ():
            if batch.state is not None:
                states = self._states[batch.network.config]
                for x, new in zip(states, batch.state, strict=True):
                    x.index_copy_(0, batch.seats, new.flatten(0, len(batch.shape) - 1))
                batch.state = None

    def _batch(self, network: PlayingNetwork, rows: list) -> _Batch:
        index = torch.tensor(rows, device=self.device)
        return _Batch(network, index.flatten(), tuple(index.shape))

    def _forward(self, batch: _Batch, obs_SO: Tensor) -> Tensor:
        """Makes a step for all rows of a batch, keeps the new state, and returns the logits `[rows,
        A]`.
        """

        def rows(x: Tensor) -> Tensor:
            return x.index_select(0, batch.seats).unflatten(0, batch.shape)

        state = batch.state or AgentState(*map(rows, self._states[batch.network.config]))
        # No episode starts here, because `seat` has already set the state to zeros.
        never = torch.zeros(batch.shape, dtype=torch.bool, device=self.device)
        output = batch.network.step(rows(obs_SO), never, state, None)
        batch.state = output.state
        return output.logits_BA.flatten(0, len(batch.shape) - 1)

    def _draw(self, logits_SA: Tensor, legal_SA: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
        """Draws actions at temperature 1. Greedy seats take the likeliest action."""
        uniform = torch.rand(logits_SA.shape, generator=self._generator)
        if self._action_kind == CHOICE:
            legal = None if legal_SA is None else torch.from_numpy(np.ascontiguousarray(legal_SA))
            vacant = logits_SA.isneginf().all(-1, keepdim=True)
            choice = MaskedChoice(logits_SA.masked_fill(vacant, 0.0), legal)
            drawn = torch.where(self._greedy_S1, choice.greedy(), choose(choice.log_probs, uniform))
        else:
            drawn = torch.where(self._greedy_S1, logits_SA > 0, uniform < torch.sigmoid(logits_SA))
        actions: NDArray[np.uint8] = drawn.to(torch.uint8).numpy()
        return actions


class NetworkStack:
    """Runs M networks in a single batched `step`, with inputs and outputs `[M, G, ...]`.

    The first rows of `weights_MP` hold the weights of the snapshots whose digests are in `members`.
    The other rows are spare. When members change, only the changed rows are copied, unless the
    matrix has to be resized.
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
        self.weights_MP = torch.empty(0, size, device=device)
        self.members: list[str] = []

    def assign(self, wanted: Sequence[str], frozen: Callable[[str], _Frozen]) -> None:
        """Makes the digests in `wanted` the members. Members that stay keep their rows where
        possible.
        """
        if set(wanted) == set(self.members):
            return
        members = [digest if digest in wanted else "" for digest in self.members[: len(wanted)]]
        members += [""] * (len(wanted) - len(members))
        missing = iter([digest for digest in wanted if digest not in set(members)])
        self._resize(len(wanted))
        for row, digest in enumerate(members):
            if not digest:
                members[row] = next(missing)
                self.weights_MP[row].copy_(frozen(members[row])[1])
        self.members = members
        self._bind()

    def _resize(self, models: int) -> None:
        """Makes room for `models` rows.

        If the matrix is too small or much too large, its replacement has a quarter more rows than
        needed, so that adding a member usually copies only a single row.
        """
        have = len(self.weights_MP)
        if not models <= have <= 2 * models + 1:
            rows, copied = models + models // 4, min(models, have)
            resized = self.weights_MP.new_empty(rows, self.weights_MP.shape[1])
            resized[:copied] = self.weights_MP[:copied]
            self.weights_MP = resized

    def _bind(self) -> None:
        """Points the network's parameters at the rows in use."""
        models, offset = len(self.members), 0
        for module, name, shape in self._places:
            weights = self.weights_MP[:models, offset : offset + shape.numel()]
            is_matrix = len(shape) == 2
            weights = weights.view(models, *(reversed(shape) if is_matrix else shape))
            weights = weights.mT if is_matrix else weights
            setattr(module, name, nn.Parameter(weights, requires_grad=False))
            offset += shape.numel()
